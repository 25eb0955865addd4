"""Reading DLPack capsules: another library's array as an ndarray over the same memory.

The capsule stays the producer's: it is never marked as consumed, so that its own destructor frees the tensor when the
view dies. The structures are those of DLPack 1.x; a capsule of an older protocol has the same `DLTensor` first.
"""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tilewright.errors import ArgumentError
from tilewright.runtime.memory import memory_view

CPU_DEVICES = (1, 3, 11)
"""kDLCPU, and host memory pinned by CUDA and ROCm."""

READ_ONLY = 1
"""The flag of a versioned tensor whose memory may not be written."""


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_DTYPES: dict[tuple[int, int], np.dtype[Any]] = {
    (0, 8): np.dtype(np.int8),
    (0, 16): np.dtype(np.int16),
    (0, 32): np.dtype(np.int32),
    (0, 64): np.dtype(np.int64),
    (1, 8): np.dtype(np.uint8),
    (1, 16): np.dtype(np.uint16),
    (1, 32): np.dtype(np.uint32),
    (1, 64): np.dtype(np.uint64),
    (2, 16): np.dtype(np.float16),
    (2, 32): np.dtype(np.float32),
    (2, 64): np.dtype(np.float64),
    (4, 16): np.dtype(ml_dtypes.bfloat16),
    (6, 8): np.dtype(np.bool_),
    (10, 8): np.dtype(ml_dtypes.float8_e4m3fn),
    (12, 8): np.dtype(ml_dtypes.float8_e5m2),
}
"""Element types by DLPack's type code and bits."""

_api = ctypes.pythonapi
_is_valid = _api.PyCapsule_IsValid
_is_valid.restype = ctypes.c_int
_is_valid.argtypes = (ctypes.py_object, ctypes.c_char_p)
_pointer = _api.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)


def dlpack_view(value: Any, name: str) -> npt.NDArray[Any]:
    """An array over the memory of `value`, which has `__dlpack__`. Raises `ArgumentError` naming the parameter when
    the memory is not the CPU's or the element type is unknown."""
    device = value.__dlpack_device__()
    if int(device[0]) not in CPU_DEVICES:
        raise ArgumentError(
            f"argument {name!r} is not in this machine's memory",
            required="an array on the CPU",
            found=f"DLPack device {tuple(map(int, device))}",
            help="copy it to the host first",
        )
    capsule = _capsule(value)
    tensor, read_only = _read(capsule, name)
    dtype = _DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        raise ArgumentError(
            f"argument {name!r} has elements of a type that no kernel takes",
            found=f"DLPack type code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes",
        )
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    steps = tuple(tensor.strides[axis] for axis in range(tensor.ndim)) if tensor.strides else _contiguous(shape)
    address = (tensor.data or 0) + tensor.byte_offset
    strides = tuple(step * dtype.itemsize for step in steps)
    return memory_view(address, shape, strides, dtype, read_only=read_only, owner=(capsule, value))


def _capsule(value: Any) -> object:
    """The capsule, of the versioned protocol where the producer knows it: only that says what is read-only."""
    try:
        return value.__dlpack__(max_version=(1, 0))
    except TypeError:
        return value.__dlpack__()


def _read(capsule: object, name: str) -> tuple[_Tensor, bool]:
    """The tensor in a capsule, and whether its memory is read-only."""
    if _is_valid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        if versioned.major == 1:
            return versioned.tensor, bool(versioned.flags & READ_ONLY)
    elif _is_valid(capsule, b"dltensor"):
        return _Tensor.from_address(_pointer(capsule, b"dltensor")), False
    raise ArgumentError(
        f"argument {name!r} speaks a version of DLPack that is not known here", required="DLPack 1.x or older"
    )


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    steps: list[int] = []
    reach = 1
    for extent in reversed(shape):
        steps.append(reach)
        reach *= extent
    return tuple(reversed(steps))
