"""Conversion between element types.

| from, to | rule |
| --- | --- |
| float to narrower float | half to even; out of range gives an infinity |
| float to integer | by `mode`, then saturated; NaN gives 0 |
| integer to narrower integer | wraps |
| integer to float | through FP32, half to even |
| to BOOL | whether it is not 0 (NaN is not) |
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.errors import OperandError
from tilewright.ir.dtypes import BOOL, FP32, DType
from tilewright.ir.loops import Elementwise
from tilewright.ir.op import Array, Spelling, attribute
from tilewright.ir.scalar import BinaryKind, Scalar, UnaryKind, binary, constant, dtype_of, unary
from tilewright.ir.scalar import cast as cast_scalar
from tilewright.ir.types import Type
from tilewright.ops.common import ELEMENTS, VEC, integer_limits, rounded, widened
from tilewright.ops.elementwise import UnaryOp

MODES: dict[str, tuple[UnaryKind, Any]] = {
    "none": (UnaryKind.RINT, np.rint),
    "rint": (UnaryKind.RINT, np.rint),
    "round": (UnaryKind.RINT, np.rint),
    "floor": (UnaryKind.FLOOR, np.floor),
    "ceil": (UnaryKind.CEIL, np.ceil),
    "trunc": (UnaryKind.TRUNC, np.trunc),
}
"""What each rounding mode does to a float that becomes an integer. `none` and `round` are half to even, as `rint`."""
NEAREST = ("none", "rint", "round")


def convert(array: Any, dtype: DType, mode: str = "round") -> Array:
    """`array` as `dtype`, by the table above."""
    array = np.asarray(array)
    wide = widened(array)
    floating = wide.dtype.kind == "f"
    if dtype is BOOL:
        return wide != 0
    if dtype.is_float:
        return rounded(wide if floating else wide.astype(np.float32), dtype)
    if not floating:
        return rounded(wide, dtype)
    low, high = integer_limits(dtype)
    with np.errstate(all="ignore"):
        integral = np.nan_to_num(MODES[mode][1](wide.astype(np.float64)), nan=0.0, posinf=np.inf, neginf=-np.inf)
        return np.clip(integral, low, high).astype(dtype.numpy)


def _element(op: Any, x: Scalar) -> Scalar:
    to: DType = op.target_type
    if to is BOOL:
        return binary(BinaryKind.NE, x, constant(0, dtype_of(x)))
    if to.is_float:
        return cast_scalar(x, FP32)
    if dtype_of(x).is_float and op.mode != "trunc":
        x = unary(MODES[op.mode][0], x)
    return cast_scalar(x, to)


class Cast(UnaryOp, name="cast", result_space=VEC, inplace=True, converts=True):
    """``out = tile`` as `target_type`. Floats to floats: half to even. Floats to integers: rounded by `mode` (`rint`,
    `round` and `none`: half to even; `floor`, `ceil`, `trunc`), saturated, NaN gives 0. Integers to narrower ones
    wrap; integers become floats through FP32. To BOOL: whether it differs from 0."""

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
        between_floats = self.tile.dtype.is_float and self.target_type.is_float
        if self.mode not in MODES or (between_floats and self.mode not in NEAREST):
            raise OperandError(
                f"{self.qualified_name} has no mode {self.mode!r}" + (" between floats" if between_floats else ""),
                span=self.span,
                required=" or ".join(NEAREST if between_floats else MODES),
                found=repr(self.mode),
            )
        if self.target_type not in ELEMENTS:
            raise OperandError(
                f"{self.qualified_name} does not make {self.target_type}",
                span=self.span,
                required=" or ".join(d.name for d in ELEMENTS),
                found=f"{self.tile.type!r} to {self.target_type}",
            )
        return super().infer()

    def evaluate(self, *operands: Any, **_: Any) -> Array:
        return convert(operands[0], self.target_type, self.mode)
