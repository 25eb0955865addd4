"""Where the largest and the smallest element stand: `row_argmax`, `row_argmin`, `col_argmax`, `col_argmin`.

The first of several; the first NaN where there is one, as in NumPy. Only valid elements take part. The position is an
INT32. No machine has an instruction for it: the elements are compared one by one.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tilewright.errors import ShapeError
from tilewright.ir.dtypes import INDEX, INT32
from tilewright.ir.expansion import Expansion
from tilewright.ir.loops import Special
from tilewright.ir.op import Array, Expanded, Needs, Op, Spelling, Work, operand
from tilewright.ir.scalar import BinaryKind, Scalar, Select, Value, binary, cast, constant
from tilewright.ir.types import Type
from tilewright.ops.common import (
    NUMBERS,
    TILE,
    VEC,
    array_type,
    check_dtype,
    check_operands,
    check_rank,
    elements_of,
    meaning_of,
    physical_of,
    widened,
)  # fmt: skip
from tilewright.ops.single import element, put, rows_and_columns


class PositionOp(Op):
    """Base: `axis` 1 searches each row, 0 each column; `largest` says which element is searched for."""

    tile: Value = operand(spaces=(VEC,), aliases=("input", "tensor"))
    tmp_tile: Value | None = operand(default=None, scratch=True, spaces=(VEC,), levels=(TILE,), aliases=("tmp",))
    axis: ClassVar[int] = 1
    better: ClassVar[BinaryKind] = BinaryKind.GT
    lowering = Needs(tile=VEC)
    dtypes = NUMBERS
    spelling = Spelling(pto=Expanded("a loop over single elements"))
    loops = Special("valid rows, 1", rowwise=True)

    def infer(self) -> Type:
        check_operands(self)
        check_dtype(self, "tile", self.tile.dtype, self.dtypes)
        kind = self.tile.type
        check_rank(self, "tile", kind, 2)
        if meaning_of(kind)[self.axis] == 0:
            raise ShapeError(f"{self.qualified_name} of no elements", span=self.span, found=repr(kind))
        return array_type(self.level, self._reduced(physical_of(kind)), INT32, self._reduced(meaning_of(kind)))

    def _reduced(self, shape: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
        return (shape[0], 1) if self.axis == 1 else (1, shape[1])

    def evaluate(self, *operands: Any, **_: Any) -> Array:
        search = np.argmax if self.better is BinaryKind.GT else np.argmin
        return np.asarray(search(widened(operands[0]), axis=self.axis, keepdims=True), np.int32)

    def defined(self, *masks: Any, **_: Any) -> Array:
        """Where every element along the axis is."""
        return np.asarray(masks[0].all(axis=self.axis, keepdims=True))

    def work(self) -> Work:
        elements = elements_of(self.tile.type)
        return Work("reduce", elements=elements, nbytes=elements * self.tile.dtype.nbytes)

    def expand(self, to: Expansion) -> Scalar:
        rows, columns = rows_and_columns(self.tile)
        outer, inner = (rows, columns) if self.axis == 1 else (columns, rows)

        def at(line: Scalar, position: Scalar) -> Scalar:
            return element(to, self.tile, (line, position) if self.axis == 1 else (position, line))

        def search(line: Scalar, out: Value) -> tuple[Scalar]:
            def compare(position: Scalar, best: Value, where: Value) -> tuple[Scalar, Scalar]:
                found = at(line, position)
                is_better = binary(self.better, found, best)
                if self.tile.dtype.is_float:  # nothing is better than a NaN, and a NaN is better than any number
                    number = binary(BinaryKind.EQ, best, best)
                    nan = binary(BinaryKind.AND, number, binary(BinaryKind.NE, found, found))
                    is_better = binary(BinaryKind.OR, is_better, nan)
                taken = to.named(is_better, "taken")
                return Select(taken, found, best), Select(taken, position, where)

            first = at(line, 0)
            _, where = to.loop(inner, (first, to.named(constant(0, INDEX), "where")), compare, "j")
            index = (line, 0) if self.axis == 1 else (0, line)
            return (put(to, out, index, cast(where, INT32)),)

        made = to.room(self.infer())
        return to.loop(outer, (made,), search)[0]


class RowArgmax(PositionOp, name="row_argmax", result_space=VEC):
    """``out[i, 0]`` is the least j with the largest ``tile[i, j]``."""


class RowArgmin(PositionOp, name="row_argmin", result_space=VEC):
    """``out[i, 0]`` is the least j with the smallest ``tile[i, j]``."""

    better = BinaryKind.LT


class ColArgmax(PositionOp, name="col_argmax", result_space=VEC):
    """``out[0, j]`` is the least i with the largest ``tile[i, j]``."""

    axis = 0
    loops = Special("1, valid columns")


class ColArgmin(PositionOp, name="col_argmin", result_space=VEC):
    """``out[0, j]`` is the least i with the smallest ``tile[i, j]``."""

    axis = 0
    loops = Special("1, valid columns")
    better = BinaryKind.LT
