"""Memory as arrays: that of another library, and new memory aligned for vectors."""

from __future__ import annotations

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
