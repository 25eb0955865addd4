"""Where the parts of a result go: straight to DDR, or collected for readers on chip."""

from __future__ import annotations

from tilewright.analysis.footprint import footprint
from tilewright.analysis.hints import PerfHint
from tilewright.analysis.spaces import default_rounding, stores_tile
from tilewright.ir.layout import MemorySpace
from tilewright.ir.loops import Contract, Elementwise
from tilewright.ir.nodes import Let
from tilewright.ir.op import Effect, Op
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import TileType
from tilewright.ops.movement import Store
from tilewright.passes.tile.tile_matmul.forms import Index
from tilewright.passes.tile.tile_matmul.plan import Sink
from tilewright.targets import Target

ACC, MAT, DDR, VEC = MemorySpace.ACC, MemorySpace.MAT, MemorySpace.DDR, MemorySpace.VEC

ROOM = 4
"""Tiles of one size that are taken to be alive together in what follows a sum (assumed)."""

SHARED = 2
"""Part of a memory that one collected result may take: the reciprocal (assumed)."""


class Sinks:
    """Finds where sums go."""

    def __init__(self, index: Index, target: Target) -> None:
        self.index = index
        self.target = target

    def of(self, root: Value) -> Sink:
        """Straight to DDR when the sum, or what is computed of it element by element, is only stored."""
        block = self.index.block[self.index.defs[root]]
        shape, value, at_once = tile_type(root).shape, root, True
        while True:
            uses = self.index.uses.get(value, [])
            stmt = uses[0].stmt if len(uses) == 1 else None
            if not isinstance(stmt, Let) or not isinstance(stmt.value, Op) or self.index.block[stmt] != block:
                return self.collected(root)
            op = stmt.value
            is_store = stores_tile(op) == uses[0].field
            if is_store and isinstance(op, Store) and stored_offsets(op, 0, 0) is not None:
                return Sink(value, stmt, store=stmt) if at_once else self.collected(root, (value, stmt))
            made = stmt.target.type
            if not isinstance(made, TileType) or made.shape != shape or not is_elementwise(op):
                return self.collected(root)
            at_once = at_once and (self.folds(op) or not self.target.has_separate_cores)
            value = stmt.target

    def folds(self, op: Op) -> bool:
        """Whether a rounding is done on the way from the accumulator to DDR."""
        edge = self.target.edge(ACC, DDR)
        arrays = [value for _, value in op.operand_items()]
        if not op.converts or not default_rounding(op) or edge is None or len(arrays) != 1:
            return False
        made = op.infer()
        return edge.carries(arrays[0].dtype, made.dtype)

    def collected(self, root: Value, after: tuple[Value, Let] | None = None) -> Sink:
        """In a tile where accumulators are registers and it has room; else in a temporary tensor, from where every
        consumer loads what it wants. `after` is done part by part where the whole of it has no room."""
        at, value = self.index.defs[root], root
        while True:
            uses = self.index.uses.get(value, [])
            reader = uses[0].stmt if len(uses) == 1 else None
            if not isinstance(reader, Let) or not isinstance(reader.value, Op):
                break
            if self.index.block[reader] != self.index.block[at] or not self.follows_alone(reader.value):
                break
            value = reader.target
        if after is not None:
            kind = tile_type(root)
            whole = footprint(TileType(kind.static_shape, kind.dtype, VEC), self.target)
            after = after if ROOM * whole > self.target.capacity(VEC) else None
        return Sink(value, at, space=self.home(value) if after is None else None, after=after)

    def home(self, value: Value) -> MemorySpace | None:
        """The memory in which parts out of registers are put together: the one that every reader takes them from."""
        if not self.target.memory(ACC).register_bytes:
            return None
        uses = self.index.uses.get(value, [])
        readers = [use.op for use in uses if use.op is not None]
        if len(readers) < len(uses):  # where paths join, the other one's tile may lie anywhere
            return None
        products = [isinstance(op.loops, Contract) for op in readers]
        space = MAT if products and all(products) else VEC
        kind = tile_type(value)
        edges = [self.target.edge(source, space) for source in (ACC, VEC)]
        if any(edge is None or not edge.carries(kind.dtype, kind.dtype) for edge in edges):
            return None
        whole = footprint(TileType(kind.static_shape, kind.dtype, space), self.target)
        return space if SHARED * whole <= self.target.capacity(space) else None

    def follows_alone(self, op: Op) -> bool:
        """Whether an operation on nothing but the sum is done before it is collected."""
        tiles = [name for name, _ in op.operand_items()]
        return len(tiles) == 1 and is_elementwise(op) and (self.folds(op) or not self.target.has_separate_cores)

    def hints(self, root: Value, sink: Sink) -> list[PerfHint]:
        """Why a result that is read on chip takes the way through DDR."""
        found: list[PerfHint] = []
        readers = [use.op for use in self.index.uses.get(sink.value, []) if use.op is not None]
        span, dtype = root.span, sink.value.dtype
        edge = self.target.edge(ACC, MAT)
        stays = edge is not None and edge.carries(root.dtype, dtype)
        if any(isinstance(op.loops, Contract) for op in readers) and not stays:
            message = f"{root.name!r} is {dtype}, which does not go from Acc to Mat: collected in DDR, and loaded"
            found.append(PerfHint("PH-AT-009", message, span))
        if any(op.converts and not self.folds(op) for op in readers):
            message = f"the rounding of {root.name!r} is no part of a move: the sum is collected before it is rounded"
            found.append(PerfHint("PH-AT-010", message, span))
        return found


def is_elementwise(op: Op) -> bool:
    """Whether what an operation makes of a tile can be computed part by part."""
    return isinstance(op.loops, Elementwise) and op.effect is Effect.PURE and not op.writes and not op.view_of


def stored_offsets(op: Store, row: Scalar, col: Scalar) -> tuple[Scalar, ...] | None:
    """Where the part at [row, col] of a stored tile goes; None when the region has another shape than the tile."""
    kind = tile_type(op.tile)
    rank = len(op.offsets)
    if op.shapes is not None and len(op.shapes) == 1:
        if kind.shape[0] != 1 or rank < 1:
            return None
        return (*op.offsets[:-1], _plus(op.offsets[-1], col))
    if op.shapes is not None and tuple(op.shapes[-2:]) != tuple(kind.valid):
        return None
    if rank < 2:
        return None
    return (*op.offsets[:-2], _plus(op.offsets[-2], row), _plus(op.offsets[-1], col))


def _plus(a: Scalar, b: Scalar) -> Scalar:
    return a + b


def tile_type(value: Value) -> TileType:
    assert isinstance(value.type, TileType)
    return value.type
