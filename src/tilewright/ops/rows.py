"""Rows and elements of a tensor in DDR, loaded where indices say: `mgather`, `gather_row`, `paged_gather`.

The tensor stays in DDR: what is asked for is loaded row by row, or element by element, and nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.errors import OperandError, ShapeError
from tilewright.ir.expansion import Expansion
from tilewright.ir.layout import MemorySpace
from tilewright.ir.loops import Special
from tilewright.ir.op import (
    Access,
    Array,
    FromAttribute,
    LoweringContext,
    Needs,
    Op,
    Spelling,
    Work,
    attribute,
    operand,
    scalars,
    whole_access,
)  # fmt: skip
from tilewright.ir.scalar import Scalar, Shape, Value, binary, maximum, minimum
from tilewright.ir.types import TensorType, TileType, TileView, Type
from tilewright.ops.common import (
    NUMBERS,
    TENSOR,
    TILE,
    VEC,
    array_type,
    box,
    check_box,
    check_dtype,
    check_index,
    check_lengths,
    check_rank,
    check_same_dtype,
    count,
    elements_of,
    meaning_of,
    operand_types,
    physical_of,
)  # fmt: skip
from tilewright.ops.gather import ROW_BY_ROW, check_indices, inside
from tilewright.ops.movement import Load, Store, swapped
from tilewright.ops.parts import Assemble
from tilewright.ops.scatter import next_version
from tilewright.ops.shape import Transpose
from tilewright.ops.single import (
    ADD,
    FLOORDIV,
    MOD,
    MUL,
    columns_of,
    each,
    element,
    index_at,
    put,
    put_row,
    row_of,
    unravelled,
)  # fmt: skip

CLAMP, WRAP, UNDEFINED = "clamp", "wrap", "undefined"


class MGather(Op, name="mgather", result_space=FromAttribute("target_memory")):
    """`coalesce` ``row``: row k of the result is row ``idx[k]`` of `mem`, for `idx` of [1, M] or [M, 1]. ``elem``:
    ``out[i, j]`` is the element at position ``idx[i, j]`` of `mem`, counted along its rows. `mem` and, if it is one,
    the tensor `idx` stay in DDR. `gather_oob`: an index outside is an error (``undefined``), or ``clamp`` takes the
    nearest and ``wrap`` counts through anew. `valid_shape`: the part of the result that has meaning. `tmp` is not
    needed."""

    mem: Value = operand(aliases=("tensor", "src"), ddr=True)
    idx: Value = operand(ddr=True)
    coalesce: str = attribute(default="row")
    gather_oob: str = attribute(default=UNDEFINED)
    target_memory: MemorySpace | None = attribute(default=None, levels=(TILE,))
    tmp: Value | None = operand(default=None, scratch=True, spaces=(VEC,), levels=(TILE,), aliases=("scratch",))
    valid_shape: Shape | None = scalars(default=None, levels=(TILE,))
    lowering = Needs()
    dtypes = NUMBERS
    spelling = Spelling(pto=ROW_BY_ROW)
    loops = Special("as idx, or valid_shape")

    def infer(self) -> Type:
        check_indices(self, "idx", self.idx)
        check_dtype(self, "mem", self.mem.dtype, self.dtypes)
        for name in ("mem", "idx"):
            check_rank(self, name, getattr(self, name).type, 2)
        if self.coalesce not in ("row", "elem") or self.gather_oob not in (UNDEFINED, CLAMP, WRAP):
            raise OperandError(
                f"{self.qualified_name}: coalesce is 'row' or 'elem', gather_oob 'undefined', 'clamp' or 'wrap'",
                span=self.span,
                found=f"{self.coalesce!r}, {self.gather_oob!r}",
            )
        if not isinstance(self.mem.type, TensorType):
            raise OperandError(
                f"{self.qualified_name} reads a tensor in DDR", span=self.span, found=operand_types(self)
            )
        physical, valid = physical_of(self.idx.type), meaning_of(self.idx.type)
        if self.coalesce == "row":
            if 1 not in physical:
                raise ShapeError(
                    f"{self.qualified_name} wants one index for each row",
                    span=self.span,
                    required="idx [1, M] or [M, 1], or coalesce='elem'",
                    found=operand_types(self),
                )
            columns = columns_of(self.mem)
            axis = 1 if physical[0] == 1 else 0
            physical, valid = (physical[axis], columns), (valid[axis], columns)
        check_lengths(self, 2, valid_shape=self.valid_shape)
        space = self.target_memory if self.level is TILE else None
        return array_type(self.level, physical, self.mem.dtype, self.valid_shape or valid, space)

    def _resolved(self, indices: Array, limit: int) -> Array:
        if self.gather_oob == CLAMP:
            return np.clip(indices, 0, limit - 1)
        return inside(self, indices % limit if self.gather_oob == WRAP else indices, limit)

    def evaluate(self, mem: Array, idx: Array, tmp: Any = None, valid_shape: Any = None) -> Array:
        if mem.dtype.kind == "b" and self.mem.dtype.numpy != np.dtype(np.bool_):
            raise AssertionError("masks go through defined()")
        rows, columns = mem.shape
        if self.coalesce == "row":
            found = mem[self._resolved(idx.reshape(-1), rows)]
        else:
            flat = self._resolved(idx, rows * columns)
            found = mem[flat // columns, flat % columns]
        return found if valid_shape is None else found[: valid_shape[0], : valid_shape[1]]

    def defined(self, mem: Array, idx: Array, tmp: Any = None, valid_shape: Any = None) -> Array:
        kind = self.infer()
        extents = [idx.size, mem.shape[1]] if self.coalesce == "row" else list(idx.shape)
        del kind
        out = np.full(extents, bool(mem.all() and idx.all()))
        return out if valid_shape is None else out[: valid_shape[0], : valid_shape[1]]

    def accesses(self) -> tuple[Access, ...]:
        reads = [whole_access(name, value.type) for name, value in self.operand_items()]
        return (*reads, whole_access(None, self.infer(), writes=True))

    def work(self) -> Work:
        kind = self.infer()
        return Work("move", elements=elements_of(kind), nbytes=elements_of(kind) * kind.dtype.nbytes)

    def lower(self, context: LoweringContext) -> Value:
        return context.emit(self.at_level(TILE))

    def _index(self, to: Expansion, where: Shape, limit: Scalar) -> Scalar:
        index = index_at(to, self.idx, where)
        if self.gather_oob == WRAP:
            return to.named(binary(MOD, index, limit), "index")
        if self.gather_oob == CLAMP:
            return to.named(maximum(minimum(index, binary(ADD, limit, -1)), 0), "index")
        return index

    def expand(self, to: Expansion) -> Scalar:
        kind = self.infer()
        valid = meaning_of(kind)
        rows, columns = physical_of(self.mem.type)

        def row(k: Scalar, out: Value) -> tuple[Scalar]:
            where = (0, k) if physical_of(self.idx.type)[0] == 1 else (k, 0)
            return (put_row(to, out, row_of(to, self.mem, self._index(to, where, rows), 0, valid[1]), k),)

        def one(i: Scalar, j: Scalar, out: Value) -> tuple[Scalar]:
            flat = self._index(to, (i, j), binary(MUL, rows, columns))
            return (put(to, out, (i, j), element(to, self.mem, unravelled(flat, columns))),)

        made = to.room(kind)
        if self.coalesce == "row":
            return to.loop(valid[0], (made,), row)[0]
        return each(to, valid[0], valid[1], (made,), one)[0]


class GatherRow(Op, name="gather_row", writes="dst"):
    """The window of `shapes` at `src_offset` of the tensor `src` in DDR becomes the one at `dst_offset` of `dst`.
    `transpose`: its rows become columns. `valid_shape`: how much of the window there is."""

    dst: Value = operand(aliases=("acc",), ddr=True)
    src: Value = operand(aliases=("tensor",), ddr=True)
    dst_offset: Shape = scalars()
    src_offset: Shape = scalars()
    shapes: Shape = scalars()
    transpose: bool = attribute(default=False)
    valid_shape: Shape | None = scalars(default=None)
    lowering = Needs()
    dtypes = NUMBERS
    spelling = Spelling(pto=ROW_BY_ROW)
    loops = Special("as dst")

    @property
    def region(self) -> Shape:
        return self.valid_shape or self.shapes

    @property
    def target(self) -> Shape:
        return swapped(self.region) if self.transpose else self.region

    def infer(self) -> Type:
        check_same_dtype(self, "dst", "src")
        check_dtype(self, "dst", self.dst.dtype, self.dtypes)
        for name, value in self.operand_items():
            check_rank(self, name, value.type, 2)
        check_lengths(
            self, 2, dst_offset=self.dst_offset, src_offset=self.src_offset, shapes=self.shapes,
            valid_shape=self.valid_shape,
        )  # fmt: skip
        check_index(self, "offset", *self.dst_offset, *self.src_offset)
        if not isinstance(self.src.type, TensorType):
            raise OperandError(
                f"{self.qualified_name} reads a tensor in DDR", span=self.span, found=operand_types(self)
            )
        check_box(self, "src", physical_of(self.src.type), self.src_offset, self.region)
        check_box(self, "dst", physical_of(self.dst.type), self.dst_offset, self.target)
        return next_version(self.dst.type)

    def evaluate(
        self, dst: Array, src: Array, dst_offset: Any, src_offset: Any, shapes: Any, valid_shape: Any
    ) -> Array:
        part = src[box(src, src_offset, valid_shape or shapes)]
        part = part.T if self.transpose else part
        dst[box(dst, dst_offset, part.shape)] = part
        return dst

    def defined(self, *masks: Any, **_: Any) -> Array:
        return self.evaluate(*masks)

    def accesses(self) -> tuple[Access, ...]:
        read = Access("src", False, self.src_offset, self.region)
        return (read, Access("dst", True, self.dst_offset, self.target))

    def work(self) -> Work:
        elements = count(self.shapes)
        return Work("move", elements=elements, nbytes=elements * self.dst.dtype.nbytes)

    def lower(self, context: LoweringContext) -> Value:
        level = TENSOR if isinstance(self.dst.type, TensorType) else TILE
        return context.emit(self.replace(level=level))

    def expand(self, to: Expansion) -> Scalar:
        part = to.op(Load(self.src, self.src_offset, self.shapes, self.valid_shape, span=self.span), "row")
        if self.transpose:
            part = to.op(Transpose(part, 0, 1, level=TILE, span=self.span), "row")
        if isinstance(self.dst.type, TensorType):
            return to.op(Store(part, self.dst_offset, self.dst, span=self.span))
        return to.op(Assemble(self.dst, part, self.dst_offset, level=TILE, span=self.span))


class PagedGather(Op, name="paged_gather", result_space=FromAttribute("space")):
    """Rows of a paged pool: row k of the result is ``src[p, col_off : col_off + size]``, where
    ``p = block_table[t // block_size] * block_size + t % block_size`` for ``t = indices[k]``. `indices` and
    `block_table` have one dimension, or two of which the first is 1. The result has `max_indices` rows, of which those
    that have an index are defined. `is_trans`: it is transposed. `is_b_matrix` changes nothing."""

    src: Value = operand(aliases=("tensor",), ddr=True)
    indices: Value = operand(ddr=True)
    block_table: Value = operand(ddr=True)
    block_size: int = attribute()
    size: int = attribute()
    max_indices: int = attribute()
    space: MemorySpace | None = attribute(default=None)
    col_off: int = attribute(default=0)
    is_trans: bool = attribute(default=False)
    is_b_matrix: bool = attribute(default=False)
    lowering = Needs()
    dtypes = NUMBERS
    spelling = Spelling(pto=ROW_BY_ROW)
    loops = Special("rows that have an index, size")

    @property
    def given(self) -> Scalar:
        """How many indices there are."""
        return meaning_of(self.indices.type)[-1]

    def infer(self) -> Type:
        check_dtype(self, "src", self.src.dtype, self.dtypes)
        check_rank(self, "src", self.src.type, 2)
        for name in ("indices", "block_table"):
            check_indices(self, name, getattr(self, name))
            shape = physical_of(getattr(self, name).type)
            if len(shape) not in (1, 2) or (len(shape) == 2 and shape[0] != 1):
                raise ShapeError(
                    f"{self.qualified_name} takes a list as {name}",
                    span=self.span,
                    required="[n] or [1, n]",
                    found=operand_types(self),
                )
        if not all(isinstance(value.type, TensorType) for value in (self.src, self.block_table)):
            raise OperandError(
                f"{self.qualified_name} reads a tensor in DDR", span=self.span, found=operand_types(self)
            )
        check_box(self, "src", physical_of(self.src.type)[1:], (self.col_off,), (self.size,))
        if isinstance(self.given, int) and self.given > self.max_indices:
            raise ShapeError(
                f"{self.qualified_name} has more indices than rows",
                span=self.span,
                required=f"at most max_indices {self.max_indices}",
                found=operand_types(self),
            )
        rows = minimum(self.given, self.max_indices)
        shape, valid = (self.max_indices, self.size), (rows, self.size)
        if self.is_trans:
            shape, valid = swapped(shape), swapped(valid)
        if self.level is TENSOR:
            return TensorType(valid, self.src.dtype)
        return TileType(shape, self.src.dtype, self.space, TileView(valid))

    def evaluate(self, src: Array, indices: Array, block_table: Array) -> Array:
        tokens = inside(self, indices.reshape(-1), block_table.size * self.block_size)
        rows = block_table.reshape(-1)[tokens // self.block_size].astype(np.int64) * self.block_size
        found = src[inside(self, rows + tokens % self.block_size, src.shape[0])]
        found = found[:, self.col_off : self.col_off + self.size]
        return found.T if self.is_trans else found

    def defined(self, src: Array, indices: Array, block_table: Array) -> Array:
        shape = (indices.size, self.size)
        return np.full(shape[::-1] if self.is_trans else shape, bool(src.all() and indices.all() and block_table.all()))

    def accesses(self) -> tuple[Access, ...]:
        reads = [whole_access(name, value.type) for name, value in self.operand_items()]
        return (*reads, whole_access(None, self.infer(), writes=True))

    def work(self) -> Work:
        elements = self.max_indices * self.size
        return Work("move", elements=elements, nbytes=elements * self.src.dtype.nbytes)

    def lower(self, context: LoweringContext) -> Value:
        """Rows are put together where that is possible; who wants them elsewhere moves them there."""
        space = self.space if self.space is VEC else None
        return context.emit(self.replace(level=TILE, space=space))

    def expand(self, to: Expansion) -> Scalar:
        rows = minimum(self.given, self.max_indices)
        shape = (self.max_indices, self.size)
        made = to.room(TileType(shape, self.src.dtype, None, TileView((rows, self.size))))

        def entry(array: Value, position: Scalar) -> Scalar:
            return index_at(to, array, (position,) if len(physical_of(array.type)) == 1 else (0, position))

        def row(k: Scalar, out: Value) -> tuple[Scalar]:
            token = entry(self.indices, k)
            block = entry(self.block_table, binary(FLOORDIV, token, self.block_size))
            physical = binary(ADD, binary(MUL, block, self.block_size), binary(MOD, token, self.block_size))
            part = row_of(to, self.src, to.named(physical, "row"), self.col_off, self.size)
            return (put_row(to, out, part, k),)

        (out,) = to.loop(rows, (made,), row)
        return to.op(Transpose(out, 0, 1, level=TILE, span=self.span)) if self.is_trans else out
