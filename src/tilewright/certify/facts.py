"""What the checker reads off an operation and a target: its own reading of the same facts that passes use.

Nothing here knows a particular operation; whoever adds one in its class has told the checker, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

from tilewright.ir.dtypes import BOOL, INDEX
from tilewright.ir.layout import Layout, MemorySpace, SLayout
from tilewright.ir.loops import Index
from tilewright.ir.nodes import Let
from tilewright.ir.op import FromAttribute, Inherit, Op
from tilewright.ir.scalar import Value, values_in
from tilewright.ir.types import ScalarType, TensorType, TileType, Type
from tilewright.targets import Edge, Target

DDR = MemorySpace.DDR
PACKED_ROW = 32
"""Bytes to which a row of a packed mask is filled up on Ascend."""


# --- bytes --------------------------------------------------------------------------------------------------------
def layout_of(tile: TileType, target: Target) -> Layout:
    """How a tile lies: as its type says, else as the memory does."""
    assert tile.space is not None
    return tile.view.layout or target.layout(tile.space, tile.static_shape)


def is_packed(tile: TileType, target: Target) -> bool:
    """Whether a tile is a mask of one bit an element."""
    return tile.dtype is BOOL and target.family == "ascend"


def boxed_shape(tile: TileType, target: Target) -> tuple[int, ...]:
    """The physical shape as whole boxes: rows and columns rounded up to what the memory and the layout demand."""
    shape = tile.static_shape
    if tile.space is None or is_packed(tile, target) or not shape:
        return shape
    rows, columns = (1, *shape)[-2:]
    tall, wide = target.box(tile.space, layout_of(tile, target), tile.dtype, (rows, columns))
    rounded = (-(-rows // tall) * tall, -(-columns // wide) * wide)
    return (*shape[:-2], *rounded) if len(shape) > 1 else rounded[1:]


def tile_bytes(tile: TileType, target: Target) -> int:
    """Bytes that a tile occupies."""
    if is_packed(tile, target):
        shape = tile.static_shape or (1,)
        rows, columns = prod(shape[:-1]), shape[-1]
        return rows * -(-columns // (8 * PACKED_ROW)) * PACKED_ROW
    return -(-prod(boxed_shape(tile, target)) * tile.dtype.bits // 8)


# --- operands -----------------------------------------------------------------------------------------------------
def space_of(kind: Type) -> MemorySpace | None:
    """DDR for a tensor, a tile's space, None for a scalar."""
    return DDR if isinstance(kind, TensorType) else kind.space if isinstance(kind, TileType) else None


def tiles_of(op: Op) -> list[tuple[str, Value]]:
    """(field, value) of the tiles that an operation names, scratch among them."""
    return [(name, value) for name, value in op.operand_items() if isinstance(value.type, TileType)]


def readable_spaces(op: Op, field: str, target: Target) -> tuple[MemorySpace, ...]:
    """Where the operation may read this operand on this machine; empty: anywhere."""
    stated = target.operand_spaces.get(op.name, {}).get(field)
    return op.field(field).spaces if stated is None else stated


def stands_for(target: Target, space: MemorySpace, wanted: MemorySpace, tile: TileType) -> bool:
    """Whether a tile in `space` is where `wanted` is: the same memory, and laid out alike there."""
    if space is wanted:
        return True
    same = target.has(wanted) and target.same_memory(space, wanted)
    return same and target.layout(space, tile.static_shape) == target.layout(wanted, tile.static_shape)


def written_tensor(op: Op) -> Value | None:
    """The tensor in DDR of which the operation makes the next version."""
    value = getattr(op, op.writes) if op.writes else None
    return value if isinstance(value, Value) and isinstance(value.type, TensorType) else None


def transfer(op: Op, made: Value) -> list[tuple[Value, MemorySpace, MemorySpace]]:
    """The ways that data goes: (what, from, to). Between two memories, or between two places of one; none for
    operations that compute, and for views."""
    if op.view_of is not None:
        return []
    end = space_of(made.type)
    if end is None:
        return []
    read = [(name, value) for name, value in op.operand_items() if name != op.writes and not op.field(name).scratch]
    if written_tensor(op) is not None or isinstance(op.result_space, FromAttribute):
        return [(value, start, end) for _, value in read if (start := space_of(value.type)) is not None]
    if op.writes is not None:  # parts go into a tile along an edge, unless the operation says where it reads them
        return [(v, s, end) for name, v in read if not op.field(name).spaces and (s := space_of(v.type)) is not None]
    if isinstance(op.result_space, Inherit):  # what is not the operand that the result stays with
        stays = op.result_space.field
        return [
            (value, start, end)
            for name, value in read
            if name != stays and not op.field(name).spaces and (start := space_of(value.type)) is not None
        ]
    return []


@dataclass(frozen=True, slots=True)
class Unit:
    """An engine of one kind of core: two cores share names of engines, and no order."""

    core: str | None
    name: str

    def __str__(self) -> str:
        return self.name if self.core is None else f"{self.name} of {self.core}"


def engine_of(stmt: Let, target: Target) -> Unit | None:
    """The engine that a statement keeps busy: that of its edge if it moves data, else the one for its kind of work.
    None for views, names of scalars, and room made in DDR."""
    op = stmt.value
    if not isinstance(op, Op) or op.view_of is not None:
        return None
    work = work_kind(op)
    ends = [space_of(value.type) for value in (stmt.target, *(value for _, value in op.operand_items()))]
    on_chip = [space for space in ends if space is not None and space is not DDR]
    if not on_chip:
        return Unit(None, target.engine_for("scalar").name) if work == "scalar" else None
    core = target.core_of_space(on_chip[0])
    edge = moving_edge(op, stmt.target, target) if work == "move" else None
    if edge is not None:
        return Unit(edge.core or core, edge.engine)
    return Unit(core, target.engine_for("scalar" if work in ("none", "scalar") else work).name)


def moving_edge(op: Op, made: Value, target: Target) -> Edge | None:
    """The edge along which an operation that counts as a move carries its first operand."""
    ends = [space_of(value.type) for name, value in op.operand_items() if name != op.writes]
    end = space_of(made.type)
    if not ends or ends[0] is None or end is None:
        return None
    return target.edge(ends[0], end)


@lru_cache(maxsize=1 << 14)
def work_kind(op: Op) -> str:
    """The kind of an operation's work; asked several times of each."""
    return op.work().kind


def turns(op: Op, made: TileType) -> bool:
    """Whether what is read from DDR arrives with rows and columns exchanged."""
    if made.rank < 2 or not isinstance(op.loops, Index) or tiles_of(op):
        return False
    indices = _indices(made.rank)
    last = op.loops.map(op, *indices)[-1]
    return not isinstance(last, int) and indices[-2] in values_in(last)


@lru_cache(maxsize=16)
def _indices(rank: int) -> tuple[Value, ...]:
    """Values that stand for the index of an element."""
    return tuple(Value(f"i{axis}", ScalarType(INDEX)) for axis in range(rank))


def is_copy(op: Op, made: Value) -> Value | None:
    """The tile of which the result is a whole copy, each element at its place, in whatever memory."""
    tiles = tiles_of(op)
    if op.view_of is not None or op.writes is not None or len(tiles) != 1 or not isinstance(op.loops, Index):
        return None
    source = tiles[0][1]
    assert isinstance(source.type, TileType)
    if not isinstance(made.type, TileType) or source.type.shape != made.type.shape:
        return None
    indices = _indices(made.type.rank)
    return source if op.loops.map(op, *indices) == indices else None


def is_boxed(layout: Layout) -> bool:
    return layout.slayout is not SLayout.NONE_BOX


# --- storage ------------------------------------------------------------------------------------------------------
def may_take_over(op: Op, field: str, made: TileType) -> bool:
    """Whether the result may be written over the operand in `field`, element by element, when that dies here."""
    kind = getattr(op, field).type
    if field in op.not_aliased or op.field(field).scratch or not isinstance(kind, TileType):
        return False
    if field in (op.writes, op.view_of):
        return True
    alike = kind.shape == made.shape and kind.dtype.bits == made.dtype.bits
    return op.inplace and alike and kind.layout == made.layout and kind.space is made.space
