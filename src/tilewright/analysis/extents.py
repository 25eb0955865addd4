"""Physical extents that the boxes of a target allow, for every tile of a function at once.

A tile's rows and columns are rounded up to the box of its layout. Tiles that an operation ties together (the operands
of an addition, the inner dimension of a product, what a loop carries) must agree, so extents are rounded per class of
tied dimensions, to the least common multiple of what its members need. What is tied is read from loop forms.

A dimension of extent 1 is a column vector's where a row reduction makes it or a broadcast along rows reads it: such a
vector lies column by column, its elements together. Any other [M, 1] tile is rows of one element, rounded like any
other row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import lcm

from tilewright.analysis.footprint import packs_masks
from tilewright.analysis.spaces import index_of, rearranges, states_shape, tile_operands
from tilewright.ir.dtypes import BOOL, INDEX
from tilewright.ir.function import Function
from tilewright.ir.layout import COL_MAJOR, ROW_MAJOR, Layout, SLayout
from tilewright.ir.loops import Contract, Elementwise, Index, Map, Reduce, Special
from tilewright.ir.nodes import For, If, Let, Scope, result_of
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.ir.types import ScalarType, TileType
from tilewright.targets import Target

Dim = tuple[Value, int]


@dataclass(slots=True)
class Extents:
    """Classes of tied dimensions, and the physical shape of each tile."""

    target: Target
    shapes: dict[Value, tuple[int, ...]] = field(default_factory=dict[Value, tuple[int, ...]])
    vectors: set[Value] = field(default_factory=set[Value])
    """column vectors: [M, 1] tiles whose elements lie together"""
    rows: set[Value] = field(default_factory=set[Value])
    """rows [1, N] that products start from, and what they come from: plain rows, whatever boxes their memory has"""
    sources: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """the tile that another one is a copy or a view of"""
    windows: list[tuple[Value, Value, tuple[int, ...]]] = field(
        default_factory=list[tuple[Value, Value, tuple[int, ...]]]
    )
    """(result, source, the source's dimension for each of the result's, -1 for none)"""
    views: dict[Value, Op] = field(default_factory=dict[Value, Op])
    """the operations of views, by result"""
    tiles: list[Value] = field(default_factory=list[Value])
    _parent: dict[Dim, Dim] = field(default_factory=dict[Dim, Dim])

    def root(self, dim: Dim) -> Dim:
        path: list[Dim] = []
        while self._parent.setdefault(dim, dim) is not dim:
            path.append(dim)
            dim = self._parent[dim]
        for passed in path:
            self._parent[passed] = dim
        return dim

    def tie(self, a: Dim, b: Dim) -> None:
        left, right = self.root(a), self.root(b)
        if left is not right:
            self._parent[right] = left

    def tie_all(self, a: Value, b: Value) -> None:
        for axis in range(tile_type(a).rank):
            self.tie((a, axis), (b, axis))

    def changed(self, value: Value) -> bool:
        """Whether the physical shape of `value` has to grow."""
        return self.shapes[value] != tile_type(value).shape


def extents_of(function: Function, target: Target) -> Extents:
    """The physical shapes that the tiles of `function` have on `target`. Every tile has a space and constant
    extents."""
    found = Extents(target)
    marked: set[Dim] = set()
    for stmt in function.walk():
        found.tiles += [v for v in (*stmt.block_args(), *stmt.defs()) if isinstance(v.type, TileType)]
        match stmt:
            case Let(target=made, value=Op() as op):
                _tie_op(found, made, op, marked)
            case For():
                for arg, init, given, result in zip(
                    stmt.iter_args, stmt.inits, result_of(stmt.body), stmt.results, strict=True
                ):
                    for other in (init, given, result):
                        if isinstance(arg.type, TileType) and isinstance(other, Value):
                            found.tie_all(arg, other)
            case If() | Scope():
                for block in stmt.blocks():
                    for result, given in zip(stmt.defs(), result_of(block), strict=True):
                        if isinstance(result.type, TileType) and isinstance(given, Value):
                            found.tie_all(result, given)
            case _:
                pass
    _round(found, {found.root(dim) for dim in marked})
    return found


def tile_type(value: Value) -> TileType:
    assert isinstance(value.type, TileType)
    return value.type


# --- what operations tie ------------------------------------------------------------------------------------------
def _tie_op(found: Extents, made: Value, op: Op, marked: set[Dim]) -> None:
    tiles = [(name, value) for name, value in tile_operands(op) if not op.field(name).scratch]
    if not isinstance(made.type, TileType):
        return
    rank = made.type.rank
    if op.view_of is not None:
        found.views[made] = op
    written = getattr(op, op.writes) if op.writes else None
    if isinstance(written, Value) and isinstance(written.type, TileType):
        found.tie_all(written, made)
    match op.loops:
        case Elementwise(maps=maps):
            for index, (_, value) in enumerate(tiles):
                how = maps[index] if index < len(maps) else Map.FULL
                _tie_elementwise(found, made, value, how, marked)
        case Reduce(axis=axis) if tiles:
            axis = axis % rank
            for other in range(rank):
                if other != axis:
                    found.tie((made, other), (tiles[0][1], other))
            if axis == rank - 1 and rank >= 2:
                marked.add((made, axis))
        case Contract() as form:
            lhs, rhs = getattr(op, form.lhs), getattr(op, form.rhs)
            found.tie((lhs, rank - 2), (made, rank - 2))
            found.tie((rhs, rank - 1), (made, rank - 1))
            found.tie((lhs, rank - 1), (rhs, rank - 2))
            if form.acc is not None and form.acc_map is Map.COLUMN:
                _tie_row(found, made, getattr(op, form.acc))
        case Index() as form:
            source = getattr(op, form.source)
            if isinstance(source.type, TileType):
                found.sources[made] = source
                _tie_index(found, made, source, op, form)
                _mark_turned(made, source, op, marked)
        case Special() if len(tiles) == 1 and tile_type(tiles[0][1]).shape == made.type.shape and not states_shape(op):
            found.tie_all(tiles[0][1], made)  # all of a tile, what lies outside its valid part included
        case _:
            pass


def _tie_row(found: Extents, made: Value, row: Value) -> None:
    """The row that a product starts from has its columns, and lies as one row wherever it comes from."""
    rank = tile_type(made).rank
    found.tie((row, rank - 1), (made, rank - 1))
    source: Value | None = row
    while source is not None and tile_type(source).shape[-2] == 1:
        found.rows.add(source)
        source = found.sources.get(source)


def _mark_turned(made: Value, source: Value, op: Op, marked: set[Dim]) -> None:
    """A row seen as a column, or a column as a row: the column's elements lie together."""
    for column, row in ((made, source), (source, made)):
        tall, wide = tile_type(column).shape, tile_type(row).shape
        turned = tall != wide and tall[::-1] == wide
        if op.view_of is not None and turned and len(tall) == 2 and tall[1] == 1:
            marked.add((column, 1))


def _tie_elementwise(found: Extents, made: Value, value: Value, how: Map, marked: set[Dim]) -> None:
    rank = tile_type(made).rank
    if tile_type(value).rank != rank:
        return
    for axis in range(rank):
        skipped = (how is Map.ROW and axis == rank - 1) or (how is Map.COLUMN and axis < rank - 1)
        if not skipped:
            found.tie((made, axis), (value, axis))
    if how is Map.ROW and rank >= 2:
        marked.add((value, rank - 1))


def _tie_index(found: Extents, made: Value, source: Value, op: Op, form: Index) -> None:
    """Dimensions that the map carries over as they are; a constant offset that is not 0 makes a window."""
    indices = tuple(Value(f"i{axis}", ScalarType(INDEX)) for axis in range(tile_type(made).rank))
    mapped = form.map(op, *indices)
    axes = [-1] * len(indices)
    window = False
    for axis, scalar in enumerate(mapped):
        base = index_of(scalar, indices)
        if base is None:
            continue
        position = indices.index(base)
        axes[position] = axis
        if scalar is base and tile_type(source).shape[axis] == tile_type(made).shape[position]:
            found.tie((source, axis), (made, position))
        else:
            window = True
    if op.view_of is not None and tile_type(source).shape == tile_type(made).shape:
        for axis, scalar in enumerate(mapped):  # a reshape into the same shape
            if index_of(scalar, indices) is None:
                found.tie((source, axis), (made, axis))
    if window and not rearranges(op, tile_type(made)):
        found.windows.append((made, source, tuple(axes)))


# --- rounding -----------------------------------------------------------------------------------------------------
def _round(found: Extents, marked: set[Dim]) -> None:
    multiple: dict[Dim, int] = {}
    extent: dict[Dim, int] = {}
    for value in found.tiles:
        shape = tile_type(value).static_shape
        if len(shape) >= 2 and shape[-1] == 1 and found.root((value, len(shape) - 1)) in marked:
            found.vectors.add(value)
        sides = (*(1,) * (len(shape) - 2), *box_of(value, found))[-len(shape) :]
        for axis, size in enumerate(shape):
            root = found.root((value, axis))
            multiple[root] = lcm(multiple.get(root, 1), sides[axis])
            extent[root] = max(extent.get(root, 0), size)

    def rounded(dim: Dim) -> int:
        root = found.root(dim)
        return -(-extent[root] // multiple[root]) * multiple[root]

    for made, source, axes in reversed(found.windows):  # a window that grows needs room in its source
        for position, axis in enumerate(axes):
            size = tile_type(made).static_shape[position]
            if axis >= 0:
                needed = tile_type(source).static_shape[axis] + rounded((made, position)) - size
                root = found.root((source, axis))
                extent[root] = max(extent[root], needed)
    for value in found.tiles:
        found.shapes[value] = tuple(rounded((value, axis)) for axis in range(tile_type(value).rank))


def box_of(value: Value, found: Extents) -> tuple[int, int]:
    """Multiples for the last two dimensions of `value`."""
    kind, target = tile_type(value), found.target
    assert kind.space is not None
    if packs_masks(target) and kind.dtype is BOOL:
        return 1, 1
    layout = kind.view.layout or plain_layout(value, found)
    shape = kind.static_shape if _spared(value, found, layout) else None
    return target.box(kind.space, layout, kind.dtype, shape)


def _spared(value: Value, found: Extents, layout: Layout) -> bool:
    """Whether the one row, or the one column, of a vector stays one."""
    shape = tile_type(value).static_shape
    if value in found.rows:
        return True
    return value in found.vectors or len(shape) < 2 or shape[-1] != 1 or layout.slayout is not SLayout.NONE_BOX


def plain_layout(value: Value, found: Extents) -> Layout:
    """The layout that the target gives a tile whose type states none; a column vector's only where it is one."""
    kind = tile_type(value)
    assert kind.space is not None
    shape = kind.static_shape
    if value in found.rows:
        return ROW_MAJOR
    layout = found.target.layout(kind.space, shape)
    if len(shape) < 2 or shape[-1] != 1 or layout.slayout is not SLayout.NONE_BOX:
        return layout
    column = found.target.layout(kind.space, (*shape[:-2], 2, 1)) == COL_MAJOR
    return COL_MAJOR if value in found.vectors and column else ROW_MAJOR
