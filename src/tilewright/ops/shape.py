"""Views and rearrangements: slice, reshape, transpose, valid shapes, padding.

Of a tile, `slice`, `reshape`, `transpose_view` and `set_validshape` are views: no byte moves. Of a tensor they are
new values. A tensor has no physical shape apart from its meaning, so there a valid shape is the shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from tilewright.errors import ShapeError, UnsupportedError, ValidShapeError
from tilewright.ir.layout import BLayout, Layout, MemorySpace, Pad, SLayout
from tilewright.ir.loops import Index
from tilewright.ir.op import (
    Access,
    Array,
    Inherit,
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
from tilewright.ir.op import scalar as scalar_field
from tilewright.ir.scalar import BinaryKind, Scalar, Shape, Value, binary, substitute
from tilewright.ir.types import TensorType, TileType, TileView, Type
from tilewright.ops.common import (
    TENSOR,
    TILE,
    VEC,
    array_type,
    box,
    check_box,
    check_index,
    check_lengths,
    clip,
    count,
    elements_of,
    in_ddr,
    meaning_of,
    physical_of,
    same_extent,
    same_shape,
)  # fmt: skip
from tilewright.ops.flat import check_rows, flat_offsets, flat_shape, flat_valid
from tilewright.ops.movement import Load, identity, shifted, swapped, upper_bound, whole_load
from tilewright.ops.parts import window

E = TypeVar("E")
MATRIX_SPACES = (MemorySpace.MAT, MemorySpace.LEFT, MemorySpace.RIGHT)


def _viewed(kind: TileType, shape: Shape, valid: Shape, layout: Layout | None = None, pad: Pad = Pad.NULL) -> TileType:
    """A view of a tile of type `kind`: in the same memory, with its compactness."""
    return TileType(shape, kind.dtype, kind.space, TileView(valid, layout=layout, pad=pad, compact=kind.view.compact))


def _slice_index(op: Slice, *ix: Scalar) -> Shape:
    return shifted(op.offset, op.with_dropped(ix))


def _reshape_index(op: Reshape, *ix: Scalar) -> Shape:
    return reshaped_index(op.shape, physical_of(op.tile.type), ix)


def _transpose_index(op: Transpose, *ix: Scalar) -> Shape:
    return op.exchanged(ix)


def _turned_index(op: TransposeView, *ix: Scalar) -> Shape:
    return swapped(ix)


class Slice(Op, name="slice", result_space=Inherit("tile"), view_of="tile"):
    """A window of extents `shape` at `offset`.

    `valid_shape`: how much of it has meaning (default: what has meaning in the source). `clamp=True` cuts it to what
    lies inside the source. `drop_dims`: dimensions of extent 1 to leave out. `pad_value`: as in `load`."""

    tile: Value = operand(aliases=("tensor", "input"))
    shape: Shape = scalars()
    offset: Shape = scalars(aliases=("offsets",))
    valid_shape: Shape | None = scalars(default=None)
    drop_dims: tuple[int, ...] | None = attribute(default=None)
    pad_value: Pad | None = attribute(default=None)
    clamp: bool = attribute(default=False)
    spelling = Spelling()
    lowering = Needs()
    loops = Index(_slice_index, "tile")

    @property
    def region(self) -> Shape:
        """The extents that have meaning, per dimension of the source."""
        source = self.tile.type
        valid = self.valid_shape
        if valid is None:
            valid = window(meaning_of(source), physical_of(source), self.offset, self.shape)
        if not self.clamp:
            return valid
        limits = zip(meaning_of(source), self.offset, valid, strict=True)
        return tuple(clip(binary(BinaryKind.SUB, limit, offset), extent) for limit, offset, extent in limits)

    def kept(self, shape: tuple[E, ...]) -> tuple[E, ...]:
        """`shape` without the dropped dimensions."""
        dropped = {axis % len(shape) for axis in self.drop_dims or ()}
        return tuple(extent for axis, extent in enumerate(shape) if axis not in dropped)

    def with_dropped(self, ix: Shape) -> Shape:
        """The index `ix` of the result, with 0 in the dropped dimensions."""
        dropped = {axis % len(self.shape) for axis in self.drop_dims or ()}
        given = iter(ix)
        return tuple(0 if axis in dropped else next(given) for axis in range(len(self.shape)))

    def infer(self) -> Type:
        kind = self.tile.type
        rank = len(physical_of(kind))
        check_lengths(self, rank, shape=self.shape, offset=self.offset, valid_shape=self.valid_shape)
        check_index(self, "offset", *self.offset)
        for axis in self.drop_dims or ():
            if not -rank <= axis < rank or self.shape[axis] != 1:
                raise ShapeError(
                    f"{self.qualified_name} can only drop dimensions of extent 1",
                    span=self.span,
                    found=f"drop_dims={list(self.drop_dims or ())} of {list(self.shape)}",
                )
        if isinstance(kind, TileType):
            check_box(self, "tile", kind.shape, self.offset, self.shape)
            view = _viewed(kind, self.kept(self.shape), self.kept(self.region), kind.view.layout)
            return view if self.pad_value is None else view.with_(pad=self.pad_value)
        if not self.clamp:
            check_box(self, "tensor", physical_of(kind), self.offset, self.region)
        return TensorType(self.kept(tuple(map(upper_bound, self.region, self.shape))), kind.dtype)

    def evaluate(self, tile: Array, shape: Any, offset: Any, valid_shape: Any) -> Array:
        extents = tuple(shape)
        if self.level is TENSOR:
            extents = tuple(valid_shape or shape)
            if self.clamp:
                limits = zip(tile.shape, offset, extents, strict=True)
                extents = tuple(max(0, min(limit - start, extent)) for limit, start, extent in limits)
        if 0 in extents:
            return np.zeros(self.kept(extents), tile.dtype)
        return tile[box(tile, offset, extents)].reshape(self.kept(extents)).copy()

    def accesses(self) -> tuple[Access, ...]:
        return (Access("tile", False, self.offset, self.region), whole_access(None, self.infer(), writes=True))

    def work(self) -> Work:
        return Work("none")

    def lower(self, context: LoweringContext) -> Value:
        if not in_ddr(self.tile):
            return context.emit(self.at_level(TILE))
        lead = 0
        while lead in {axis % len(self.shape) for axis in self.drop_dims or ()}:
            lead += 1
        plain = len(self.drop_dims or ()) == lead
        valid = self.valid_shape
        loaded = context.emit(
            Load(
                self.tile, self.offset, self.shape[lead:], None if valid is None else valid[lead:], context.space,
                self.clamp, context.transpose and plain, self.pad_value, span=self.span,
            )
        )  # fmt: skip
        if plain:
            return loaded
        kind = loaded.type
        assert isinstance(kind, TileType)
        rest = [axis - lead for axis in (a % len(self.shape) for a in self.drop_dims or ()) if axis >= lead]
        shapes = [tuple(e for i, e in enumerate(s) if i not in rest) for s in (kind.shape, kind.valid)]
        out = context.emit(Reshape(loaded, shapes[0], shapes[1], level=TILE, span=self.span))
        return transposed(out, context) if context.transpose else out

    def resized(self, shape: Shape) -> Op:
        return self if self.drop_dims else self.replace(shape=shape, valid_shape=self.region)

    def flattened(self, replace: Callable[[Value], Scalar]) -> Op:
        op, kind = self.with_operands(replace), physical_of(self.tile.type)
        check_rows(self, kind, op.shape)
        valid = None if op.valid_shape is None else flat_valid(op.shape, op.valid_shape)
        shape, offset = flat_shape(op.shape), flat_offsets(kind, op.offset)
        return op.replace(shape=shape, offset=offset, valid_shape=valid, drop_dims=None)


class Reshape(Op, name="reshape", result_space=Inherit("tile"), view_of="tile"):
    """The same elements, in row-major order, in another shape. `valid_shape` is worked out where the valid part is a
    box in the new shape too, and must be given otherwise."""

    tile: Value = operand(aliases=("tensor", "input"))
    shape: Shape = scalars()
    valid_shape: Shape | None = scalars(default=None)
    spelling = Spelling()
    lowering = Needs()
    loops = Index(_reshape_index, "tile")

    def infer(self) -> Type:
        kind = self.tile.type
        old = physical_of(kind)
        check_lengths(self, len(self.shape), valid_shape=self.valid_shape)
        if not _equal_counts(old, self.shape):
            raise ShapeError(
                f"{self.qualified_name} keeps the number of elements",
                span=self.span,
                required=f"{count(old)} elements",
                found=f"{count(self.shape)} elements: {kind!r} as {list(self.shape)}",
            )
        if isinstance(kind, TensorType):
            return TensorType(self.shape if self.valid_shape is None else self.valid_shape, kind.dtype)
        assert isinstance(kind, TileType)
        valid = self.valid_shape
        if valid is None:
            valid = reshaped_valid(kind.shape, kind.valid, self.shape)
        if valid is None:
            raise ValidShapeError(
                "the valid part of the tile is no box in the new shape",
                span=self.span,
                found=f"{kind!r} as {list(self.shape)}",
                help="give valid_shape, or reshape before narrowing the valid shape",
            )
        return _viewed(kind, self.shape, valid, pad=kind.view.pad)

    def evaluate(self, tile: Array, shape: Any, valid_shape: Any) -> Array:
        out = tile.reshape(tuple(shape))
        if self.level is TENSOR and valid_shape is not None:
            return out[tuple(slice(0, extent) for extent in valid_shape)].copy()
        return out.copy()

    def work(self) -> Work:
        return Work("none")

    def lower(self, context: LoweringContext) -> Value:
        source = self.tile
        if in_ddr(source):
            source = context.emit(whole_load(source, context.space), source.name)
        out = context.emit(Reshape(source, self.shape, self.valid_shape, level=TILE, span=self.span))
        return transposed(out, context) if in_ddr(self.tile) and context.transpose else out

    def flattened(self, replace: Callable[[Value], Scalar]) -> Op:
        op = self.with_operands(replace)
        shape = self.infer()
        assert isinstance(shape, TileType)
        valid = tuple(substitute(extent, replace) for extent in flat_valid(shape.shape, shape.valid))
        flat = flat_shape(op.shape)
        return op.replace(shape=flat, valid_shape=None if valid == flat else valid)


def _equal_counts(a: Shape, b: Shape) -> bool:
    """Equal numbers of elements. Extents that are not known when compiling must be the same in both."""
    symbols = [sorted((e for e in shape if not isinstance(e, int)), key=repr) for shape in (a, b)]
    return count(a) == count(b) and len(symbols[0]) == len(symbols[1]) and all(map(same_extent, *symbols))


def reshaped_valid(old: Shape, valid: Shape, new: Shape) -> Shape | None:
    """The valid shape after a reshape from `old` to `new`; None when the valid part is no box there."""
    if same_shape(old, valid):
        return new
    groups = _groups(old, new)
    if groups is None:
        return None
    out: list[Scalar] = []
    for (a, b), (c, d) in groups:
        part = _group_valid(old[a:b], valid[a:b], new[c:d])
        if part is None:
            return None
        out += part
    return tuple(out)


def _groups(old: Shape, new: Shape) -> list[tuple[tuple[int, int], tuple[int, int]]] | None:
    """Runs of dimensions of equal size in both shapes, smallest first; None when an extent is not known."""
    if not all(isinstance(extent, int) for extent in old + new):
        return None
    found: list[tuple[tuple[int, int], tuple[int, int]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        a, c = i, j
        left = right = 1
        while i == a or j == c or left != right:
            if (left <= right or j >= len(new)) and i < len(old):
                left *= count((old[i],))
                i += 1
            elif j < len(new):
                right *= count((new[j],))
                j += 1
            else:
                break
        found.append(((a, i), (c, j)))
    return found


def _group_valid(old: Shape, valid: Shape, new: Shape) -> Shape | None:
    """`reshaped_valid` of one group: the valid part must be a run of its first elements in both shapes."""
    if same_shape(old, valid):
        return new
    real = [(o, v) for o, v in zip(old, valid, strict=True) if not (o == 1 and v == 1)]
    if not all(same_extent(o, v) for o, v in real[1:]):
        return None
    inner = count(tuple(o for o, _ in real[1:]))
    rows = real[0][1]
    wide = next((axis for axis, extent in enumerate(new) if extent != 1), 0)
    block = count(new[wide + 1 :])
    if inner % block == 0:
        return (*new[:wide], binary(BinaryKind.MUL, rows, inner // block), *new[wide + 1 :])
    if isinstance(rows, int) and rows * inner % block == 0:
        return (*new[:wide], rows * inner // block, *new[wide + 1 :])
    return None


def reshaped_index(new: Shape, old: Shape, ix: Shape) -> Shape:
    """The index in `old` of the element at `ix` of `new`, both row-major."""
    if len(new) == len(old) == 2 and 1 in new and 1 in old:  # a vector turned over: its one index stays itself
        position = ix[1] if new[0] == 1 else ix[0]
        return (0, position) if old[0] == 1 else (position, 0)
    flat: Scalar = 0
    for extent, i in zip(new, ix, strict=True):
        flat = binary(BinaryKind.ADD, binary(BinaryKind.MUL, flat, extent), i)
    out: list[Scalar] = []
    for extent in reversed(old[1:]):
        out.append(binary(BinaryKind.MOD, flat, extent))
        flat = binary(BinaryKind.FLOORDIV, flat, extent)
    return (flat, *reversed(out)) if old else ()


class Transpose(Op, name="transpose", result_space=Inherit("tile")):
    """Dimensions `axis1` and `axis2` exchanged; their physical and valid extents too. Elements move."""

    tile: Value = operand(spaces=(VEC,), aliases=("tensor", "input"))
    axis1: int = attribute(default=0)
    axis2: int = attribute(default=1)
    tmp: Value | None = operand(default=None, scratch=True, spaces=(VEC,), levels=(TILE,))
    spelling = Spelling(pto="pto.ttrans")
    lowering = Needs()
    loops = Index(_transpose_index, "tile")

    def exchanged(self, shape: Shape) -> Shape:
        out = list(shape)
        out[self.axis1], out[self.axis2] = out[self.axis2], out[self.axis1]
        return tuple(out)

    def infer(self) -> Type:
        kind = self.tile.type
        shape = physical_of(kind)
        rank = len(shape)
        if not (-rank <= self.axis1 < rank and -rank <= self.axis2 < rank):
            raise ShapeError(
                f"{self.qualified_name}: there is no such dimension",
                span=self.span,
                required=f"two of the {rank} dimensions",
                found=f"{self.axis1} and {self.axis2}",
            )
        space = kind.space if isinstance(kind, TileType) else None
        return array_type(self.level, self.exchanged(shape), kind.dtype, self.exchanged(meaning_of(kind)), space)

    def evaluate(self, *operands: Any, **_: Any) -> Array:
        return np.asarray(operands[0]).swapaxes(self.axis1, self.axis2)

    def work(self) -> Work:
        elements = elements_of(self.tile.type)
        return Work("move", elements=elements, nbytes=elements * self.tile.dtype.nbytes)

    def scratch(self) -> dict[str, TileType]:
        kind = self.tile.type
        assert isinstance(kind, TileType)
        return {"tmp": TileType(kind.shape, kind.dtype, VEC)}

    def lower(self, context: LoweringContext) -> Value:
        rank = len(physical_of(self.tile.type))
        last = {self.axis1 % rank, self.axis2 % rank} == {rank - 1, rank - 2}
        if in_ddr(self.tile):
            if last:
                return context.emit(whole_load(self.tile, context.space, not context.transpose), self.tile.name)
            loaded = context.emit(whole_load(self.tile, context.space), self.tile.name)
            out = context.emit(Transpose(loaded, self.axis1, self.axis2, level=TILE, span=self.span))
            return transposed(out, context) if context.transpose else out
        if last:
            return transposed(self.tile, context)
        return context.emit(Transpose(self.tile, self.axis1, self.axis2, level=TILE, span=self.span))

    def flattened(self, replace: Callable[[Value], Scalar]) -> Op:
        op, shape = self.with_operands(replace), physical_of(self.tile.type)
        rank = len(shape)
        last = {self.axis1 % rank, self.axis2 % rank} == {rank - 1, rank - 2}
        if not last or any(extent != 1 for extent in shape[:-2]):
            raise UnsupportedError(
                "a transposition of leading dimensions has no form with two dimensions",
                span=self.span,
                required="the last two dimensions, all others of extent 1",
                found=f"dimensions {self.axis1} and {self.axis2} of {list(shape)}",
                help="loop over the leading dimensions",
            )
        return op.replace(axis1=0, axis2=1)


def transposed(tile: Value, context: LoweringContext) -> Value:
    """`tile` with its last two dimensions exchanged: a view where the matrix engine reads it, else moved."""
    if context.space in MATRIX_SPACES and len(physical_of(tile.type)) == 2:
        return context.emit(TransposeView(tile, span=tile.span))
    rank = len(physical_of(tile.type))
    return context.emit(Transpose(tile, rank - 2, rank - 1, level=TILE, span=tile.span))


class TransposeView(Op, name="transpose_view", levels=(TILE,), result_space=Inherit("tile"), view_of="tile"):
    """The last two dimensions exchanged without moving an element: rows become columns in the layout too."""

    tile: Value = operand()
    spelling = Spelling()
    loops = Index(_turned_index, "tile")

    def infer(self) -> Type:
        kind = self.tile.type
        assert isinstance(kind, TileType)
        if kind.rank < 2:
            raise ShapeError("transpose_view takes two dimensions", span=self.span, found=repr(kind))
        layout = None if kind.layout is None else turned(kind.layout)
        return _viewed(kind, swapped(kind.shape), swapped(kind.valid), layout, kind.view.pad)

    def evaluate(self, tile: Array) -> Array:
        return tile.swapaxes(-1, -2)

    def work(self) -> Work:
        return Work("none")


def turned(layout: Layout) -> Layout:
    """The layout of the same bytes seen transposed: rows and columns change places, of blocks and within a box."""
    blocks = BLayout.COL_MAJOR if layout.blayout is BLayout.ROW_MAJOR else BLayout.ROW_MAJOR
    boxes = {SLayout.ROW_MAJOR: SLayout.COL_MAJOR, SLayout.COL_MAJOR: SLayout.ROW_MAJOR}
    return Layout(blocks, boxes.get(layout.slayout, layout.slayout), layout.fractal)


class SetValidShape(Op, name="set_validshape", result_space=Inherit("tile"), view_of="tile"):
    """The same tile, of which [valid_rows, valid_cols] has meaning."""

    tile: Value = operand(aliases=("tensor", "input"))
    valid_rows: Scalar = scalar_field()
    valid_cols: Scalar = scalar_field()
    spelling = Spelling()
    lowering = Needs()
    loops = Index(identity, "tile")

    @property
    def wanted(self) -> Shape:
        return (self.valid_rows, self.valid_cols)

    def infer(self) -> Type:
        kind = self.tile.type
        shape = physical_of(kind)
        check_lengths(self, 2, dimensions=shape)
        check_index(self, "the valid shape", *self.wanted)
        for wanted, limit in zip(self.wanted, shape, strict=True):
            if isinstance(wanted, int) and isinstance(limit, int) and not 0 <= wanted <= limit:
                raise ValidShapeError(
                    "the valid shape is larger than the " + self.level.value,
                    span=self.span,
                    required=f"at most {list(shape)}",
                    found=str(list(self.wanted)),
                )
        if isinstance(kind, TileType):
            pad = kind.view.pad if same_shape(kind.valid, self.wanted) else Pad.NULL
            return _viewed(kind, kind.shape, self.wanted, kind.view.layout, pad)
        return TensorType(tuple(map(upper_bound, self.wanted, shape)), kind.dtype)

    def evaluate(self, tile: Array, valid_rows: int, valid_cols: int) -> Array:
        return tile if self.level is TILE else tile[box(tile, (0, 0), (valid_rows, valid_cols))]

    def accesses(self) -> tuple[Access, ...]:
        return (Access("tile", False, (0, 0), self.wanted), whole_access(None, self.infer(), writes=True))

    def work(self) -> Work:
        return Work("none")

    def lower(self, context: LoweringContext) -> Value:
        """A tensor has the shape that is stated; so has the tile, as far as that is known when compiling."""
        shape = physical_of(self.tile.type)
        known = tuple(w if isinstance(w, int) else limit for w, limit in zip(self.wanted, shape, strict=True))
        if not in_ddr(self.tile):
            if same_shape(known, shape):
                return context.emit(self.at_level(TILE))
            return context.emit(Slice(self.tile, known, (0,) * len(shape), self.wanted, level=TILE, span=self.span))
        load = Load(
            self.tile, (0,) * len(shape), known, self.wanted, context.space, transpose=context.transpose, span=self.span
        )
        return context.emit(load)
