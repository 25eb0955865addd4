"""Memory as arrays: that of another library, and new memory aligned for vectors."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


ALIGNMENT = 64
"""Bytes: a cache line, and a vector of AVX-512."""


class _Memory:
    """Something that NumPy reads as an array over memory that is not its own."""

    def __init__(self, interface: dict[str, Any], owner: object) -> None:
        self.__array_interface__ = interface
        self.owner = owner


def memory_view(
    address: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype[Any],
    *,
    read_only: bool,
    owner: object,
) -> Array:
    """An array over memory at `address`, which `owner` keeps alive. `strides` are in bytes."""
    if 0 in shape or address == 0:
        return np.empty(shape, dtype)
    interface = {
        "version": 3,
        "data": (address, read_only),
        "shape": shape,
        "strides": strides,
        "typestr": f"|V{dtype.itemsize}",
    }
    return np.asarray(_Memory(interface, owner)).view(dtype)


def fresh(shape: tuple[Any, ...], dtype: np.dtype[Any]) -> Array:
    """A new array, aligned to whole vectors and cache lines."""
    nbytes = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    raw = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + nbytes].view(dtype).reshape(shape)


def _interface_address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


_HEAD = object.__basicsize__
"""Bytes of the head of every Python object; NumPy's C interface fixes the pointer to the elements right behind it."""


def _struct_address(array: Array) -> int:
    return ctypes.c_void_p.from_address(id(array) + _HEAD).value or 0


def _reads_struct() -> bool:
    """Whether this interpreter lays arrays out so; where it does not, the slower way is taken."""
    base = np.zeros((4, 4), np.float32)
    return all(_struct_address(view) == _interface_address(view) for view in (base, base[1:, 2:], base.T, base[2]))


address_of = _struct_address if _reads_struct() else _interface_address
"""The address of an array's first element; by the structure itself ten times faster than by the interface."""
