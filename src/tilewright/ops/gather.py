"""Elements and rows picked by index, by pattern, or by comparison.

Indices count from 0. An index outside is an error in the interpreter and in native code; a machine does not look. No
instruction of the text reaches an element by an index that was read: elements are picked one by one, and rows of a
tensor in DDR are loaded one by one, so that nothing but what is asked for leaves DDR.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.errors import OperandError, OutOfBoundsError
from tilewright.ir.dtypes import BOOL, INDEX, INT32, DType
from tilewright.ir.expansion import Expansion
from tilewright.ir.loops import Index, Special
from tilewright.ir.op import (
    Access,
    Array,
    Expanded,
    LoweringContext,
    Needs,
    Op,
    Spelling,
    Work,
    attribute,
    operand,
    whole_access,
)  # fmt: skip
from tilewright.ir.op import scalar as scalar_field
from tilewright.ir.scalar import BinaryKind, Scalar, Select, Shape, Value, binary, cast, constant, dtype_of, minimum
from tilewright.ir.types import Type
from tilewright.ops.bits import ReinterpretView
from tilewright.ops.common import (
    NUMBERS,
    TENSOR,
    TILE,
    VEC,
    array_type,
    check_dtype,
    check_operands,
    check_rank,
    check_scalar,
    compute,
    meaning_of,
    physical_of,
)  # fmt: skip
from tilewright.ops.select import COMPARISONS
from tilewright.ops.single import (
    ADD,
    FLOORDIV,
    MUL,
    columns_of,
    each,
    element,
    index_at,
    put,
    rows_and_columns,
    unravelled,
    work_of,
)  # fmt: skip

ONE_BY_ONE = Expanded("a loop over single elements")
ROW_BY_ROW = Expanded("a loop that loads one row at a time, at an index that it reads")
PATTERNS = {1: (0, 2), 2: (1, 2), 3: (0, 4), 4: (1, 4), 5: (2, 4), 6: (3, 4), 7: (0, 1)}
"""First column and step of each mask pattern: P0101, P1010, P0001, P0010, P0100, P1000, P1111."""
INDICES = (INT32,)


def check_indices(op: Op, name: str, value: Value) -> None:
    """Indices are integers. Raises `DTypeError`."""
    if not value.dtype.is_integer:
        check_dtype(op, name, value.dtype, INDICES)


def inside(op: Op, indices: Array, limit: int) -> Array:
    """`indices`. Raises `OutOfBoundsError` when one is outside."""
    wrong = (indices < 0) | (indices >= limit)
    if wrong.any():
        raise OutOfBoundsError(
            f"{op.qualified_name} reads or writes outside",
            span=op.span,
            required=f"0 to {limit - 1}",
            found=str(int(indices[wrong].flat[0])),
        )
    return indices.astype(np.int64)


def picked(op: Op, array: Array, rows: Any, columns: Any) -> Array:
    """``array[rows, columns]``; of masks, indices that are not known pick nothing that is known."""
    return array[inside(op, rows, array.shape[0]), inside(op, columns, array.shape[1])]


class Gather(Op, name="gather", result_space=VEC):
    """Tiles: ``out[i, j]`` is the element at position ``indices[i, j]`` of `src`, counted along its physical rows.
    Tensors, and tiles with `dim`: ``out[i, j] = src[i, indices[i, j]]`` (`dim` 1 or -1), or
    ``src[indices[i, j], j]`` (`dim` 0 or -2). `tmp` is not needed."""

    src: Value = operand(spaces=(VEC,), aliases=("input", "tensor", "tile"), ddr=True)
    indices: Value = operand(spaces=(VEC,), aliases=("index",))
    dim: int | None = attribute(default=None)
    tmp: Value | None = operand(default=None, scratch=True, spaces=(VEC,), levels=(TILE,))
    lowering = Needs(indices=VEC)
    dtypes = NUMBERS
    spelling = Spelling(pto=ONE_BY_ONE)
    loops = Special("as indices")

    @property
    def along(self) -> int | None:
        """The dimension in which indices count; None: through all of the tile."""
        if self.dim is None:
            return 1 if self.level is TENSOR else None
        return self.dim % 2

    def infer(self) -> Type:
        check_indices(self, "indices", self.indices)
        check_dtype(self, "src", self.src.dtype, self.dtypes)
        for name, value in (("src", self.src), ("indices", self.indices)):
            check_rank(self, name, value.type, 2)
        if self.dim not in (None, 0, 1, -1, -2):
            raise OperandError(
                f"{self.qualified_name} has no dimension {self.dim}", span=self.span, required="0 or 1 (-2 or -1)"
            )
        kind = self.indices.type
        return array_type(self.level, physical_of(kind), self.src.dtype, meaning_of(kind))

    def evaluate(self, src: Array, indices: Array, *_: Any) -> Array:
        rows, columns = np.indices(indices.shape)
        if self.along is None:
            pitch = columns_of(self.src)
            assert isinstance(pitch, int)
            return picked(self, src, indices // pitch, indices % pitch)
        if self.along == 1:
            return picked(self, src, rows, indices)
        return picked(self, src, indices, columns)

    def defined(self, src: Array, indices: Array, *_: Any) -> Array:
        """Where the index is, and nothing that may be picked is undefined."""
        return indices & bool(src.all())

    def work(self) -> Work:
        return work_of(self)

    def accesses(self) -> tuple[Access, ...]:
        return (
            *(whole_access(n, v.type) for n, v in self.operand_items()),
            whole_access(None, self.infer(), writes=True),
        )

    def lower(self, context: LoweringContext) -> Value:
        """A tensor in DDR stays there: only the elements that are picked are read."""
        return context.emit(Gather(self.src, self.indices, self.along, level=TILE, span=self.span))

    def expand(self, to: Expansion) -> Scalar:
        rows, columns = rows_and_columns(self.indices)

        def pick(i: Scalar, j: Scalar, out: Value) -> tuple[Value]:
            index = index_at(to, self.indices, (i, j))
            if self.along is None:
                where = unravelled(index, columns_of(self.src))
            else:
                where = (i, index) if self.along == 1 else (index, j)
            return (put(to, out, (i, j), element(to, self.src, where)),)

        return each(to, rows, columns, (to.room(self.infer()),), pick)[0]


class Gatherb(Op, name="gatherb", levels=(TILE,), result_space=VEC):
    """``out[i, j]`` is the element `offset[i, j]` bytes after the first of `src`, counted along its physical rows; the
    offset is a multiple of the size of an element. `output_dtype`: the same bits as another dtype of that size."""

    src: Value = operand(spaces=(VEC,), aliases=("tile",))
    offset: Value = operand(spaces=(VEC,))
    output_dtype: DType | None = attribute(default=None)
    dtypes = NUMBERS
    spelling = Spelling(pto=ONE_BY_ONE)
    loops = Special("as offset")

    def infer(self) -> Type:
        check_operands(self)
        check_indices(self, "offset", self.offset)
        for name, value in self.operand_items():
            check_rank(self, name, value.type, 2)
        kind = self.offset.type
        return array_type(TILE, physical_of(kind), as_bits(self, self.src.dtype, self.output_dtype), meaning_of(kind))

    def evaluate(self, src: Array, offset: Array) -> Array:
        pitch = columns_of(self.src)
        assert isinstance(pitch, int)
        indices = offset.astype(np.int64) // self.src.dtype.nbytes
        return picked(self, src, indices // pitch, indices % pitch).view(np.dtype(self.infer().dtype.numpy))

    def defined(self, src: Array, offset: Array) -> Array:
        return offset & bool(src.all())

    def work(self) -> Work:
        return work_of(self)

    def expand(self, to: Expansion) -> Scalar:
        source = reinterpreted(to, self.src, self.output_dtype)
        rows, columns = rows_and_columns(self.offset)

        def pick(i: Scalar, j: Scalar, out: Value) -> tuple[Value]:
            index = binary(FLOORDIV, index_at(to, self.offset, (i, j)), self.src.dtype.nbytes)
            return (put(to, out, (i, j), element(to, source, unravelled(index, columns_of(source)))),)

        return each(to, rows, columns, (to.room(self.infer()),), pick)[0]


def as_bits(op: Op, dtype: DType, wanted: DType | None) -> DType:
    """`wanted`, a dtype of the size of `dtype`; `dtype` when None. Raises `OperandError`."""
    if wanted is not None and wanted.bits != dtype.bits:
        raise OperandError(
            f"{op.qualified_name} reads the same bits as another dtype",
            span=op.span,
            required=f"a dtype of {dtype.bits} bits",
            found=f"{wanted}",
        )
    return wanted or dtype


def reinterpreted(to: Expansion, tile: Value, dtype: DType | None) -> Value:
    """The bits of `tile` as another dtype of the same size."""
    if dtype is None or dtype is tile.dtype:
        return tile
    return to.op(ReinterpretView(tile, dtype, level=TILE, span=tile.span), tile.name)


# --- by pattern -------------------------------------------------------------------------------------------------------
def pattern_of(op: Op, number: int) -> tuple[int, int]:
    """First column and step. Raises `OperandError`."""
    if number not in PATTERNS:
        raise OperandError(
            f"{op.qualified_name} has no mask pattern {number!r}",
            span=op.span,
            required="1 P0101, 2 P1010, 3 P0001, 4 P0010, 5 P0100, 6 P1000, 7 P1111",
        )
    return PATTERNS[number]


def _masked_index(op: GatherMask, i: Scalar, j: Scalar) -> Shape:
    first, step = PATTERNS[op.mask_pattern]
    return (i, binary(ADD, binary(MUL, j, step), first))


def picked_columns(columns: Scalar, first: int, step: int) -> Scalar:
    """How many of `columns` a pattern picks."""
    return binary(FLOORDIV, binary(ADD, columns, step - 1 - first), step)


class GatherMask(Op, name="gather_mask", result_space=VEC):
    """Every second or fourth column: `mask_pattern` 1 (P0101) the columns 0, 2, 4, …, 2 (P1010) 1, 3, 5, …; 3 to 6
    (P0001 to P1000) every fourth from 0, 1, 2, 3 on; 7 all. `output_dtype`: the same bits as another dtype."""

    src: Value = operand(spaces=(VEC,), aliases=("input", "tensor", "tile"))
    mask_pattern: int = attribute()
    output_dtype: DType | None = attribute(default=None)
    lowering = Needs(src=VEC)
    dtypes = NUMBERS
    spelling = Spelling(pto=ONE_BY_ONE)
    loops = Index(_masked_index, "src")

    def infer(self) -> Type:
        check_operands(self)
        check_rank(self, "src", self.src.type, 2)
        first, step = pattern_of(self, self.mask_pattern)
        shapes = (physical_of(self.src.type), meaning_of(self.src.type))
        (physical, valid) = ((rows, picked_columns(columns, first, step)) for rows, columns in shapes)
        return array_type(self.level, physical, as_bits(self, self.src.dtype, self.output_dtype), valid)

    def evaluate(self, src: Array) -> Array:
        first, step = PATTERNS[self.mask_pattern]
        found = np.ascontiguousarray(src[:, first::step])
        return found if src.dtype.kind == "b" else found.view(np.dtype(self.infer().dtype.numpy))

    def work(self) -> Work:
        return work_of(self)

    @property
    def is_expanded(self) -> bool:
        return self.output_dtype not in (None, self.src.dtype)

    def expand(self, to: Expansion) -> Scalar:
        """As another dtype: the columns picked of what the bits are in it."""
        return to.op(GatherMask(reinterpreted(to, self.src, self.output_dtype), self.mask_pattern, level=TILE))


# --- by comparison ----------------------------------------------------------------------------------------------------
CMP_MODES = ("eq", "ne", "lt", "le", "gt", "ge")


class CompareOp(Op):
    """Base: each element of a row of `src` is compared with the scalar `kvalue`. `cmp_mode`: ``eq``, ``ne``, ``lt``,
    ``le``, ``gt``, ``ge``, or its number. `tmp` is not needed."""

    src: Value = operand(spaces=(VEC,), aliases=("input", "tensor", "tile"))
    kvalue: Scalar = scalar_field()
    tmp: Value | None = operand(default=None, scratch=True, spaces=(VEC,), levels=(TILE,))
    cmp_mode: str | int = attribute(default="eq")
    offset: int = attribute(default=0)
    out_cols: int = attribute(default=1)
    count_dtype: DType | None = attribute(default=None)
    lowering = Needs(src=VEC)
    dtypes = NUMBERS
    spelling = Spelling(pto=ONE_BY_ONE)

    @property
    def code(self) -> int:
        """The number of the comparison. Raises `OperandError`."""
        known = self.cmp_mode in CMP_MODES or (isinstance(self.cmp_mode, int) and 0 <= self.cmp_mode < len(CMP_MODES))
        if not known:
            raise OperandError(
                f"{self.qualified_name} has no comparison {self.cmp_mode!r}",
                span=self.span,
                required=" or ".join(CMP_MODES),
            )
        return CMP_MODES.index(self.cmp_mode) if isinstance(self.cmp_mode, str) else self.cmp_mode

    def check(self) -> None:
        check_operands(self)
        check_dtype(self, "src", self.src.dtype, self.dtypes)
        check_rank(self, "src", self.src.type, 2)
        check_scalar(self, "kvalue", self.kvalue, self.src.dtype)
        if self.code < 0 or self.out_cols < 1:
            raise OperandError(f"{self.qualified_name} wants at least one output column", span=self.span)

    def matches(self, src: Array, kvalue: Any) -> Array:
        """Where the comparison holds."""
        given = np.asarray(kvalue).astype(np.dtype(self.src.dtype.numpy))
        return compute(BOOL, COMPARISONS[self.code][1], src, given)

    def holds(self, to: Expansion, i: Scalar, j: Scalar) -> Scalar:
        """Whether it does for one element."""
        found = element(to, self.src, (i, j))
        given = self.kvalue if dtype_of(self.kvalue) is found.dtype else cast(self.kvalue, found.dtype)
        return to.named(binary(COMPARISONS[self.code][0], found, given), "holds")

    def work(self) -> Work:
        rows, columns = physical_of(self.src.type)
        return Work("compare", elements=rows * columns if isinstance(rows, int) and isinstance(columns, int) else 1)


class GatherCompare(CompareOp, name="gather_compare_indices", result_space=VEC):
    """``out[i]`` begins with the columns, plus `offset`, of row i for which the comparison of `src` with `kvalue`
    holds, in order and at most `out_cols` of them; zeros follow. Written ``d, c = pl.gather_compare(...)`` it also
    gives how many there are in each row, as `gather_compare_count`."""

    loops = Special("rows, out_cols", rowwise=True)

    def infer(self) -> Type:
        self.check()
        rows, valid = physical_of(self.src.type)[0], meaning_of(self.src.type)[0]
        return array_type(self.level, (rows, self.out_cols), INT32, (valid, self.out_cols))

    def evaluate(self, src: Array, kvalue: Any, *_: Any) -> Array:
        out = np.zeros((src.shape[0], self.out_cols), np.int32)
        for row, found in zip(out, self.matches(src, kvalue), strict=True):
            columns = np.nonzero(found)[0][: self.out_cols] + self.offset
            row[: len(columns)] = columns
        return out

    def defined(self, src: Array, kvalue: Any, *_: Any) -> Array:
        return np.broadcast_to(src.all(axis=1, keepdims=True), (src.shape[0], self.out_cols)).copy()

    def expand(self, to: Expansion) -> Scalar:
        rows, columns = rows_and_columns(self.src)

        def note(i: Scalar, j: Scalar, out: Value, place: Scalar) -> tuple[Scalar, Scalar]:
            room = binary(BinaryKind.LT, place, self.out_cols)
            taken = to.named(binary(BinaryKind.AND, self.holds(to, i, j), room), "taken")
            where = (i, to.named(minimum(place, self.out_cols - 1), "where"))
            column = Select(taken, cast(binary(ADD, j, self.offset), INT32), element(to, out, where))
            return put(to, out, where, column), binary(
                ADD, place, Select(taken, constant(1, INDEX), constant(0, INDEX))
            )

        def row(i: Scalar, out: Value) -> tuple[Scalar]:
            def clear(j: Scalar, made: Value) -> tuple[Scalar]:
                return (put(to, made, (i, j), constant(0, INT32)),)

            def search(j: Scalar, made: Value, place: Scalar) -> tuple[Scalar, Scalar]:
                return note(i, j, made, place)

            cleared = to.loop(self.out_cols, (out,), clear, "j")
            return (to.loop(columns, (*cleared, 0), search, "j")[0],)

        return to.loop(rows, (to.room(self.infer()),), row)[0]


class GatherCompareCount(CompareOp, name="gather_compare_count", result_space=VEC):
    """``out[0, i]`` is how many elements of row i compare so with `kvalue`, as `count_dtype` (by default INT32)."""

    loops = Special("1, rows")

    def infer(self) -> Type:
        self.check()
        rows, valid = physical_of(self.src.type)[0], meaning_of(self.src.type)[0]
        return array_type(self.level, (1, rows), self.count_dtype or INT32, (1, valid))

    def evaluate(self, src: Array, kvalue: Any, *_: Any) -> Array:
        found = self.matches(src, kvalue).sum(axis=1, keepdims=True).T
        return found.astype(np.dtype((self.count_dtype or INT32).numpy))

    def defined(self, src: Array, kvalue: Any, *_: Any) -> Array:
        return np.asarray(src.all(axis=1, keepdims=True)).T

    def expand(self, to: Expansion) -> Scalar:
        rows, columns = rows_and_columns(self.src)

        def row(i: Scalar, out: Value) -> tuple[Scalar]:
            def count(j: Scalar, total: Scalar) -> tuple[Scalar]:
                one = Select(self.holds(to, i, j), constant(1, INDEX), constant(0, INDEX))
                return (binary(ADD, total, one),)

            (total,) = to.loop(columns, (0,), count, "j")
            return (put(to, out, (0, i), total),)

        return to.loop(rows, (to.room(self.infer()),), row)[0]
