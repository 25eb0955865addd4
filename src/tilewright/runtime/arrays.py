"""Arguments as NumPy views, without copies: NumPy arrays, torch and jax tensors, anything that speaks DLPack.

Every array becomes an ndarray over the caller's own memory, bfloat16 and the 8-bit floats included (NumPy's own
`from_dlpack` refuses those). An array whose memory a kernel cannot walk (steps that are no whole number of elements,
negative steps, a misaligned start) is copied; an output is copied back after the call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tilewright.errors import ArgumentError, UnknownDTypeError
from tilewright.ir import dtypes
from tilewright.ir.dtypes import DType
from tilewright.ir.types import TensorType
from tilewright.runtime.dlpack import dlpack_view
from tilewright.runtime.memory import memory_view

Array = npt.NDArray[Any]

EXACT_OVERLAP_WORK = 10_000
"""How hard to look for a common element of two interleaved views before they count as overlapping."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One array argument: `view` is over the caller's memory, `given` what the caller passed, kept alive."""

    view: Array
    given: object
    kind: str
    """``numpy``, ``torch``, ``jax`` or ``dlpack``: the kind in which results go back."""

    @property
    def writable(self) -> bool:
        return bool(self.view.flags.writeable)


def is_array_like(value: object) -> bool:
    """Whether `value` is an array of some library, not a number."""
    return isinstance(value, np.ndarray) or hasattr(value, "__dlpack__") or hasattr(value, "__array_interface__")


def as_argument(value: object, name: str) -> Argument:
    """`value` as a view of its memory. Raises `ArgumentError`, naming the parameter, for what is no array in this
    machine's own memory."""
    if isinstance(value, np.ndarray):
        return Argument(cast("Array", value), cast("Array", value), "numpy")
    library = type(value).__module__.partition(".")[0]
    if library == "torch":
        return Argument(_torch_view(value, name), value, "torch")
    if not hasattr(value, "__dlpack__"):
        interface = getattr(value, "__array_interface__", None)
        if interface is not None:
            return Argument(np.asarray(value), value, "numpy")
        raise ArgumentError(
            f"argument {name!r} is not an array",
            required="a NumPy, torch or jax array",
            found=type(value).__name__,
            help="convert it with numpy.asarray(…, dtype=…)",
        )
    if library not in ("jax", "jaxlib"):
        return Argument(dlpack_view(value, name), value, "dlpack")
    foreign: Any = value
    # jax hands out arrays before their values are there, and never lets them be written.
    view = dlpack_view(foreign.block_until_ready(), name)
    view.flags.writeable = False
    return Argument(view, foreign, "jax")


def _torch_view(value: Any, name: str) -> Array:
    """A view of a torch tensor, made without importing torch."""
    if value.device.type != "cpu":
        raise ArgumentError(
            f"argument {name!r} is on {value.device}", required="a tensor in CPU memory", help="pass it with .cpu()"
        )
    if value.requires_grad and sys.modules["torch"].is_grad_enabled():
        raise ArgumentError(
            f"argument {name!r} requires a gradient, which kernels do not record",
            help="pass it with .detach(), or call under torch.no_grad()",
        )
    dtype_name = str(value.dtype).removeprefix("torch.")
    dtype = _NAMED.get(dtype_name)
    if dtype is None or value.layout is not sys.modules["torch"].strided:
        raise ArgumentError(
            f"argument {name!r} has elements that no kernel takes",
            required="dense, one of " + ", ".join(_NAMED),
            found=f"{dtype_name}, {value.layout}",
        )
    strides = tuple(step * dtype.itemsize for step in value.stride())
    return memory_view(int(value.data_ptr()), tuple(value.shape), strides, dtype, read_only=False, owner=value)


_NAMED: dict[str, np.dtype[Any]] = {
    np.dtype(dtype.numpy).name: np.dtype(dtype.numpy)
    for dtype in dtypes.ALL
    if dtype not in (dtypes.INDEX, dtypes.INT4)
}


def tensor_type(view: Array, name: str) -> TensorType:
    """The type that a kernel sees: extents, dtype, and strides in elements unless the array is C-contiguous or is
    copied (`walkable`). Raises `ArgumentError` for a dtype that no kernel takes."""
    strides = element_strides(view) if is_walkable(view) else None
    return TensorType(tuple(view.shape), element_type(view, name), strides)


def element_type(view: Array, name: str) -> DType:
    """The dtype of an argument's elements. Raises `ArgumentError`."""
    found = _BY_NUMPY.get(view.dtype)
    if found is not None:
        return found
    try:
        return dtypes.from_numpy(view.dtype)
    except UnknownDTypeError as error:
        raise ArgumentError(
            f"argument {name!r} has elements of a type that no kernel takes",
            required="one of " + ", ".join(d.name for d in dtypes.ALL if d is not dtypes.INDEX),
            found=str(view.dtype),
            help=f"pass {name}.astype(numpy.float32)" if view.dtype.kind == "f" else None,
        ) from error


_BY_NUMPY: dict[np.dtype[Any], DType] = {
    np.dtype(dtype.numpy): dtype for dtype in dtypes.ALL if dtype is not dtypes.INDEX
}


def element_strides(view: Array) -> tuple[int, ...] | None:
    """Strides in elements; None when the array is C-contiguous."""
    if view.flags.c_contiguous:
        return None
    size = view.itemsize
    return tuple(step // size for step in view.strides)


def is_walkable(view: Array) -> bool:
    """Whether a kernel can read the memory in place: an aligned start, steps of whole elements, none negative."""
    if not view.flags.aligned or view.flags.c_contiguous:
        return view.flags.aligned
    return all(step >= 0 and step % view.itemsize == 0 for step in view.strides)


def repeats_elements(view: Array) -> bool:
    """Whether two indices may name one element (a broadcast view): such an array cannot be an output."""
    steps = sorted((abs(step), extent) for step, extent in zip(view.strides, view.shape, strict=True) if extent > 1)
    reach = view.itemsize
    for step, extent in steps:
        if step < reach:
            return view.size > 0
        reach += step * (extent - 1)
    return False


def overlaps(left: Array, right: Array) -> bool:
    """Whether the two arrays share an element. Views that interleave without sharing one do not overlap."""
    if not np.may_share_memory(left, right):
        return False
    try:
        limit: Any = EXACT_OVERLAP_WORK
        return np.shares_memory(left, right, max_work=limit)
    except (np.exceptions.TooHardError, OverflowError):
        return True


def walkable(view: Array) -> tuple[Array, Callable[[], None] | None]:
    """The array itself, or a copy that a kernel can walk and the action that copies it back."""
    if is_walkable(view):
        return view, None
    copy = np.array(view, order="C")

    def copy_back() -> None:
        view[...] = copy

    return copy, copy_back


def returned(array: Array, kind: str) -> Any:
    """A fresh result in the caller's kind of array, without a copy where that library takes one."""
    if kind == "torch":
        torch: Any = sys.modules["torch"]
        name = array.dtype.name
        if name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
            raw = torch.from_numpy(array.view(np.dtype(f"i{array.itemsize}")))
            return raw.view(getattr(torch, name))
        return torch.from_numpy(array)
    if kind == "jax":
        jax: Any = sys.modules["jax"]
        return jax.numpy.asarray(array)
    return array
