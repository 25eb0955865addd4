"""Memory of the loop interpreter: bytes with a shadow bit each, looked at as arrays.

A `View` is a buffer: a shape and strides over the bytes of a `Memory`. Two views of one memory (an alias, a matched
region, another dtype) see each other's writes. Every access is checked in each dimension, and knows what is defined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.errors import ArgumentError, OutOfBoundsError, UndefinedReadError
from tilewright.execute.interpreter import poison
from tilewright.ir.dtypes import DType

Array = npt.NDArray[Any]


@dataclass(slots=True, eq=False)
class Memory:
    """Bytes, and which of them are defined. `parameter`: it is the caller's, and takes nothing undefined."""

    data: npt.NDArray[np.uint8]
    defined: npt.NDArray[np.bool_]
    parameter: bool

    @classmethod
    def fresh(cls, elements: int, dtype: DType) -> Memory:
        """Memory that nothing wrote."""
        data = poison((elements,), np.dtype(dtype.numpy)).view(np.uint8)
        return cls(data, np.zeros(data.shape, np.bool_), False)

    @classmethod
    def of(cls, array: Array) -> Memory:
        """A copy of the caller's array."""
        data = np.ascontiguousarray(array).reshape(-1).copy().view(np.uint8)
        return cls(data, np.ones(data.shape, np.bool_), True)


class View:
    """One buffer: `shape` elements of `dtype` at byte `offset` of `memory`, `strides` bytes apart."""

    def __init__(
        self, name: str, memory: Memory, dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
    ) -> None:
        self.name, self.memory, self.dtype = name, memory, dtype
        self.shape, self.strides, self.offset = shape, strides, offset
        kind = np.dtype(dtype.numpy)
        first, last = self._reach(kind.itemsize)
        if first < 0 or last > memory.data.size:
            raise OutOfBoundsError(
                f"{name!r} reaches outside the memory that it names",
                required=f"bytes 0 to {memory.data.size - 1}",
                found=f"{first} to {last - 1}",
            )
        at = offset if last > first else 0
        self.array: Array = np.ndarray(shape, kind, memory.data.data, at, strides)
        self.defined: npt.NDArray[np.bool_] = np.ndarray(
            (*shape, kind.itemsize), np.bool_, memory.defined.data, at, (*strides, 1)
        )

    def _reach(self, itemsize: int) -> tuple[int, int]:
        """The first byte that an element has, and the one after the last."""
        if any(extent <= 0 for extent in self.shape):
            return 0, 0
        steps = [stride * (extent - 1) for stride, extent in zip(self.strides, self.shape, strict=True)]
        low, high = sum(s for s in steps if s < 0), sum(s for s in steps if s > 0)
        return self.offset + low, self.offset + high + itemsize

    def check(self, index: tuple[int, ...], verb: str) -> None:
        """Raises `OutOfBoundsError` unless every dimension holds its index."""
        for axis, (at, extent) in enumerate(zip(index, self.shape, strict=True)):
            if not 0 <= at < extent:
                raise OutOfBoundsError(
                    f"{self.name}{list(index)} is {verb} outside the buffer",
                    required=f"0 <= index {axis} < {extent}",
                    found=f"{at}",
                    help="guard the access with a condition, or make the buffer larger",
                )

    def read(self, index: tuple[int, ...]) -> tuple[Any, bool]:
        """An element, and whether it is defined."""
        self.check(index, "read")
        return self.array[index], bool(self.defined[index].all())

    def write(self, index: tuple[int, ...], value: Any, defined: bool) -> None:
        """Raises `UndefinedReadError` when something undefined would reach a parameter."""
        self.check(index, "written")
        if self.memory.parameter and not defined:
            raise UndefinedReadError(
                f"an undefined element reaches the parameter {self.name!r}",
                found=f"{self.name}{list(index)} is written with a value that depends on memory that nothing wrote",
                help="write what is read first, or guard the store with a condition",
            )
        self.array[index] = value
        self.defined[index] = defined

    def box(self, offsets: tuple[int, ...], extents: tuple[int, ...], verb: str) -> tuple[slice, ...]:
        """A region as slices. Raises `OutOfBoundsError` unless it lies inside."""
        if all(extent > 0 for extent in extents):
            self.check(offsets, verb)
            self.check(tuple(o + e - 1 for o, e in zip(offsets, extents, strict=True)), verb)
        return tuple(slice(o, o + max(e, 0)) for o, e in zip(offsets, extents, strict=True))

    def window(self, name: str, offsets: tuple[int, ...], extents: tuple[int, ...], shape: tuple[int, ...]) -> View:
        """The region as a buffer of its own. Leading dimensions that `shape` lacks have extent 1."""
        self.box(offsets, extents, "matched")
        dropped = len(extents) - len(shape)
        if dropped < 0 or any(extent != 1 for extent in extents[:dropped]) or extents[dropped:] != shape:
            raise ArgumentError(
                f"{name!r} does not match its region",
                required=f"the shape {list(extents)}, without leading extents of 1",
                found=str(list(shape)),
            )
        start = self.offset + sum(o * s for o, s in zip(offsets, self.strides, strict=True))
        return View(name, self.memory, self.dtype, shape, self.strides[dropped:], start)


class Pointer:
    """What a function outside the compiler gets for an `address_of`: elements to read and write by position. Reading
    what nothing wrote is an error, and so is leaving the elements that may be touched."""

    def __init__(self, view: View, offset: int, extent: int | None) -> None:
        size = view.array.itemsize
        _, last = view._reach(size)  # pyright: ignore[reportPrivateUsage]
        self._start = view.offset + offset * size
        length = extent if extent is not None else max(0, (last - self._start) // size)
        self._view = View(view.name, view.memory, view.dtype, (length,), (size,), self._start)

    def __len__(self) -> int:
        return self._view.shape[0]

    def __getitem__(self, index: int) -> Any:
        value, defined = self._view.read((index,))
        if not defined:
            raise UndefinedReadError(f"element {index} behind the pointer to {self._view.name!r} was never written")
        return value

    def __setitem__(self, index: int, value: Any) -> None:
        self._view.write((index,), value, True)
