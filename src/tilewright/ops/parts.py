"""Parts of tiles and tensors: a window for the matrix engine, single elements, and a part written into a whole.

`read`, `write` and `assemble` reach a tensor where it is: none of them loads the rest of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.errors import DTypeError
from tilewright.ir.layout import Compact, MemorySpace
from tilewright.ir.loops import Index, Special, Update
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
    scalar,
    scalars,
    whole_access,
)  # fmt: skip
from tilewright.ir.scalar import BinaryKind, Scalar, Shape, Value, binary
from tilewright.ir.types import ScalarType, TileType, TileView, Type
from tilewright.ops.common import (
    LEFT,
    MAT,
    RIGHT,
    TENSOR,
    TILE,
    VEC,
    box,
    check_box,
    check_index,
    check_lengths,
    check_operands,
    check_scalar,
    clip,
    elements_of,
    in_ddr,
    meaning_of,
    physical_of,
    same_extent,
    same_shape,
)  # fmt: skip
from tilewright.ops.flat import check_rows, flat_offsets
from tilewright.ops.movement import Store, shifted, whole_load


def _extract_index(op: Extract, *ix: Scalar) -> Shape:
    return shifted(op.offsets, ix)


def _assemble_index(op: Assemble, *ix: Scalar) -> Shape:
    return shifted(op.offset, ix)


class Extract(Op, name="extract", levels=(TILE,), result_space=FromAttribute("target_memory")):
    """A window of physical shape `shape` at [index_row, index_col] of `src`, in `target_memory`: how operands of a
    multiplication leave the big memory. `valid_shape`: how much of it has meaning (default: what has meaning in the
    source). A partial window in Left or Right is compact."""

    src: Value = operand(spaces=(MAT, VEC), aliases=("tile",))
    index_row: Scalar = scalar()
    index_col: Scalar = scalar()
    shape: Shape = scalars()
    target_memory: MemorySpace | None = attribute(default=None)
    valid_shape: Shape | None = scalars(default=None)
    spelling = Spelling()
    loops = Index(_extract_index, "src")

    @property
    def offsets(self) -> Shape:
        return (self.index_row, self.index_col)

    @property
    def region(self) -> Shape:
        """The extents that have meaning."""
        if self.valid_shape is not None:
            return self.valid_shape
        return window(meaning_of(self.src.type), physical_of(self.src.type), self.offsets, self.shape)

    def infer(self) -> Type:
        check_operands(self)
        kind = self.src.type
        check_lengths(self, 2, shape=self.shape, valid_shape=self.valid_shape)
        check_lengths(self, 2, dimensions_of_src=physical_of(kind))
        check_index(self, "index", *self.offsets)
        check_box(self, "tile", physical_of(kind), self.offsets, self.shape)
        valid = self.region
        partial = not same_shape(valid, self.shape) and self.target_memory in (LEFT, RIGHT)
        view = TileView(valid, compact=Compact.NORMAL if partial else Compact.NULL)
        return TileType(self.shape, kind.dtype, self.target_memory, view)

    def evaluate(self, src: Array, index_row: int, index_col: int, shape: Any, valid_shape: Any) -> Array:
        if valid_shape is not None or index_row < 0 or index_col < 0:
            return src[box(src, (index_row, index_col), valid_shape or shape)]
        return src[index_row : index_row + shape[0], index_col : index_col + shape[1]]

    def accesses(self) -> tuple[Access, ...]:
        kind = self.infer()
        return (Access("src", False, self.offsets, meaning_of(kind)), whole_access(None, kind, writes=True))

    def work(self) -> Work:
        kind = self.infer()
        return Work("move", elements=elements_of(kind), nbytes=elements_of(kind) * kind.dtype.nbytes)

    def resized(self, shape: Shape) -> Op:
        return self.replace(shape=shape, valid_shape=self.region)


def window(valid: Shape, physical: Shape, offsets: Shape, extents: Shape) -> Shape:
    """The valid extents of a window of a tile."""
    return tuple(
        e if same_extent(v, p) else clip(binary(BinaryKind.SUB, v, o), e)
        for v, p, o, e in zip(valid, physical, offsets, extents, strict=True)
    )


class Read(Op, name="read"):
    """One element as a scalar."""

    tile: Value = operand(spaces=(VEC,), aliases=("tensor",))
    indices: Shape = scalars()
    spelling = Spelling()
    lowering = Needs()
    loops = Special("a scalar result")

    def infer(self) -> Type:
        kind = self.tile.type
        check_lengths(self, len(physical_of(kind)), indices=self.indices)
        check_index(self, "indices", *self.indices)
        check_box(self, self.level.value, meaning_of(kind), self.indices, (1,) * len(self.indices))
        return ScalarType(kind.dtype)

    def evaluate(self, tile: Array, indices: Any) -> Array:
        return tile[box(tile, indices, (1,) * len(indices))].reshape(())

    def accesses(self) -> tuple[Access, ...]:
        return (Access("tile", False, self.indices, (1,) * len(self.indices)),)

    def work(self) -> Work:
        return Work("scalar", elements=1, nbytes=self.tile.dtype.nbytes)

    def lower(self, context: LoweringContext) -> Value:
        return context.emit(self if in_ddr(self.tile) else self.at_level(TILE))

    def flattened(self, replace: Callable[[Value], Scalar]) -> Op:
        op = self.with_operands(replace)
        return op.replace(indices=flat_offsets(physical_of(self.tile.type), op.indices))


class Write(Op, name="write", writes="tile"):
    """One element replaced; the result is the next version of the tensor or tile."""

    tile: Value = operand(spaces=(VEC,), aliases=("tensor",))
    indices: Shape = scalars()
    value: Scalar = scalar()
    spelling = Spelling()
    lowering = Needs()
    loops = Special("a single element")

    def infer(self) -> Type:
        kind = self.tile.type
        check_lengths(self, len(physical_of(kind)), indices=self.indices)
        check_index(self, "indices", *self.indices)
        check_scalar(self, "value", self.value, kind.dtype)
        check_box(self, self.level.value, meaning_of(kind), self.indices, (1,) * len(self.indices))
        return kind.without_memref() if isinstance(kind, TileType) else kind

    def evaluate(self, tile: Array, indices: Any, value: Any) -> Array:
        tile[box(tile, indices, (1,) * len(indices))] = value
        return tile

    def defined(self, tile: Array, indices: Any, value: Any) -> Array:
        tile[box(tile, indices, (1,) * len(indices))] = True
        return tile

    def accesses(self) -> tuple[Access, ...]:
        return (Access("tile", True, self.indices, (1,) * len(self.indices)),)

    def work(self) -> Work:
        return Work("scalar", elements=1, nbytes=self.tile.dtype.nbytes)

    def lower(self, context: LoweringContext) -> Value:
        return context.emit(self if in_ddr(self.tile) else self.at_level(TILE))

    def flattened(self, replace: Callable[[Value], Scalar]) -> Op:
        op = self.with_operands(replace)
        return op.replace(indices=flat_offsets(physical_of(self.tile.type), op.indices))


class Assemble(Op, name="assemble", writes="target"):
    """`source` written into `target` at `offset`: the target's next version. `atomic=1` adds instead (tensors only).
    Only the valid part of `source` is written."""

    target: Value = operand(aliases=("tensor",))
    source: Value = operand(aliases=("src",))
    offset: Shape = scalars(aliases=("offsets",))
    atomic: int = attribute(default=0, levels=(TENSOR,))
    spelling = Spelling()
    lowering = Needs()
    loops = Update(_assemble_index, "source", "target")

    @property
    def region(self) -> Shape:
        extents = meaning_of(self.source.type)
        return (1,) * (len(self.offset) - len(extents)) + extents

    def infer(self) -> Type:
        kind, source = self.target.type, self.source.type
        rank = len(physical_of(kind))
        check_lengths(self, rank, offset=self.offset)
        check_index(self, "offset", *self.offset)
        if len(physical_of(source)) > rank:
            check_lengths(self, rank, dimensions_of_source=physical_of(source))
        if source.dtype is not kind.dtype:
            raise DTypeError(
                f"{self.qualified_name}: target and source have two dtypes",
                span=self.span,
                required=f"a source of {kind.dtype}",
                found=f"target {kind!r} and source {source!r}",
                help=f"cast the source: pl.cast(source, pl.{kind.dtype})",
            )
        check_box(self, "target", physical_of(kind), self.offset, self.region)
        return kind.without_memref() if isinstance(kind, TileType) else kind

    def evaluate(self, target: Array, source: Array, offset: Any) -> Array:
        if 0 in source.shape:
            return target
        region = box(target, offset, (1,) * (target.ndim - source.ndim) + source.shape)
        values = source.reshape(target[region].shape)
        if self.atomic:
            values = target[region] & values if target.dtype.kind == "b" else target[region] + values
        target[region] = values
        return target

    def accesses(self) -> tuple[Access, ...]:
        read = (Access("target", False, self.offset, self.region),) if self.atomic else ()
        return (whole_access("source", self.source.type), *read, Access("target", True, self.offset, self.region))

    def work(self) -> Work:
        elements = elements_of(self.source.type)
        return Work("move", elements=elements, nbytes=elements * self.source.dtype.nbytes)

    def lower(self, context: LoweringContext) -> Value:
        source = self.source
        if in_ddr(source):
            source = context.emit(whole_load(source), source.name)
        if in_ddr(self.target):
            return context.emit(Store(source, self.offset, self.target, None, self.atomic, span=self.span))
        return context.emit(Assemble(self.target, source, self.offset, level=TILE, span=self.span))

    def flattened(self, replace: Callable[[Value], Scalar]) -> Op:
        op = self.with_operands(replace)
        kind, source = physical_of(self.target.type), physical_of(self.source.type)
        ones = (1,) * (len(kind) - len(source))
        check_rows(self, kind, (*ones, *source))
        return op.replace(offset=flat_offsets(kind, op.offset))
