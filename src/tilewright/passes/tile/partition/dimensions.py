"""Which dimensions of a section's tiles are one and the same, and what happens along each.

Two dimensions belong to one class when an operation reads the one at the index at which it makes the other: the loop
forms of the operations say so. A class can be cut into blocks when every operation that meets it can work on a block
alone (it is *free*), or sums it up block by block (it is *summed*: the axis of a reduction, the inner one of a
product). A class that an operation handles in any other way is *held*, with the reason."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.analysis.spaces import index_of, tile_operands
from tilewright.ir.dtypes import INDEX
from tilewright.ir.loops import Contract, Elementwise, Index, Map, Reduce, Special
from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Shape, Value
from tilewright.ir.types import ScalarType, TileType
from tilewright.ops.movement import Load, Store, swapped

Dim = tuple[Value, int]
"""One dimension of one tile."""


@dataclass(slots=True)
class Dimensions:
    """The classes of the dimensions of the tiles that `lets` make; a class goes by one of its members."""

    tiles: list[Value] = field(default_factory=list[Value])
    held: dict[Dim, str] = field(default_factory=dict[Dim, str])
    summed: dict[Dim, list[Let]] = field(default_factory=dict[Dim, list[Let]])
    extents: dict[Dim, Scalar] = field(default_factory=dict[Dim, Scalar])
    _parent: dict[Dim, Dim] = field(default_factory=dict[Dim, Dim])

    def root(self, value: Value, axis: int) -> Dim:
        dim = (value, axis)
        path: list[Dim] = []
        while self._parent.setdefault(dim, dim) is not dim:
            path.append(dim)
            dim = self._parent[dim]
        for passed in path:
            self._parent[passed] = dim
        return dim

    def tie(self, a: Dim, b: Dim) -> None:
        left, right = self.root(*a), self.root(*b)
        if left is not right:
            self._parent[right] = left

    def hold(self, value: Value, reason: str, axes: tuple[int, ...] | None = None) -> None:
        for axis in range(tile_of(value).rank) if axes is None else axes:
            self.held.setdefault((value, axis), reason)

    def classes_of(self, value: Value) -> tuple[Dim, ...]:
        """The class of each dimension of a tile."""
        return tuple(self.root(value, axis) for axis in range(tile_of(value).rank))

    def has(self, value: Scalar | None, cls: Dim) -> bool:
        """Whether a value is a tile with a dimension of class `cls`."""
        return isinstance(value, Value) and isinstance(value.type, TileType) and cls in self.classes_of(value)

    def classes(self) -> list[Dim]:
        """Every class that is longer than 1, in order of appearance."""
        found = dict.fromkeys(cls for value in self.tiles for cls in self.classes_of(value))
        return [cls for cls in found if self.extents[cls] != 1]


def tile_of(value: Value) -> TileType:
    assert isinstance(value.type, TileType)
    return value.type


def dimensions_of(lets: tuple[Let, ...]) -> Dimensions:
    """The classes of the tiles of straight-line code. Linear."""
    found = Dimensions()
    for stmt in lets:
        op = stmt.value
        if not isinstance(op, Op):
            continue
        if isinstance(stmt.target.type, TileType):
            found.tiles.append(stmt.target)
        _relate(found, stmt, op)
    _settle(found)
    return found


def _settle(found: Dimensions) -> None:
    """Makes the classes' members stand for their roots; holds those of which members differ."""
    found.held = {found.root(*dim): reason for dim, reason in found.held.items()}
    summed: dict[Dim, list[Let]] = {}
    for dim, lets in found.summed.items():
        summed.setdefault(found.root(*dim), []).extend(lets)
    found.summed = summed
    for value in found.tiles:
        kind = tile_of(value)
        classes = found.classes_of(value)
        for axis, cls in enumerate(classes):
            extent = found.extents.setdefault(cls, kind.shape[axis])
            if extent != kind.shape[axis]:
                found.held.setdefault(cls, f"{value.name} has another extent there")
            if kind.valid[axis] != kind.shape[axis]:
                found.held.setdefault(cls, f"only a part of {value.name} has meaning")
            if classes.count(cls) > 1 and extent != 1:
                found.held.setdefault(cls, f"the rows of {value.name} meet its own columns")


# --- what one operation ties ---------------------------------------------------------------------------------------
def _relate(found: Dimensions, stmt: Let, op: Op) -> None:
    made = stmt.target
    tiles = [value for _, value in tile_operands(op)]
    if isinstance(made.type, TileType) and (made.type is not op.infer() or made.type.memref is not None):
        found.hold(made, f"{made.name} is placed by hand")
    reason = f"{op.qualified_name} handles {made.name} as a whole"
    match op.loops:
        case _ if any(op.field(name).scratch for name, _ in tile_operands(op)):
            _hold_all(found, made, tiles, reason)
        case _ if isinstance(op, Load):
            if op.valid_shape is not None or op.clamp or op.pad_value is not None:
                found.hold(made, f"{made.name} is loaded with a valid shape or padding")
        case _ if isinstance(op, Store):
            if op.shapes is not None:
                found.hold(op.tile, f"{op.tile.name} is stored in another shape")
        case Elementwise(maps=maps) if isinstance(made.type, TileType):
            if not tiles:
                _relate_fill(found, made, op, reason)
            for index, value in enumerate(tiles):
                _relate_element(found, made, value, maps[index] if index < len(maps) else Map.FULL, reason)
        case Reduce(axis=axis) if len(tiles) == 1:
            last = tile_of(made).rank - 1
            along = last if axis == 1 else axis
            for other in range(last + 1):
                if other != along:
                    found.tie((made, other), (tiles[0], other))
            found.summed.setdefault((tiles[0], along), []).append(stmt)
        case Contract() as form:
            _relate_product(found, stmt, op, form)
        case Special(rowwise=True) if op.writes is None and isinstance(made.type, TileType):
            _relate_rows(found, made, tiles, reason)
        case Index() as form if len(tiles) == 1 and op.writes is None:
            _relate_map(found, made, tiles[0], op, form, reason)
        case _:
            _hold_all(found, made, tiles, reason)


def _hold_all(found: Dimensions, made: Value, tiles: list[Value], reason: str) -> None:
    for value in (*tiles, *((made,) if isinstance(made.type, TileType) else ())):
        found.hold(value, reason)


def _relate_rows(found: Dimensions, made: Value, tiles: list[Value], reason: str) -> None:
    """Each row of the result is made of the same row of each operand; one that is no such row is held."""
    rows = tile_of(made).shape[0]
    for value in tiles:
        kind = tile_of(value)
        alike = kind.rank == tile_of(made).rank == 2 and kind.shape[0] == rows
        if alike:
            found.tie((made, 0), (value, 0))
        found.hold(value, reason, tuple(range(int(alike), kind.rank)))
    found.hold(made, reason, tuple(range(1, tile_of(made).rank)))


def _relate_fill(found: Dimensions, made: Value, op: Op, reason: str) -> None:
    """A tile out of nothing can be made smaller where the operation states its shape."""
    if shape_field(op) is None or getattr(op, VALID, None) is not None:
        found.hold(made, reason)


def _relate_element(found: Dimensions, made: Value, value: Value, how: Map, reason: str) -> None:
    rank = tile_of(made).rank
    if tile_of(value).rank != rank:
        _hold_all(found, made, [value], reason)
        return
    for axis in range(rank):
        skipped = (how is Map.ROW and axis == rank - 1) or (how is Map.COLUMN and axis == rank - 2)
        if not skipped:
            found.tie((made, axis), (value, axis))


def _relate_product(found: Dimensions, stmt: Let, op: Op, form: Contract) -> None:
    made, lhs, rhs = stmt.target, getattr(op, form.lhs), getattr(op, form.rhs)
    found.tie((lhs, 0), (made, 0))
    found.tie((rhs, 1), (made, 1))
    found.tie((lhs, 1), (rhs, 0))
    found.summed.setdefault((lhs, 1), []).append(stmt)
    acc = getattr(op, form.acc) if form.acc else None
    if acc is not None:
        _relate_element(found, made, acc, form.acc_map, f"{op.qualified_name} starts from {acc.name}")
    if form.unless is not None and getattr(op, form.unless) is not None:
        found.hold(made, f"{op.qualified_name} starts under a condition")


def _relate_map(found: Dimensions, made: Value, source: Value, op: Op, form: Index, reason: str) -> None:
    """Dimensions that the index map carries over whole; all others are held."""
    kind, below = tile_of(made), tile_of(source)
    carried = _reshaped(below.shape, kind.shape) if op.view_of and len(kind.shape) != len(below.shape) else None
    if carried is None:
        indices = tuple(Value(f"i{axis}", ScalarType(INDEX)) for axis in range(kind.rank))
        mapped = form.map(op, *indices)
        carried = [
            (axis, indices.index(base))
            for axis, scalar in enumerate(mapped)
            if (base := index_of(scalar, indices)) is not None and scalar is base
        ]
    pairs = [(a, b) for a, b in carried if below.shape[a] == kind.shape[b]]
    if len(pairs) < max(below.rank, kind.rank) and getattr(op, "drop_dims", None) is not None:
        pairs = []
    for a, b in pairs:
        found.tie((source, a), (made, b))
    stated = getattr(op, VALID, None) is not None or any(hasattr(op, name) for name in ("valid_rows", "pad"))
    found.hold(source, reason, tuple(a for a in range(below.rank) if stated or a not in [p[0] for p in pairs]))
    found.hold(made, reason, tuple(b for b in range(kind.rank) if stated or b not in [p[1] for p in pairs]))


def _reshaped(old: Shape, new: Shape) -> list[tuple[int, int]] | None:
    """The dimensions of a reshape that only adds or drops extents of 1; None for any other."""
    left = [axis for axis, extent in enumerate(old) if extent != 1]
    right = [axis for axis, extent in enumerate(new) if extent != 1]
    return list(zip(left, right, strict=True)) if [old[a] for a in left] == [new[b] for b in right] else None


# --- how an operation says where it works --------------------------------------------------------------------------
VALID = "valid_shape"


def shape_field(op: Op) -> str | None:
    """The field in which an operation states the physical shape of its result, if it does."""
    names = [field.name for field in op.fields]
    return "shape" if "shape" in names else None


def region_axes(op: Load | Store) -> tuple[int, ...]:
    """For each dimension of the tile of a transfer, the dimension of the tensor; negative for one that it has not."""
    if isinstance(op, Load):
        lead = len(op.offsets) - len(op.shapes)
        axes = tuple(range(lead, len(op.offsets)))
        return tuple(a for a in swapped(axes) if isinstance(a, int)) if op.transpose else axes
    lead = len(op.offsets) - tile_of(op.tile).rank
    return tuple(range(lead, len(op.offsets)))
