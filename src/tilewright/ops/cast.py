"""Conversion between element types.

| from, to | rule |
| --- | --- |
| float to narrower float | by `mode`; half to even, out of range gives an infinity |
| float to integer | by `mode`, then saturated; NaN gives 0 |
| integer to narrower integer | wraps |
| integer to float | through FP32, half to even; another mode only where nothing is rounded |
| to BOOL | whether it is not 0 (NaN is not) |
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.errors import OperandError
from tilewright.ir.dtypes import BF16, BOOL, FP16, FP32, DType
from tilewright.ir.loops import Elementwise
from tilewright.ir.op import Array, Spelling, attribute
from tilewright.ir.scalar import BinaryKind, Scalar, Select, UnaryKind, binary, constant, dtype_of, unary
from tilewright.ir.scalar import cast as cast_scalar
from tilewright.ir.types import Type
from tilewright.ops.common import ELEMENTS, VEC, rounded, saturated, widened
from tilewright.ops.elementwise import UnaryOp

MODES: dict[str, tuple[UnaryKind, Any]] = {
    "none": (UnaryKind.RINT, np.rint),
    "rint": (UnaryKind.RINT, np.rint),
    "round": (UnaryKind.RINT, np.rint),
    "floor": (UnaryKind.FLOOR, np.floor),
    "ceil": (UnaryKind.CEIL, np.ceil),
    "trunc": (UnaryKind.TRUNC, np.trunc),
    "odd": (UnaryKind.TRUNC, np.trunc),
}
"""Which integral float is next, by rounding mode. `none` and `round` are half to even, as `rint`; `odd` is what `trunc`
gives, or where that is even and not exact, its neighbour away from zero."""
NEAREST = ("none", "rint", "round")
DIGITS = {FP32: 24, FP16: 11, BF16: 8}
"""Significant bits."""
LEAST = {FP16: 2.0**-24, BF16: 2.0**-133}
LARGEST = {FP16: 65504.0, BF16: 2.0**128 - 2.0**120}
"""The smallest and the largest positive number of the narrow floats."""


# --- on arrays ----------------------------------------------------------------------------------------------------
def convert(array: Any, dtype: DType, mode: str = "round") -> Array:
    """`array` as `dtype`, by the table above."""
    array = np.asarray(array)
    wide = widened(array)
    floating = wide.dtype.kind == "f"
    if dtype is BOOL:
        return wide != 0
    if dtype.is_float:
        return directed(wide, dtype, mode) if floating else rounded(wide.astype(np.float32), dtype)
    if not floating:
        return rounded(wide, dtype)
    with np.errstate(all="ignore"):
        exact: Any = wide.astype(np.float64)
        integral: Any = MODES[mode][1](exact)
        if mode == "odd":
            even = np.trunc(integral / 2) * 2 == integral
            integral = integral + np.sign(exact) * (even & (integral != exact))
    return saturated(integral, dtype)


def directed(wide: Array, dtype: DType, mode: str) -> Array:
    """Floats as narrower floats: of the two next to each, the one that `mode` chooses."""
    nearest = rounded(wide, dtype)
    if mode in NEAREST or dtype is FP32:
        return nearest
    kind = nearest.dtype.type
    with np.errstate(all="ignore"):
        back = nearest.astype(np.float32)
        lower = np.where(back > wide, np.nextafter(nearest, kind(-np.inf)), nearest)
        upper = np.where(back < wide, np.nextafter(nearest, kind(np.inf)), nearest)
        inner, outer = np.where(wide < 0, upper, lower), np.where(wide < 0, lower, upper)
    odd = (inner.view(np.uint16) & 1).astype(np.bool_)
    chosen = {"floor": lower, "ceil": upper, "trunc": inner, "odd": np.where(odd, inner, outer)}[mode]
    return np.where(np.isnan(wide), nearest, chosen).astype(nearest.dtype)


# --- on one element -----------------------------------------------------------------------------------------------
def _element(op: Any, x: Scalar) -> Scalar:
    to: DType = op.target_type
    if to is BOOL:
        return binary(BinaryKind.NE, x, constant(0, dtype_of(x)))
    floating = dtype_of(x).is_float
    if to.is_float:
        return _narrowed(x, to, op.mode) if floating and op.mode not in NEAREST else cast_scalar(x, FP32)
    if floating and op.mode == "odd":
        x = _odd_integer(x)
    elif floating and op.mode != "trunc":
        x = unary(MODES[op.mode][0], x)
    return cast_scalar(x, to)


def _odd_integer(x: Scalar) -> Scalar:
    """`x` truncated, or one further from zero where that is even and not exact."""
    whole, one = unary(UnaryKind.TRUNC, x), constant(1.0, FP32)
    half = whole * constant(0.5, FP32)
    even = binary(BinaryKind.EQ, unary(UnaryKind.TRUNC, half), half)
    moved = binary(BinaryKind.AND, even, binary(BinaryKind.NE, whole, x))
    outer = Select(binary(BinaryKind.LT, x, constant(0.0, FP32)), whole - one, whole + one)
    return Select(moved, outer, whole)


def _narrowed(x: Scalar, to: DType, mode: str) -> Scalar:
    """An FP32 rounded to `to` by `mode`, as an FP32. Moving a number by more than half and less than one and a half of
    the distance to its neighbour, and rounding to nearest, gives the neighbour: 1.25 units of rounding do."""
    if to is FP32:
        return x
    zero, infinity = constant(0.0, FP32), constant(float("inf"), FP32)
    nearest = _nearest(x, to)
    size, near = unary(UnaryKind.ABS, x), unary(UnaryKind.ABS, nearest)
    step = binary(
        BinaryKind.MAX, near * constant(1.25 * 2.0 ** -DIGITS[to], FP32), constant(0.75 * LEAST[to], FP32)
    )  # fmt: skip
    below = Select(binary(BinaryKind.EQ, near, infinity), constant(LARGEST[to], FP32), _nearest(near - step, to))
    inner = Select(binary(BinaryKind.GT, near, size), below, near)
    outer = Select(binary(BinaryKind.LT, near, size), _nearest(near + step, to), near)
    negative = binary(BinaryKind.LT, x, zero)
    lower, upper = Select(negative, -outer, inner), Select(negative, -inner, outer)
    match mode:
        case "floor":
            chosen = lower
        case "ceil":
            chosen = upper
        case "trunc":
            chosen = Select(negative, -inner, inner)
        case _:
            # The middle of two neighbours is rounded to the even one; the largest number is odd.
            half = constant(0.5, FP32)
            even = _nearest(inner * half + outer * half, to)
            odd = Select(binary(BinaryKind.EQ, outer, infinity), inner, inner - even + outer)
            chosen = Select(negative, -odd, odd)
    return Select(binary(BinaryKind.EQ, nearest, x), nearest, chosen)


def _nearest(x: Scalar, to: DType) -> Scalar:
    return cast_scalar(cast_scalar(x, to), FP32)


class Cast(UnaryOp, name="cast", result_space=VEC, inplace=True, converts=True):
    """``out = tile`` as `target_type`. Floats are rounded by `mode` (`rint`, `round` and `none`: half to even; `floor`,
    `ceil`, `trunc`; `odd`: of the two next to it the one whose last bit is 1). Integers made of floats are saturated,
    NaN gives 0. Integers to narrower ones wrap; integers become floats through FP32, half to even. To BOOL: whether it
    differs from 0."""

    target_type: DType = attribute(aliases=("dtype",))
    mode: str = attribute(default="round")
    work_kind = "cast"
    dtypes = ELEMENTS
    formula = convert
    spelling = Spelling()
    loops = Elementwise(_element)

    def result_dtype(self) -> DType:
        return self.target_type

    def infer(self) -> Type:
        self._check_mode()
        if self.target_type not in ELEMENTS:
            raise OperandError(
                f"{self.qualified_name} does not make {self.target_type}",
                span=self.span,
                required=" or ".join(d.name for d in ELEMENTS),
                found=f"{self.tile.type!r} to {self.target_type}",
            )
        return super().infer()

    def _check_mode(self) -> None:
        """Integers become floats half to even, whatever is asked; so nothing else is, unless none is rounded."""
        source, to = self.tile.dtype, self.target_type
        rounds = source.is_integer and to in DIGITS and source.bits > DIGITS[to]
        if self.mode in MODES and (self.mode in NEAREST or not rounds):
            return
        raise OperandError(
            f"{self.qualified_name} has no mode {self.mode!r}" + (f" from {source} to {to}" if rounds else ""),
            span=self.span,
            required=" or ".join(NEAREST if rounds else MODES),
            found=repr(self.mode),
        )

    def evaluate(self, *operands: Any, **_: Any) -> Array:
        return convert(operands[0], self.target_type, self.mode)
