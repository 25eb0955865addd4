"""How a compiled kernel is called: plain data that is stored beside its object code.

An extent is a number, ``["slot", n]`` (what slot `n` of the call holds), or ``[operation, a, b]`` of two extents.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tilewright.codegen.native.guards import Guard
from tilewright.errors import CodegenError
from tilewright.ir.dtypes import by_name
from tilewright.ir.scalar import Binary, Scalar, Value

Extent = int | tuple[Any, ...]

_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "//": lambda a, b: a // b,
    "%": lambda a, b: a % b, "min": min, "max": max,
}  # fmt: skip


def extent_code(extent: Scalar, slots: Mapping[Value, int]) -> Extent:
    """An extent as data. Raises `CodegenError` for one that the caller cannot work out."""
    if isinstance(extent, int):
        return extent
    if isinstance(extent, Value) and extent in slots:
        return ("slot", slots[extent])
    if isinstance(extent, Binary) and extent.kind.value in _OPERATIONS:
        return (extent.kind.value, extent_code(extent.lhs, slots), extent_code(extent.rhs, slots))
    raise CodegenError(
        "the shape of a result depends on values inside the kernel",
        found=repr(extent),
        help="make the result an output parameter",
    )


def extent_value(extent: Extent, slots: Sequence[int]) -> int:
    """The number that an extent is in a call with these slots."""
    if isinstance(extent, int):
        return extent
    if extent[0] == "slot":
        slot: int = extent[1]
        return slots[slot]
    return _OPERATIONS[extent[0]](extent_value(extent[1], slots), extent_value(extent[2], slots))


def _tupled(data: Any) -> Any:
    return tuple(_tupled(item) for item in cast("list[Any]", data)) if isinstance(data, list) else data


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the kernel. `shape` None: a scalar. `strides`, in elements, None: without gaps."""

    name: str
    dtype: str
    shape: tuple[Extent, ...] | None
    strides: tuple[Extent, ...] | None
    direction: str

    @property
    def kind(self) -> str:
        return "scalar" if self.shape is None else "tensor"

    @property
    def is_output(self) -> bool:
        return self.direction != "In"

    @property
    def numpy(self) -> npt.DTypeLike:
        """NumPy's name of the element type."""
        return by_name(self.dtype).numpy


@dataclass(frozen=True, slots=True)
class Result:
    """A value that the kernel returns. `kind`: ``param`` (the output parameter `index`), ``tensor`` (memory of the
    caller, of `shape`, without gaps) or ``scalar``."""

    kind: str
    dtype: str
    index: int | None = None
    shape: tuple[Extent, ...] | None = None

    @property
    def numpy(self) -> npt.DTypeLike:
        return by_name(self.dtype).numpy


@dataclass(frozen=True, slots=True)
class Signature:
    """How the entry is called; see `kernel`."""

    name: str
    params: tuple[Parameter, ...]
    symbols: tuple[tuple[int, int], ...]
    """extents read from arrays: (parameter, axis)"""
    results: tuple[Result, ...]
    workspace_bytes: int
    implicit: int
    """how many results at the end are output parameters that the user's source does not return"""
    guards: tuple[Guard, ...]

    def extents(self, shape: Sequence[Extent], slots: Sequence[int]) -> tuple[int, ...]:
        """The numbers that extents of a parameter or result are in a call with these slots."""
        return tuple(extent_value(extent, slots) for extent in shape)

    def as_json(self) -> str:
        return json.dumps(
            {
                "name": self.name,
                "params": [[p.name, p.dtype, p.shape, p.strides, p.direction] for p in self.params],
                "symbols": self.symbols,
                "results": [[r.kind, r.dtype, r.index, r.shape] for r in self.results],
                "workspace_bytes": self.workspace_bytes,
                "implicit": self.implicit,
                "guards": [guard.as_json() for guard in self.guards],
            }
        )

    @staticmethod
    def from_json(text: str) -> Signature:
        """Raises `KeyError`, `ValueError` or `TypeError` for text that is no signature."""
        data = json.loads(text)
        return Signature(
            data["name"],
            tuple(Parameter(*_tupled(item)) for item in data["params"]),
            _tupled(data["symbols"]),
            tuple(Result(*_tupled(item)) for item in data["results"]),
            data["workspace_bytes"],
            data["implicit"],
            tuple(Guard.from_json(item) for item in data["guards"]),
        )


def number_bits(value: object, dtype: np.dtype[Any]) -> int:
    """A number as a slot holds it."""
    if dtype.kind in "iub":
        return int(np.asarray(value).astype(dtype))
    return int.from_bytes(np.asarray(value).astype(dtype).tobytes(), "little")


def number_of(bits: int, dtype: np.dtype[Any]) -> Any:
    """The number that a slot holds."""
    if dtype.kind == "b":
        return bool(bits & 1)
    raw = (bits & (2**64 - 1)).to_bytes(8, "little")[: dtype.itemsize]
    return np.frombuffer(raw, dtype)[0]
