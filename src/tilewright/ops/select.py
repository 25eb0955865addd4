"""Comparison and selection. Masks are BOOL with the logical shape; a machine may pack them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from tilewright.errors import OperandError
from tilewright.ir.dtypes import BOOL, DType
from tilewright.ir.loops import Elementwise
from tilewright.ir.op import Array, Needs, Op, Spelling, attribute, is_array, operand
from tilewright.ir.scalar import BinaryKind, Scalar, Select, Value, binary
from tilewright.ir.types import TileType, Type
from tilewright.ops.common import (
    NUMBERS,
    TILE,
    VEC,
    check_dtype,
    check_operands,
    check_same_dtype,
    check_scalar,
    compute,
    cropped,
)  # fmt: skip
from tilewright.ops.elementwise import BinaryOp, ElementwiseOp

COMPARISONS: tuple[tuple[BinaryKind, Callable[[Any, Any], Any]], ...] = (
    (BinaryKind.EQ, np.equal), (BinaryKind.NE, np.not_equal), (BinaryKind.LT, np.less),
    (BinaryKind.LE, np.less_equal), (BinaryKind.GT, np.greater), (BinaryKind.GE, np.greater_equal),
)  # fmt: skip
"""By `cmp_type`: eq, ne, lt, le, gt, ge."""


def _compare(op: Cmp, a: Scalar, b: Scalar) -> Scalar:
    return binary(COMPARISONS[op.cmp_type][0], a, b)


class Cmp(BinaryOp, name="cmp", scalar_name="cmps", result_space=VEC):
    """``out = lhs <cmp_type> rhs`` as BOOL. `cmp_type`: 0 eq, 1 ne, 2 lt, 3 le, 4 gt, 5 ge. With NaN on either side
    every comparison is false, except ne, which is true."""

    cmp_type: int = attribute(default=0)
    work_kind = "compare"
    spelling = Spelling()
    loops = Elementwise(_compare)

    def result_dtype(self) -> DType:
        return BOOL

    def infer(self) -> Type:
        if self.cmp_type not in range(len(COMPARISONS)):
            raise OperandError(
                f"{self.qualified_name} has no cmp_type {self.cmp_type!r}",
                span=self.span,
                required="0 eq, 1 ne, 2 lt, 3 le, 4 gt, 5 ge",
                found=repr(self.cmp_type),
            )
        return super().infer()

    def evaluate(self, *operands: Any, **_: Any) -> Array:
        given = self._read(operands)
        if np.ndim(given[1]):
            given = list(cropped(*given))
        return compute(BOOL, COMPARISONS[self.cmp_type][1], *given)


def _choose_element(op: Op, mask: Scalar, lhs: Scalar, rhs: Scalar) -> Scalar:
    return Select(mask, lhs, rhs)


def _choose(mask: Any, lhs: Any, rhs: Any) -> Any:
    return cast("Any", np.where(mask, lhs, rhs))


class Sel(ElementwiseOp, name="sel", scalar_name="sels", result_space=VEC, inplace=True, not_aliased=("mask", "tmp")):
    """``out = lhs where mask else rhs``. `mask` is BOOL, of the operands' shape."""

    mask: Value = operand(spaces=(VEC,))
    lhs: Value = operand(spaces=(VEC,), aliases=("src",))
    rhs: Scalar = operand(spaces=(VEC,), scalar=True, aliases=("scalar",))
    tmp: Value | None = operand(default=None, scratch=True, spaces=(VEC,), levels=(TILE,))
    work_kind = "select"
    dtypes = NUMBERS
    formula = _choose
    spelling = Spelling()
    lowering = Needs(mask=VEC, lhs=VEC, rhs=VEC)
    loops = Elementwise(_choose_element)

    def result_dtype(self) -> DType:
        return self.lhs.dtype

    def check(self) -> None:
        check_operands(self)
        check_dtype(self, "mask", self.mask.dtype, (BOOL,))
        check_dtype(self, "lhs", self.lhs.dtype, self.dtypes)
        if is_array(self.rhs):
            check_same_dtype(self, "lhs", "rhs")
        else:
            check_scalar(self, "rhs", self.rhs, self.lhs.dtype)

    def scratch(self) -> dict[str, TileType]:
        assert isinstance(self.lhs.type, TileType)
        return {"tmp": TileType(self.lhs.type.shape, self.lhs.dtype, VEC)}

    def _read(self, operands: tuple[Any, ...]) -> list[Any]:
        mask, lhs, rhs = operands[:3]
        return [mask, lhs, rhs if is_array(self.rhs) else np.asarray(rhs).astype(np.dtype(self.lhs.dtype.numpy))]
