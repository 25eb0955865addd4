"""Elements and rows put where indices say, the inverse of `gather`. Of several with one index the last one stays.

The result is the next version of the destination; what no index names keeps its value. Elements are put one by one,
rows of a tensor in DDR are stored one by one.
"""

from __future__ import annotations

import numpy as np

from tilewright.errors import OperandError, ShapeError
from tilewright.ir.expansion import Expansion
from tilewright.ir.loops import Special, Update
from tilewright.ir.op import (
    Access,
    Array,
    LoweringContext,
    Needs,
    Op,
    Spelling,
    Work,
    attribute,
    operand,
    whole_access,
)  # fmt: skip
from tilewright.ir.scalar import Scalar, Shape, Value, binary
from tilewright.ir.types import TensorType, TileType, Type
from tilewright.ops.common import (
    NUMBERS,
    TENSOR,
    TILE,
    VEC,
    check_dtype,
    check_rank,
    check_same_dtype,
    elements_of,
    meaning_of,
    operand_types,
    physical_of,
    same_shape,
)  # fmt: skip
from tilewright.ops.gather import ONE_BY_ONE, PATTERNS, ROW_BY_ROW, check_indices, inside, pattern_of, picked_columns
from tilewright.ops.movement import Load, Store
from tilewright.ops.parts import Assemble
from tilewright.ops.shape import Slice
from tilewright.ops.single import (
    ADD,
    FLOORDIV,
    MOD,
    MUL,
    SUB,
    columns_of,
    each,
    element,
    in_vector_memory,
    index_at,
    put,
    put_row,
    row_of,
    rows_and_columns,
    unravelled,
)  # fmt: skip


def next_version(kind: Type) -> Type:
    """The type of the next version of an array."""
    return kind.without_memref() if isinstance(kind, TileType) else kind


def whole_accesses(op: Op, written: str) -> tuple[Access, ...]:
    """All operands read but `written`, and that written anywhere."""
    reads = [whole_access(name, value.type) for name, value in op.operand_items() if name != written]
    return (*reads, whole_access(written, getattr(op, written).type, writes=True))


class Scatter(Op, name="scatter", writes="dst"):
    """Tiles: ``dst`` at position ``indexes[i, j]``, counted along its physical rows, becomes ``src[i, j]``. Tensors,
    and tiles with `dim`: ``dst[i, indexes[i, j]] = src[i, j]`` (`dim` 1 or -1), or
    ``dst[indexes[i, j], j] = src[i, j]`` (`dim` 0 or -2)."""

    dst: Value = operand(spaces=(VEC,), aliases=("input", "tensor"), ddr=True)
    src: Value = operand(spaces=(VEC,))
    indexes: Value = operand(spaces=(VEC,), aliases=("index",))
    dim: int | None = attribute(default=None)
    lowering = Needs(src=VEC, indexes=VEC)
    dtypes = NUMBERS
    spelling = Spelling(pto=ONE_BY_ONE)
    loops = Special("as dst")

    @property
    def along(self) -> int | None:
        """The dimension in which indices count; None: through all of the tile."""
        if self.dim is None:
            return 1 if self.level is TENSOR else None
        return self.dim % 2

    def infer(self) -> Type:
        check_indices(self, "indexes", self.indexes)
        check_dtype(self, "src", self.src.dtype, self.dtypes)
        check_same_dtype(self, "dst", "src")
        for name, value in self.operand_items():
            check_rank(self, name, value.type, 2)
        if not same_shape(physical_of(self.src.type), physical_of(self.indexes.type)):
            raise ShapeError(
                f"{self.qualified_name} wants an index for each element of src",
                span=self.span,
                required="src and indexes of one shape",
                found=operand_types(self),
            )
        if self.dim not in (None, 0, 1, -1, -2):
            raise OperandError(
                f"{self.qualified_name} has no dimension {self.dim}", span=self.span, required="0 or 1 (-2 or -1)"
            )
        return next_version(self.dst.type)

    def _put(self, dst: Array, src: Array, indexes: Array) -> Array:
        rows, columns = (np.asarray(axis) for axis in np.indices(src.shape))
        if self.along is None:
            pitch = columns_of(self.dst)
            assert isinstance(pitch, int)
            rows, columns = indexes // pitch, indexes % pitch
        elif self.along == 1:
            columns = indexes
        else:
            rows = indexes
        dst[inside(self, rows, dst.shape[0]), inside(self, columns, dst.shape[1])] = src
        return dst

    def evaluate(self, dst: Array, src: Array, indexes: Array) -> Array:
        return self._put(dst, src, indexes)

    def defined(self, dst: Array, src: Array, indexes: Array) -> Array:
        """Where it was; what an index that is not known may have touched counts as it was."""
        if not (src.all() and indexes.all()):
            dst[...] = False
        return dst

    def accesses(self) -> tuple[Access, ...]:
        return whole_accesses(self, "dst")

    def work(self) -> Work:
        elements = elements_of(self.src.type)
        return Work("move", elements=elements, nbytes=2 * elements * self.src.dtype.nbytes)

    def lower(self, context: LoweringContext) -> Value:
        level = TENSOR if isinstance(self.dst.type, TensorType) else TILE
        return context.emit(Scatter(self.dst, self.src, self.indexes, self.along, level=level, span=self.span))

    def expand(self, to: Expansion) -> Scalar:
        rows, columns = rows_and_columns(self.src)

        def one(i: Scalar, j: Scalar, out: Value) -> tuple[Value]:
            index = index_at(to, self.indexes, (i, j))
            if self.along is None:
                where = unravelled(index, columns_of(self.dst))
            else:
                where = (i, index) if self.along == 1 else (index, j)
            return (put(to, out, where, element(to, self.src, (i, j))),)

        return each(to, rows, columns, (self.dst,), one)[0]


def _masked_index(op: ScatterMask, i: Scalar, j: Scalar) -> Shape:
    first, step = PATTERNS[op.mask_pattern]
    return (i, binary(ADD, binary(MUL, j, step), first))


class ScatterMask(Op, name="scatter_mask", writes="dst"):
    """The columns of `src` become every second or fourth column of `dst`, as `gather_mask` picks them. Tiles come as
    (dst, src, mask_pattern), tensors as (src, dst, mask_pattern)."""

    dst: Value = operand(spaces=(VEC,), aliases=("target",), ddr=True)
    mask_pattern: int = attribute()
    src: Value = operand(spaces=(VEC,), aliases=("input",))
    lowering = Needs(src=VEC)
    dtypes = NUMBERS
    spelling = Spelling(pto=ONE_BY_ONE)
    loops = Update(_masked_index, "src", "dst")

    def infer(self) -> Type:
        check_same_dtype(self, "dst", "src")
        for name, value in self.operand_items():
            check_rank(self, name, value.type, 2)
        first, step = pattern_of(self, self.mask_pattern)
        (rows, columns), (wide_rows, wide) = meaning_of(self.src.type), physical_of(self.dst.type)
        fits = [(rows, wide_rows), (columns, picked_columns(wide, first, step))]
        if any(isinstance(a, int) and isinstance(b, int) and a > b for a, b in fits):
            raise ShapeError(
                f"{self.qualified_name} has not so many columns to write", span=self.span, found=operand_types(self)
            )
        return next_version(self.dst.type)

    def evaluate(self, dst: Array, src: Array) -> Array:
        first, step = PATTERNS[self.mask_pattern]
        dst[: src.shape[0], first::step][:, : src.shape[1]] = src
        return dst

    def accesses(self) -> tuple[Access, ...]:
        first, step = PATTERNS[self.mask_pattern]
        rows, columns = meaning_of(self.src.type)
        reach = columns if step == 1 else binary(SUB, binary(MUL, columns, step), step - 1)
        return (whole_access("src", self.src.type), Access("dst", True, (0, first), (rows, reach)))

    def work(self) -> Work:
        elements = elements_of(self.src.type)
        return Work("move", elements=elements, nbytes=2 * elements * self.src.dtype.nbytes)

    def lower(self, context: LoweringContext) -> Value:
        level = TENSOR if isinstance(self.dst.type, TensorType) else TILE
        return context.emit(self.replace(level=level))

    @property
    def is_expanded(self) -> bool:
        """Into a tensor in DDR every element is put for itself."""
        return isinstance(self.dst.type, TensorType)

    def expand(self, to: Expansion) -> Scalar:
        def one(i: Scalar, j: Scalar, out: Value) -> tuple[Value]:
            return (put(to, out, _masked_index(self, i, j), element(to, self.src, (i, j))),)

        return each(to, *rows_and_columns(self.src), (self.dst,), one)[0]


class ScatterUpdate(Op, name="scatter_update", writes="input"):
    """Row ``index[i, j]`` of `input` becomes row ``i * s + j`` of `src`, for an index of [b, s] and `src` of
    [b * s, d]. With four dimensions, [blocks, size, 1, d] and [b, s, 1, d], the rows of all blocks are counted through.
    `dim` is -2. A tensor in DDR is written row by row, and nothing else of it moves."""

    input: Value = operand(aliases=("tensor", "tile", "dst"), ddr=True)
    index: Value = operand(ddr=True)
    src: Value = operand(ddr=True)
    dim: int = attribute(default=-2)
    lowering = Needs()
    dtypes = NUMBERS
    spelling = Spelling(pto=ROW_BY_ROW)
    loops = Special("as input")

    def infer(self) -> Type:
        check_indices(self, "index", self.index)
        check_same_dtype(self, "input", "src")
        check_rank(self, "index", self.index.type, 2)
        ranks = {len(physical_of(value.type)) for value in (self.input, self.src)}
        if ranks not in ({2}, {4}) or self.dim not in (-2, 0):
            raise ShapeError(
                f"{self.qualified_name} updates rows",
                span=self.span,
                required="input [rows, d], src [b * s, d] and dim -2; or both with four dimensions",
                found=f"{operand_types(self)}, dim {self.dim}",
            )
        return next_version(self.input.type)

    def evaluate(self, input: Array, index: Array, src: Array) -> Array:
        flat = np.reshape(input, (-1, input.shape[-1]))
        rows = inside(self, index.reshape(-1), flat.shape[0])
        updates = src.reshape(-1, src.shape[-1])
        for row, update in zip(rows, updates, strict=True):  # a view of `input` even where it is not contiguous
            where = (row,) if input.ndim == 2 else (row // input.shape[1], row % input.shape[1], 0)
            input[(*where, slice(0, len(update)))] = update
        return input

    def defined(self, input: Array, index: Array, src: Array) -> Array:
        if not (index.all() and src.all()):
            input[...] = False
        return input

    def accesses(self) -> tuple[Access, ...]:
        return whole_accesses(self, "input")

    def work(self) -> Work:
        elements = elements_of(self.src.type)
        return Work("move", elements=elements, nbytes=2 * elements * self.src.dtype.nbytes)

    def lower(self, context: LoweringContext) -> Value:
        level = TENSOR if isinstance(self.input.type, TensorType) else TILE
        return context.emit(self.replace(level=level))

    def expand(self, to: Expansion) -> Scalar:
        b, s = rows_and_columns(self.index)
        src = in_vector_memory(to, self.src)
        columns = meaning_of(self.src.type)[-1]

        def one(i: Scalar, j: Scalar, out: Value) -> tuple[Value]:
            index = index_at(to, self.index, (i, j))
            row = rows_at(to, src, binary(ADD, binary(MUL, i, s), j), (i, j), columns)
            return (put_rows_at(to, out, row, index),)

        return each(to, b, s, (self.input,), one)[0]


def rows_at(to: Expansion, array: Value, row: Scalar, pair: Shape, columns: Scalar) -> Value:
    """[1, columns] of an array with two dimensions, or at `pair` of one with four."""
    if len(physical_of(array.type)) == 2:
        return row_of(to, array, row, 0, columns)
    return _of_four(to, array, pair, columns)


def _of_four(to: Expansion, array: Value, pair: Shape, columns: Scalar) -> Value:
    where = (*pair, 0, 0)
    if isinstance(array.type, TensorType):
        return to.op(Load(array, where, (1, columns), span=array.span), "row")
    return to.op(Slice(array, (1, 1, 1, columns), where, drop_dims=(0, 1), level=TILE, span=array.span), "row")


def put_rows_at(to: Expansion, array: Value, part: Value, row: Scalar) -> Value:
    """Row `row` of an array becomes `part`; of one with four dimensions, counted through all blocks."""
    shape = physical_of(array.type)
    if len(shape) == 2:
        return put_row(to, array, part, row)
    where = (binary(FLOORDIV, row, shape[1]), binary(MOD, row, shape[1]), 0, 0)
    if isinstance(array.type, TensorType):
        return to.op(Store(part, where, array, span=array.span), array.name)
    return to.op(Assemble(array, part, where, level=TILE, span=array.span), array.name)


class MScatter(Op, name="mscatter", levels=(TILE,), writes="output_tensor"):
    """A tile goes to a tensor in DDR, where indices say: with an index for each element, to that position, counted
    along the rows of the tensor; with one for each row ([1, M] or [M, 1]), each row of `src` to that row."""

    src: Value = operand(spaces=(VEC,), aliases=("tile",))
    idx: Value = operand(spaces=(VEC,))
    output_tensor: Value = operand(aliases=("tensor", "mem"), ddr=True)
    dtypes = NUMBERS
    spelling = Spelling(pto=ROW_BY_ROW)
    loops = Special("as output_tensor")

    @property
    def by_rows(self) -> bool:
        return not same_shape(physical_of(self.src.type), physical_of(self.idx.type))

    def infer(self) -> Type:
        check_indices(self, "idx", self.idx)
        check_same_dtype(self, "src", "output_tensor")
        for name, value in self.operand_items():
            check_rank(self, name, value.type, 2)
        if not isinstance(self.output_tensor.type, TensorType):
            raise OperandError(
                f"{self.qualified_name} writes to a tensor in DDR", span=self.span, found=operand_types(self)
            )
        if self.by_rows and 1 not in physical_of(self.idx.type):
            raise ShapeError(
                f"{self.qualified_name} wants an index for each element, or for each row",
                span=self.span,
                found=operand_types(self),
            )
        return self.output_tensor.type

    def evaluate(self, src: Array, idx: Array, output_tensor: Array) -> Array:
        rows, columns = output_tensor.shape
        if self.by_rows:
            output_tensor[inside(self, idx.reshape(-1), rows)[: src.shape[0]], : src.shape[1]] = src
            return output_tensor
        flat = inside(self, idx, rows * columns)
        output_tensor[flat // columns, flat % columns] = src
        return output_tensor

    def defined(self, src: Array, idx: Array, output_tensor: Array) -> Array:
        return output_tensor

    def accesses(self) -> tuple[Access, ...]:
        return whole_accesses(self, "output_tensor")

    def work(self) -> Work:
        elements = elements_of(self.src.type)
        return Work("move", elements=elements, nbytes=2 * elements * self.src.dtype.nbytes)

    def expand(self, to: Expansion) -> Scalar:
        rows, columns = rows_and_columns(self.src)
        start, src = (self.output_tensor,), in_vector_memory(to, self.src)
        if self.by_rows:

            def row(i: Scalar, out: Value) -> tuple[Scalar]:
                where = (0, i) if physical_of(self.idx.type)[0] == 1 else (i, 0)
                return (put_row(to, out, row_of(to, src, i, 0, columns), index_at(to, self.idx, where)),)

            return to.loop(rows, start, row)[0]

        def one(i: Scalar, j: Scalar, out: Value) -> tuple[Scalar]:
            where = unravelled(index_at(to, self.idx, (i, j)), columns_of(self.output_tensor))
            return (put(to, out, where, element(to, self.src, (i, j))),)

        return each(to, rows, columns, start, one)[0]
