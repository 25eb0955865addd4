"""Sorting, largest first, of pairs of a value and its index.

A pair takes two places of FP32: the value, and the bits of its index, an INT32. `sort32` makes pairs of blocks of 32
values; `mrgsort` merges runs of pairs that are sorted. Equal values keep their order. `pl.gather_mask` takes values
(``mask_pattern=1``) and indices (``mask_pattern=2, output_dtype=pl.INT32``) out of pairs.

No instruction of the text sorts: each pair is put where the number of pairs before it says, found by comparing in a
block, and by halving in runs. The order of NaN is not stated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.errors import OperandError, ShapeError
from tilewright.ir.dtypes import BOOL, FP32, INDEX, INT32
from tilewright.ir.expansion import Body, Expansion
from tilewright.ir.loops import Special
from tilewright.ir.op import Array, Expanded, Level, Needs, Op, Spelling, Work, attribute, operand
from tilewright.ir.scalar import (
    BinaryKind,
    Scalar,
    Select,
    Shape,
    Value,
    binary,
    constant,
    maximum,
    minimum,
)  # fmt: skip
from tilewright.ir.types import Type
from tilewright.ops.bits import ReinterpretView
from tilewright.ops.common import (
    TILE,
    VEC,
    array_type,
    check_dtype,
    check_operands,
    check_rank,
    elements_of,
    meaning_of,
    operand_types,
    physical_of,
    same_shape,
)  # fmt: skip
from tilewright.ops.gather import check_indices
from tilewright.ops.scatter import ScatterMask
from tilewright.ops.single import ADD, FLOORDIV, MUL, SUB, each, element, put, rows_and_columns

ONE_BY_ONE = Expanded("a loop over single elements")
BLOCK = 32
RUNS = 4
"""Runs that one merge takes."""
LONGEST = 31
"""Halvings that find a place in a run of any length."""


def _bits(indices: Array) -> Array:
    return np.ascontiguousarray(indices.astype(np.int32)).view(np.float32)


class Sort32(Op, name="sort32", result_space=VEC):
    """Each block of 32 columns of `src` becomes 32 sorted pairs of a value and what `idx` has there: [M, N] gives
    [M, 2 N]. `idx` has as many columns, and the rows of `src` or one. A last block may be shorter."""

    src: Value = operand(spaces=(VEC,), aliases=("input", "tensor", "tile"))
    idx: Value = operand(spaces=(VEC,))
    lowering = Needs(src=VEC, idx=VEC)
    dtypes = (FP32,)
    spelling = Spelling(pto=ONE_BY_ONE)
    loops = Special("rows, twice the columns", rowwise=True)

    def infer(self) -> Type:
        check_operands(self)
        check_dtype(self, "src", self.src.dtype, self.dtypes)
        check_indices(self, "idx", self.idx)
        for name, value in self.operand_items():
            check_rank(self, name, value.type, 2)
        (rows, columns), given = physical_of(self.src.type), physical_of(self.idx.type)
        if not (same_shape(given, (rows, columns)) or same_shape(given, (1, columns))):
            raise ShapeError(
                f"{self.qualified_name} wants an index for each column",
                span=self.span,
                required=f"idx [{rows}, {columns}] or [1, {columns}]",
                found=operand_types(self),
            )
        shapes = (physical_of(self.src.type), meaning_of(self.src.type))
        physical, valid = ((m, binary(MUL, n, 2)) for m, n in shapes)
        return array_type(self.level, physical, FP32, valid)

    def evaluate(self, src: Array, idx: Array) -> Array:
        rows, columns = src.shape
        out = np.zeros((rows, 2 * columns), np.float32)
        given = np.broadcast_to(idx[:, :columns], src.shape)
        for start in range(0, columns, BLOCK):
            part = slice(start, min(start + BLOCK, columns))
            order = np.argsort(-src[:, part], axis=1, kind="stable")
            pairs = out[:, 2 * start : 2 * part.stop]
            pairs[:, 0::2] = np.take_along_axis(src[:, part], order, 1)
            pairs[:, 1::2] = _bits(np.take_along_axis(given[:, part], order, 1))
        return out

    def defined(self, src: Array, idx: Array) -> Array:
        whole = src & np.broadcast_to(idx[:, : src.shape[1]], src.shape)
        return np.repeat(np.broadcast_to(whole.all(axis=1, keepdims=True), src.shape), 2, axis=1)

    def work(self) -> Work:
        elements = elements_of(self.src.type)
        return Work("compare", elements=elements * BLOCK, nbytes=3 * elements * FP32.nbytes)

    def expand(self, to: Expansion) -> Scalar:
        rows, columns = rows_and_columns(self.src)
        single = physical_of(self.idx.type)[0] == 1

        def place(i: Scalar, j: Scalar, values: Value, indices: Value) -> tuple[Scalar, Scalar]:
            start = to.named(binary(MUL, binary(FLOORDIV, j, BLOCK), BLOCK), "start")
            value = element(to, self.src, (i, j))

            def count(k: Scalar, before: Scalar) -> tuple[Scalar]:
                other = element(to, self.src, (i, binary(ADD, start, k)))
                earlier = binary(BinaryKind.LT, binary(ADD, start, k), j)
                equal = binary(BinaryKind.AND, binary(BinaryKind.EQ, other, value), earlier)
                ahead = binary(BinaryKind.OR, binary(BinaryKind.GT, other, value), equal)
                return (binary(ADD, before, Select(ahead, constant(1, INDEX), constant(0, INDEX))),)

            (rank,) = to.loop(minimum(binary(SUB, columns, start), BLOCK), (0,), count, "k")
            index = element(to, self.idx, (0 if single else i, j))
            at = (i, to.named(binary(ADD, start, rank), "place"))
            return put(to, values, at, value), put(to, indices, at, index)

        rooms = rooms_for(to, self.src.type, self.level)
        made = each(to, rows, columns, rooms, place)
        return interleaved(to, made[0], made[1], to.room(self.infer()))


def rooms_for(to: Expansion, kind: Type, level: Level) -> tuple[Value, Value]:
    """Room for the values and the indices of pairs, as many as `kind` has elements."""
    rooms = [to.room(array_type(level, physical_of(kind), dtype, meaning_of(kind))) for dtype in (FP32, INT32)]
    return rooms[0], rooms[1]


def interleaved(to: Expansion, values: Value, indices: Value, out: Value) -> Value:
    """The pairs of `values` and `indices`, in `out`."""
    out = to.op(ScatterMask(out, 1, values, level=TILE, span=values.span), out.name)
    bits = to.op(ReinterpretView(out, INT32, level=TILE, span=values.span), out.name)
    bits = to.op(ScatterMask(bits, 2, indices, level=TILE, span=values.span), out.name)
    return to.op(ReinterpretView(bits, FP32, level=TILE, span=values.span), out.name)


# --- merging ----------------------------------------------------------------------------------------------------------
class Runs:
    """The pairs of one row of a tile, as values and as bits of indices."""

    def __init__(self, to: Expansion, pairs: Value, row: Scalar) -> None:
        self.to = to
        self.pairs = pairs
        self.row = row

    def value(self, at: Scalar) -> Value:
        return element(self.to, self.pairs, (self.row, binary(MUL, at, 2)))

    def before(self, start: Scalar, length: Scalar, last: Scalar, value: Value, ties: Scalar, steps: int) -> Scalar:
        """How many pairs of the sorted run [start, start + length) stand before `value`; those that are equal to it
        do while `ties` holds. `last` is the greatest place there is."""

        def halve(_: Scalar, low: Scalar, high: Scalar) -> tuple[Scalar, Scalar]:
            middle = self.to.named(binary(FLOORDIV, binary(ADD, low, high), 2), "middle")
            other = self.value(minimum(binary(ADD, start, middle), last))
            equal = binary(BinaryKind.AND, ties, binary(BinaryKind.EQ, other, value))
            ahead = binary(BinaryKind.OR, binary(BinaryKind.GT, other, value), equal)
            goes = self.to.named(binary(BinaryKind.AND, binary(BinaryKind.LT, low, high), ahead), "goes")
            return Select(goes, binary(ADD, middle, 1), low), Select(goes, high, middle)

        low, _ = self.to.loop(steps, (0, length), halve, "step")
        return low


def _half(shape: Shape) -> Shape:
    return (shape[0], binary(FLOORDIV, shape[1], 2))


def check_pairs(op: Op, name: str, value: Value) -> None:
    """Pairs are FP32, two places each. Raises `DTypeError`, `ShapeError`."""
    check_dtype(op, name, value.dtype, op.dtypes)
    check_rank(op, name, value.type, 2)
    columns = physical_of(value.type)[1]
    if isinstance(columns, int) and columns % 2:
        raise ShapeError(
            f"{op.qualified_name} takes pairs of a value and an index",
            span=op.span,
            required="an even number of columns",
            found=operand_types(op),
        )


def sorted_pairs(pairs: Array) -> Array:
    """The pairs of each row, by their values, largest first."""
    values = np.ascontiguousarray(pairs).reshape(pairs.shape[0], -1, 2)
    order = np.argsort(-values[:, :, 0], axis=1, kind="stable")
    return np.take_along_axis(values, order[:, :, None], 1).reshape(pairs.shape)


class MrgsortFormat1(Op, name="mrgsort_format1", result_space=VEC):
    """Sorted runs of `block_len` places (half as many pairs), lying one after the other in each row, are merged four by
    four: afterwards runs of ``4 * block_len`` are sorted. The last ones may be fewer and shorter."""

    src0: Value = operand(spaces=(VEC,), aliases=("input", "tensor", "tile"))
    block_len: int = attribute()
    lowering = Needs(src0=VEC)
    dtypes = (FP32,)
    spelling = Spelling(pto=ONE_BY_ONE)
    loops = Special("as src0", rowwise=True)

    def infer(self) -> Type:
        check_operands(self)
        check_pairs(self, "src0", self.src0)
        if self.block_len < 2 or self.block_len % 2:
            raise OperandError(
                f"{self.qualified_name} merges runs of whole pairs",
                span=self.span,
                required="block_len, an even number of places",
                found=str(self.block_len),
            )
        kind = self.src0.type
        return array_type(self.level, physical_of(kind), FP32, meaning_of(kind))

    def evaluate(self, src0: Array) -> Array:
        whole = RUNS * self.block_len
        parts = [sorted_pairs(src0[:, start : start + whole]) for start in range(0, src0.shape[1], whole)]
        return np.concatenate(parts, axis=1) if parts else src0

    def defined(self, src0: Array) -> Array:
        return np.broadcast_to(src0.all(axis=1, keepdims=True), src0.shape)

    def work(self) -> Work:
        elements = elements_of(self.src0.type)
        return Work("compare", elements=elements, nbytes=2 * elements * FP32.nbytes)

    def expand(self, to: Expansion) -> Scalar:
        rows, columns = rows_and_columns(self.src0)
        count, length = binary(FLOORDIV, columns, 2), self.block_len // 2
        bits = to.op(ReinterpretView(self.src0, INT32, level=TILE, span=self.span), self.src0.name)

        def place(i: Scalar, j: Scalar, values: Value, indices: Value) -> tuple[Scalar, Scalar]:
            runs, value = Runs(to, self.src0, i), element(to, self.src0, (i, binary(MUL, j, 2)))
            own = to.named(binary(FLOORDIV, j, length), "run")
            group = to.named(binary(MUL, binary(FLOORDIV, own, RUNS), RUNS), "group")

            def add(q: Scalar, total: Scalar) -> tuple[Scalar]:
                run = binary(ADD, group, q)
                start = to.named(binary(MUL, run, length), "start")
                present = maximum(minimum(binary(SUB, count, start), length), 0)
                ties, last = binary(BinaryKind.LT, run, own), binary(SUB, count, 1)
                found = runs.before(start, to.named(present, "length"), last, value, ties, length.bit_length())
                mine = binary(BinaryKind.EQ, run, own)
                return (binary(ADD, total, Select(mine, binary(SUB, j, start), found)),)

            (rank,) = to.loop(RUNS, (binary(MUL, group, length),), add, "q")
            index = element(to, bits, (i, binary(ADD, binary(MUL, j, 2), 1)))
            return put(to, values, (i, rank), value), put(to, indices, (i, rank), index)

        half = array_type(TILE, _half(physical_of(self.src0.type)), FP32, _half(meaning_of(self.src0.type)))
        rooms = rooms_for(to, half, TILE)
        made = each(to, rows, count, rooms, place)
        return interleaved(to, made[0], made[1], to.room(self.infer()))


class MrgsortFormat2(Op, name="mrgsort_format2", result_space=VEC):
    """Two to four tiles of one row of sorted pairs, merged into one row. `tmp` is not needed. `exhausted` allows the
    machine to stop when one of them ends; here the merge always goes on to the end."""

    src0: Value = operand(spaces=(VEC,), aliases=("input", "tensor", "tile"))
    src1: Value = operand(spaces=(VEC,))
    src2: Value | None = operand(default=None, spaces=(VEC,))
    src3: Value | None = operand(default=None, spaces=(VEC,))
    tmp: Value | None = operand(default=None, scratch=True, spaces=(VEC,), levels=(TILE,))
    exhausted: bool = attribute(default=False)
    lowering = Needs(src0=VEC, src1=VEC, src2=VEC, src3=VEC)
    dtypes = (FP32,)
    spelling = Spelling(pto=ONE_BY_ONE)
    loops = Special("one row, all columns")

    @property
    def sources(self) -> list[Value]:
        return [value for value in (self.src0, self.src1, self.src2, self.src3) if value is not None]

    def infer(self) -> Type:
        check_operands(self)
        totals: list[Scalar] = [0, 0]
        for name, value in self.operand_items():
            if name == "tmp":
                continue
            check_pairs(self, name, value)
            for at, shape in enumerate((physical_of(value.type), meaning_of(value.type))):
                if shape[0] != 1:
                    raise ShapeError(
                        f"{self.qualified_name} merges single rows", span=self.span, found=operand_types(self)
                    )
                totals[at] = binary(ADD, totals[at], shape[1])
        return array_type(self.level, (1, totals[0]), FP32, (1, totals[1]))

    def evaluate(self, *operands: Any, **_: Any) -> Array:
        return sorted_pairs(np.concatenate([array for array in operands[:4] if array is not None], axis=1))

    def defined(self, *masks: Any, **_: Any) -> Array:
        whole = np.concatenate([mask for mask in masks[:4] if mask is not None], axis=1)
        return np.full(whole.shape, bool(whole.all()))

    def work(self) -> Work:
        elements = elements_of(self.infer())
        return Work("compare", elements=elements, nbytes=2 * elements * FP32.nbytes)

    def expand(self, to: Expansion) -> Scalar:
        kind = self.infer()
        half = array_type(TILE, _half(physical_of(kind)), FP32, _half(meaning_of(kind)))
        made: tuple[Value, ...] = rooms_for(to, half, TILE)
        for number, source in enumerate(self.sources):
            made = to.loop(_pairs(source), made, self._placed(to, number, source), "j")
        return interleaved(to, made[0], made[1], to.room(kind))

    def _placed(self, to: Expansion, number: int, source: Value) -> Body:
        """The body of a loop that puts each pair of one source where it belongs."""
        bits = to.op(ReinterpretView(source, INT32, level=TILE, span=self.span), source.name)

        def place(j: Scalar, values: Value, indices: Value) -> tuple[Scalar, Scalar]:
            value, rank = element(to, source, (0, binary(MUL, j, 2))), j
            for other, run in enumerate(self.sources):
                if other != number:
                    ties, count = constant(other < number, BOOL), _pairs(run)
                    steps = count.bit_length() if isinstance(count, int) else LONGEST
                    found = Runs(to, run, 0).before(0, count, binary(SUB, count, 1), value, ties, steps)
                    rank = to.named(binary(ADD, rank, found), "rank")
            index = element(to, bits, (0, binary(ADD, binary(MUL, j, 2), 1)))
            return put(to, values, (0, rank), value), put(to, indices, (0, rank), index)

        return place


def _pairs(value: Value) -> Scalar:
    return binary(FLOORDIV, meaning_of(value.type)[1], 2)
