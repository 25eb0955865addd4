"""Arrays of other libraries become views of their own memory, or are refused with a reason."""

from __future__ import annotations

import ctypes
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import Array, exact_ints

from tilewright.errors import ArgumentError
from tilewright.ir.dtypes import BF16, FP32
from tilewright.ir.types import TensorType
from tilewright.runtime.arrays import (
    Argument,
    as_argument,
    is_walkable,
    overlaps,
    repeats_elements,
    returned,
    tensor_type,
    walkable,
)
from tilewright.runtime.checks import check_aliasing, check_output
from tilewright.runtime.memory import ALIGNMENT, fresh


class Exporter:
    """An array of a library that speaks DLPack and nothing else. `old`: its protocol has no versions."""

    def __init__(self, array: Array, device: int = 1, old: bool = False) -> None:
        self.array = array
        self.device = device
        self.old = old

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, **options: Any) -> Any:
        if self.old and options:
            raise TypeError("unexpected keyword argument")
        return self.array.__dlpack__(**options)


class Shape(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class HandMade:
    """A capsule of the older protocol, made by hand: element types that NumPy does not export."""

    def __init__(self, array: Array, code: int, lanes: int = 1, strides: bool = False) -> None:
        self.array = array
        self.extents = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.steps = (ctypes.c_int64 * array.ndim)(*(step // array.itemsize for step in array.strides))
        address = array.__array_interface__["data"][0]
        steps = ctypes.cast(self.steps, ctypes.POINTER(ctypes.c_int64)) if strides else None
        self.tensor = Shape(
            address - 8, (ctypes.c_int32 * 2)(1, 0), array.ndim, code, array.itemsize * 8, lanes,
            ctypes.cast(self.extents, ctypes.POINTER(ctypes.c_int64)), steps, 8,
        )  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self) -> Any:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


def address(array: Array) -> int:
    return array.__array_interface__["data"][0]


def test_a_numpy_array_is_itself() -> None:
    array = exact_ints((3, 4))
    assert as_argument(array, "a").view is array


@pytest.mark.parametrize("old", [False, True])
def test_a_dlpack_array_is_viewed_in_place(old: bool) -> None:
    array = exact_ints((5, 6))[:, 1:4]
    argument = as_argument(Exporter(array, old=old), "a")
    assert argument.kind == "dlpack"
    assert address(argument.view) == address(array)
    assert argument.view.strides == array.strides
    np.testing.assert_array_equal(argument.view, array)
    argument.view[0, 0] = 99
    assert array[0, 0] == 99


def test_a_read_only_dlpack_array_stays_read_only() -> None:
    array = exact_ints((5, 6))
    array.flags.writeable = False
    assert not as_argument(Exporter(array), "a").writable


@pytest.mark.parametrize("strides", [False, True])
def test_bfloat16_comes_through_dlpack(strides: bool) -> None:
    array = exact_ints((4, 5), ml_dtypes.bfloat16)
    argument = as_argument(HandMade(array, 4, strides=strides), "a")
    assert argument.view.dtype == np.dtype(ml_dtypes.bfloat16)
    assert address(argument.view) == address(array)
    np.testing.assert_array_equal(argument.view, array)
    assert tensor_type(argument.view, "a") is TensorType((4, 5), BF16)


def test_what_dlpack_cannot_give_is_refused() -> None:
    array = exact_ints((4, 5))
    with pytest.raises(ArgumentError, match="not in this machine's memory"):
        as_argument(Exporter(array, device=2), "a")
    with pytest.raises(ArgumentError, match="type code 2, 32 bits, 4 lanes"):
        as_argument(HandMade(array, 2, lanes=4), "a")
    with pytest.raises(ArgumentError, match="type code 5"):
        as_argument(HandMade(array, 5), "a")


class Later(Exporter):
    """As much of a jax array as is read: its values are there once it was waited for."""

    __module__ = "jaxlib"

    def block_until_ready(self) -> Later:
        self.array[...] = 5
        return self


def test_a_jax_array_is_waited_for_and_never_written() -> None:
    array = exact_ints((3, 4))
    argument = as_argument(Later(array), "a")
    assert argument.kind == "jax"
    assert (argument.view == 5).all()
    assert not argument.writable
    assert array.flags.writeable


class Tensor:
    """As much of a torch tensor as is read without torch."""

    __module__ = "torch"

    def __init__(self, array: Array, dtype: str, device: str = "cpu", requires_grad: bool = False) -> None:
        self.array = array
        self.dtype = f"torch.{dtype}"
        self.device = SimpleNamespace(type=device)
        self.requires_grad = requires_grad
        self.layout = "strided"
        self.shape = array.shape

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def data_ptr(self) -> int:
        return address(self.array)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("torch")
    vars(module).update(strided="strided", is_grad_enabled=lambda: True, from_numpy=lambda array: ("tensor", array))  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


@pytest.mark.parametrize(
    ("name", "dtype"), [("float32", np.float32), ("bfloat16", ml_dtypes.bfloat16), ("int8", np.int8)]
)
def test_a_torch_tensor_is_viewed_in_place(torch: ModuleType, name: str, dtype: Any) -> None:
    array = exact_ints((6, 8), dtype)[::2, 1:5]
    argument = as_argument(Tensor(array, name), "a")
    assert argument.kind == "torch"
    assert address(argument.view) == address(array)
    assert argument.view.strides == array.strides
    np.testing.assert_array_equal(argument.view, array)


def test_torch_tensors_that_no_kernel_takes(torch: ModuleType) -> None:
    array = exact_ints((2, 2))
    with pytest.raises(ArgumentError, match="cpu"):
        as_argument(Tensor(array, "float32", device="cuda"), "a")
    with pytest.raises(ArgumentError, match="detach"):
        as_argument(Tensor(array, "float32", requires_grad=True), "a")
    with pytest.raises(ArgumentError, match="complex64"):
        as_argument(Tensor(array, "complex64"), "a")


def test_results_go_back_in_the_callers_kind(torch: ModuleType) -> None:
    array = exact_ints((2, 2))
    assert returned(array, "numpy") is array
    assert returned(array, "torch") == ("tensor", array)


def test_numbers_are_not_arrays() -> None:
    with pytest.raises(ArgumentError, match="'a' is not an array"):
        as_argument([1.0, 2.0], "a")


def test_types_say_strides_only_where_they_differ_from_contiguous() -> None:
    array = exact_ints((8, 6))
    assert tensor_type(array, "a") is TensorType((8, 6), FP32)
    assert tensor_type(array[::2, 1:4], "a") is TensorType((4, 3), FP32, (12, 1))
    assert tensor_type(array.T, "a") is TensorType((6, 8), FP32, (1, 6))
    with pytest.raises(ArgumentError, match="float64"):
        tensor_type(array.astype(np.float64), "a")


def test_memory_that_kernels_cannot_walk_is_copied_and_written_back() -> None:
    raw = np.zeros(4 * 6 + 1, np.uint8)
    misaligned = raw[1:].view(np.float32).reshape(2, 3)
    record = np.zeros((3,), np.dtype([("a", np.float32), ("b", np.int8)]))
    for view in (exact_ints((4, 5))[::-1], misaligned, record["a"]):
        assert not is_walkable(view)
        assert tensor_type(view, "a").strides is None
        copy, copy_back = walkable(view)
        np.testing.assert_array_equal(copy, view)
        assert is_walkable(copy)
        copy[...] = 7
        assert copy_back is not None
        copy_back()
        assert (view == 7).all()
    strided = exact_ints((4, 6))[:, ::2]
    assert walkable(strided)[0] is strided
    assert walkable(strided)[1] is None


def test_overlap_is_of_elements_not_of_ranges() -> None:
    array = exact_ints((8, 8))
    assert not overlaps(array[:, :4], array[:, 4:])
    assert overlaps(array[:, :5], array[:, 4:])
    assert not overlaps(array, array.copy())


def test_outputs_that_cannot_be_written() -> None:
    array = exact_ints((4, 4))
    locked = array.copy()
    locked.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        check_output("out", as_argument(locked, "out"))
    with pytest.raises(ArgumentError, match="read-only") as raised:
        check_output("out", Argument(locked, array, "jax"))
    assert "return the result" in (raised.value.help or "")
    broadcast = np.lib.stride_tricks.as_strided(array, (4, 4), (0, 4))
    with pytest.raises(ArgumentError, match="share memory"):
        check_output("out", as_argument(broadcast, "out"))
    check_output("out", as_argument(array[::2, 1:], "out"))
    check_output("out", as_argument(array.T, "out"))


def test_broadcast_views_repeat_elements() -> None:
    array = exact_ints((4, 4))
    assert repeats_elements(np.broadcast_to(array[0], (3, 4)))
    assert repeats_elements(np.lib.stride_tricks.sliding_window_view(array[0], 2))
    assert not repeats_elements(array[::2, ::3])
    assert not repeats_elements(array[:, None, :])


def test_parameters_do_not_alias() -> None:
    array = exact_ints((4, 4))
    a, b = as_argument(array, "a"), as_argument(array[1:], "b")
    check_aliasing([("a", False, a), ("b", False, b)])
    for arrays in ([("a", False, a), ("b", True, b)], [("b", True, b), ("a", False, a)]):
        with pytest.raises(ArgumentError, match="output 'b' shares memory with argument 'a'") as raised:
            check_aliasing(arrays)
        assert raised.value.required == "parameters do not alias"


def test_new_arrays_are_aligned() -> None:
    for shape in ((1,), (3, 5), (17, 2)):
        array = fresh(shape, np.dtype(np.float32))
        assert array.shape == shape
        assert address(array) % ALIGNMENT == 0
