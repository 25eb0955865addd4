"""From the arguments of a call to what a kernel is specialised for.

Arrays are known by shape, dtype and strides. A number is given when the kernel runs, so that another value needs no
new kernel; where the kernel's source needs its value (a tile's shape, a static condition) it becomes a constant, and
each value makes a kernel of its own. Bools, strings, dtypes and enums are always constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

import numpy as np

from tilewright.errors import ArgumentError
from tilewright.frontend import MISSING, ParameterSpec
from tilewright.ir.dtypes import BOOL, FP32, INDEX, DType
from tilewright.ir.function import Direction
from tilewright.ir.types import ScalarType
from tilewright.runtime.arrays import Argument, as_argument, is_array_like, tensor_type
from tilewright.runtime.checks import check_aliasing, check_output

MISS: Any = object()
"""What a short cut returns when a call is not like the one that it was made from."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number given at run time."""

    value: int | float
    dtype: DType
    is_flexible: bool
    """Whether the declaration allows it to become a constant instead."""


@dataclass(frozen=True, slots=True)
class Static:
    """A value that the kernel is specialised for; it is no parameter of the program."""

    value: object


@dataclass(frozen=True, slots=True)
class Fresh:
    """An output that the caller left out: it is made, and returned."""


Given = Argument | Number | Static | Fresh


@dataclass(frozen=True, slots=True)
class Bound:
    """The arguments of one call, one for each declared parameter."""

    specs: tuple[ParameterSpec, ...]
    given: tuple[Given, ...]
    key: tuple[object, ...]
    """What tells this specialisation from others."""

    @property
    def array_kind(self) -> str:
        """The kind of array in which results go back: torch or jax when any argument is one, else numpy."""
        kinds = {item.kind for item in self.given if isinstance(item, Argument)}
        return next((kind for kind in ("torch", "jax") if kind in kinds), "numpy")

    def types(self) -> list[object]:
        """What the reader needs of each argument: its type, its value where that is static, or None."""
        return [_read_as(spec, item) for spec, item in zip(self.specs, self.given, strict=True)]

    def check_aliasing(self) -> None:
        """Raises `ArgumentError` when an output shares memory with another argument."""
        check_aliasing(
            [
                (spec.name, spec.direction is not Direction.IN, item)
                for spec, item in zip(self.specs, self.given, strict=True)
                if isinstance(item, Argument)
            ]
        )


def bind(
    name: str, specs: Sequence[ParameterSpec], args: Sequence[object], named: dict[str, object], static: frozenset[str]
) -> Bound:
    """The arguments of a call of kernel `name`. Numbers for the parameters in `static` become constants.
    Raises `ArgumentError` for a wrong number or kind of arguments."""
    values = _matched(name, specs, args, named)
    given = tuple(_given(spec, value, spec.name in static) for spec, value in zip(specs, values, strict=True))
    return Bound(tuple(specs), given, tuple(map(_key, given)))


def _matched(
    name: str, specs: Sequence[ParameterSpec], args: Sequence[object], named: dict[str, object]
) -> list[object]:
    """One value for each parameter, `MISSING` for an output that is left out."""
    if len(args) > len(specs):
        raise ArgumentError(
            f"{name} takes {len(specs)} arguments",
            found=str(len(args)),
            help="pass " + ", ".join(s.name for s in specs),
        )
    values = dict(zip([spec.name for spec in specs], args, strict=False))
    known = {spec.name for spec in specs}
    for key, value in named.items():
        if key not in known or key in values:
            raise ArgumentError(
                f"{name} got {key!r} twice" if key in values else f"{name} has no parameter {key!r}",
                help="the parameters are " + ", ".join(s.name for s in specs),
            )
        values[key] = value
    for spec in specs:
        if spec.name in values:
            continue
        if spec.default is MISSING and spec.direction is not Direction.OUT:
            raise ArgumentError(
                f"{name} needs a value for {spec.name!r}",
                required=", ".join(s.name for s in specs),
                found=f"{len(args) + len(named)} arguments",
            )
        values[spec.name] = spec.default
    return [values[spec.name] for spec in specs]


def _given(spec: ParameterSpec, value: object, is_static: bool) -> Given:
    if value is MISSING:
        return Fresh()
    if isinstance(value, np.generic):
        value = cast("object", value.item())
    if spec.kind == "tensor" or (spec.kind == "any" and is_array_like(value)):
        return _array(spec, value)
    if is_array_like(value):
        raise ArgumentError(
            f"argument {spec.name!r} is an array", required="a number", help=f"pass {spec.name}.item() if it holds one"
        )
    if spec.kind == "scalar":
        return _number(spec, value, spec.dtype or INDEX)
    if not isinstance(value, int | float) or isinstance(value, bool) or is_static:
        return _static(spec, value)
    return Number(value, FP32 if isinstance(value, float) else INDEX, is_flexible=True)


def _static(spec: ParameterSpec, value: object) -> Static:
    frozen = _frozen(value)
    if frozen is MISS:
        raise ArgumentError(
            f"argument {spec.name!r} is nothing that a kernel takes",
            required="an array, a number, a bool, a string, a dtype, an enum's member, or a tuple of those",
            found=type(value).__name__,
        )
    return Static(frozen)


def _frozen(value: object) -> object:
    """`value` with tuples for lists; `MISS` when a kernel cannot be specialised for it."""
    if isinstance(value, list | tuple):
        items = tuple(_frozen(item) for item in cast("Sequence[object]", value))
        return MISS if any(item is MISS for item in items) else items
    return value if value is None or isinstance(value, bool | int | float | str | DType | Enum) else MISS


def _array(spec: ParameterSpec, value: object) -> Argument:
    argument = as_argument(value, spec.name)
    if argument.view.size == 0:
        raise ArgumentError(
            f"argument {spec.name!r} has no elements", required="extents of at least 1", found=str(argument.view.shape)
        )
    if spec.direction is not Direction.IN:
        check_output(spec.name, argument)
    return argument


def _number(spec: ParameterSpec, value: object, dtype: DType) -> Number:
    """A number for a declared scalar. Raises `ArgumentError` when the dtype cannot hold it."""
    fits = isinstance(value, int | float)
    if fits and not dtype.is_float:
        low, high = _limits(dtype)
        fits = isinstance(value, int) and low <= value <= high
    if not fits:
        raise ArgumentError(
            f"argument {spec.name!r} is no number of its parameter's dtype",
            required=f"a number that {dtype} holds",
            found=f"{value!r} ({type(value).__name__})",
        )
    number: Any = value
    return Number(float(number) if dtype.is_float else int(number), dtype, is_flexible=False)


def _limits(dtype: DType) -> tuple[int, int]:
    if dtype is BOOL:
        return 0, 1
    if dtype.kind == "uint":
        return 0, 2**dtype.bits - 1
    return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1


def _key(item: Given) -> object:
    match item:
        case Argument(view=view):
            return view.dtype, view.shape, view.strides, view.flags.aligned
        case Number(dtype=dtype, is_flexible=flexible):
            return dtype, flexible
        case Static(value=value):
            # With its class: True, 1 and 1.0 are equal and make different kernels; so do 0.0 and -0.0.
            return type(value), repr(value) if isinstance(value, float) else value
        case Fresh():
            return None


def _read_as(spec: ParameterSpec, item: Given) -> object:
    match item:
        case Argument(view=view):
            return tensor_type(view, spec.name)
        case Number(dtype=dtype):
            return ScalarType(dtype)
        case Static(value=value):
            return value
        case Fresh():
            return None
