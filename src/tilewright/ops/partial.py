"""Combinations of two operands of which one may have less: where only one has an element, that element is the result.

One of the two must cover the other. The result is as large as the larger, in its physical and in its valid shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from tilewright.errors import ShapeError
from tilewright.ir.expansion import Expansion
from tilewright.ir.loops import Special
from tilewright.ir.op import Array, Expanded, Needs, Op, Spelling, Work, operand
from tilewright.ir.scalar import Scalar, Shape, Value, maximum
from tilewright.ir.types import TileType, TileView, Type
from tilewright.ops.common import (
    NUMBERS,
    TILE,
    VEC,
    array_type,
    check_dtype,
    check_operands,
    check_rank,
    check_same_dtype,
    compute,
    elements_of,
    meaning_of,
    operand_types,
    physical_of,
    same_extent,
    same_shape,
)  # fmt: skip
from tilewright.ops.elementwise import Add, BinaryOp, Maximum, Minimum, Mul
from tilewright.ops.parts import Assemble


def _larger(a: Scalar, b: Scalar) -> Scalar:
    return a if same_extent(a, b) else max(a, b) if isinstance(a, int) and isinstance(b, int) else maximum(a, b)


class PartialOp(Op):
    """Base: `of` is the operation where both have an element."""

    lhs: Value = operand(spaces=(VEC,), aliases=("src0", "tile"))
    rhs: Value = operand(spaces=(VEC,), aliases=("src1",))
    of: ClassVar[type[BinaryOp]]
    formula: ClassVar[Callable[..., Any]]
    lowering = Needs(lhs=VEC, rhs=VEC)
    dtypes = NUMBERS
    spelling = Spelling(pto=Expanded("moves of both operands, and one instruction where they meet"))
    loops = Special("where an operand is")

    def infer(self) -> Type:
        check_operands(self)
        check_dtype(self, "lhs", self.lhs.dtype, self.dtypes)
        check_same_dtype(self, "lhs", "rhs")
        shapes: list[Shape] = []
        for name, value in self.operand_items():
            check_rank(self, name, value.type, 2)
            shapes.append(meaning_of(value.type))
        pairs = list(zip(*shapes, strict=True))
        known = [(a, b) for a, b in pairs if isinstance(a, int) and isinstance(b, int)]
        if not (all(a >= b for a, b in known) or all(a <= b for a, b in known)):
            raise ShapeError(
                f"no operand of {self.qualified_name} covers the other",
                span=self.span,
                required="one that has at least the rows and the columns of the other",
                found=operand_types(self),
            )
        valid = tuple(_larger(a, b) for a, b in pairs)
        physical = zip(physical_of(self.lhs.type), physical_of(self.rhs.type), strict=True)
        return array_type(self.level, tuple(_larger(a, b) for a, b in physical), self.lhs.dtype, valid)

    def evaluate(self, lhs: Array, rhs: Array) -> Array:
        out = np.zeros(np.maximum(lhs.shape, rhs.shape), lhs.dtype)
        both = tuple(slice(0, extent) for extent in np.minimum(lhs.shape, rhs.shape))
        for part in (lhs, rhs):
            out[: part.shape[0], : part.shape[1]] = part
        out[both] = compute(self.lhs.dtype, type(self).formula, lhs[both], rhs[both])
        return out

    def defined(self, lhs: Array, rhs: Array) -> Array:
        out = np.ones(np.maximum(lhs.shape, rhs.shape), np.bool_)
        for part in (lhs, rhs):
            out[: part.shape[0], : part.shape[1]] &= part
        return out

    def work(self) -> Work:
        elements = elements_of(self.infer())
        return Work("add", elements=elements, nbytes=3 * elements * self.lhs.dtype.nbytes)

    def expand(self, to: Expansion) -> Scalar:
        lhs, rhs = self.lhs, self.rhs
        made: Any = self.of
        if same_shape(meaning_of(lhs.type), meaning_of(rhs.type)) and same_shape(
            physical_of(lhs.type), physical_of(rhs.type)
        ):
            return to.op(made(lhs, rhs, level=TILE, span=self.span))
        kind = self.infer()
        assert isinstance(kind, TileType)
        parts = [self._enlarged(to, value, kind) for value in (lhs, rhs)]
        met = to.op(made(*parts, level=TILE, span=self.span))
        out = to.room(kind)
        for part in (lhs, rhs, met):
            out = to.op(Assemble(out, part, (0, 0), level=TILE, span=self.span))
        return out

    def _enlarged(self, to: Expansion, value: Value, kind: TileType) -> Value:
        """`value` in a tile of the physical shape of the result."""
        if same_shape(physical_of(value.type), kind.shape):
            return value
        room = to.room(TileType(kind.shape, kind.dtype, None, TileView(meaning_of(value.type))))
        return to.op(Assemble(room, value, (0, 0), level=TILE, span=self.span), value.name)


class PartAdd(PartialOp, name="part_add", result_space=VEC):
    """``out = lhs + rhs`` where both are, else the one that is."""

    of = Add
    formula = np.add


class PartMul(PartialOp, name="part_mul", result_space=VEC):
    """``out = lhs * rhs`` where both are, else the one that is."""

    of = Mul
    formula = np.multiply


class PartMax(PartialOp, name="part_max", result_space=VEC):
    """``out = max(lhs, rhs)`` where both are, else the one that is."""

    of = Maximum
    formula = np.maximum


class PartMin(PartialOp, name="part_min", result_space=VEC):
    """``out = min(lhs, rhs)`` where both are, else the one that is."""

    of = Minimum
    formula = np.minimum
