"""Legal moves: every move between spaces becomes the hops of the cheapest path that the target has.

Before (910B):  ab_left = pl.tile.move(ab, target_memory=pl.Mem.Left)          # ab is an accumulator
After:          ab_mat = pl.tile.move(ab, target_memory=pl.Mem.Mat, ...)
                ab_left = pl.tile.move(ab_mat, target_memory=pl.Mem.Left)

A hop through DDR is a store into a temporary tensor and a load from it. Hops on the way carry the layout that their
space implies; layout, padding and whatever else the move asks for stand on the last one. Moves that start alike share
their first hops. A move within one memory that changes nothing disappears. A load to a memory that DDR does not feed
is a load to the first memory on the way, and moves from there.

Refuses: a move without a route (`NoRouteError`, naming producer, consumer, both spaces and the edges there are)."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.analysis.space_constraints import loads, moves_whole
from tilewright.analysis.spaces import DDR, is_transfer, nbytes_of, placing_attribute, tile_operands
from tilewright.analysis.uses import Uses, uses_of
from tilewright.errors import Span
from tilewright.ir.dtypes import DType
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.layout import MemorySpace, Pad
from tilewright.ir.nodes import Block, Let
from tilewright.ir.op import Level, Op
from tilewright.ir.rewrite import Rewriter
from tilewright.ir.scalar import Value
from tilewright.ir.types import TensorType, TileType
from tilewright.ops.create import Create
from tilewright.ops.movement import Load, Move, Store
from tilewright.targets import Hop, Route, Target


def legalize_moves(program: Program, target: Target) -> Program:
    """Requires a space on every tile. Ensures that every move is one edge of `target`, for its dtype."""

    def function(function: Function) -> Function:
        if function.kind is not FunctionKind.INCORE:
            return function
        return _Router(target, uses_of(function)).function(function)

    return program.map(function)


@dataclass(frozen=True, slots=True)
class _Trip:
    """One move to be made of hops."""

    source: Value
    made: Value
    span: Span

    @property
    def src(self) -> MemorySpace:
        assert isinstance(self.source.type, TileType) and self.source.type.space is not None
        return self.source.type.space

    @property
    def dst(self) -> MemorySpace:
        assert isinstance(self.made.type, TileType) and self.made.type.space is not None
        return self.made.type.space


Key = tuple[Value, MemorySpace, DType]


class _Router(Rewriter):
    def __init__(self, target: Target, uses: Uses) -> None:
        super().__init__()
        self.target = target
        self.uses = uses
        self.reached: list[dict[Key, Value]] = []

    def block(self, block: Block) -> Block:
        self.reached.append({})
        try:
            return super().block(block)
        finally:
            self.reached.pop()

    def visit_let(self, stmt: Let) -> None:
        op = stmt.value
        if not isinstance(op, Op) or not isinstance(stmt.target.type, TileType):
            super().visit_let(stmt)
        elif is_transfer(op) and moves_whole(op):
            self.move(stmt, op)
        elif loads(op) and placing_attribute(op) is not None:
            self.load(stmt, op)
        else:
            super().visit_let(stmt)

    # --- moves ---
    def move(self, stmt: Let, op: Op) -> None:
        name, _ = tile_operands(op)[0]
        source = self.value(getattr(op, name))
        trip = _Trip(source, stmt.target, stmt.span)
        if self.changes_nothing(trip):
            self.bind(stmt.target, source)
            return
        route = self.route(trip, source.dtype, stmt.target.dtype)
        if len(route.hops) <= 1:
            super().visit_let(stmt)
            return
        at: Value = source
        for hop in route.hops[:-1]:
            at = self.hop(trip, at, hop)
        self.arrive(stmt, op, name, at, route.hops[-1])

    def arrive(self, stmt: Let, op: Op, name: str, at: Value, hop: Hop) -> None:
        """The last hop, which carries all that the move asks for."""
        kind = stmt.target.type
        assert isinstance(kind, TileType)
        if hop.src is DDR:
            before = self.value_type(op, name)
            pad = None if kind.view.pad is Pad.NULL else kind.view.pad
            last: Op = Load(
                at, (0,) * kind.rank, before.shape, before.valid, hop.dst, pad_value=pad, span=stmt.span
            )  # fmt: skip
        else:
            rounded = {} if at.dtype is not kind.dtype else {"target_type": None}  # an earlier hop did that
            last = op.replace(**{name: at}, **rounded)
        self.emit(Let(stmt.target, last, span=stmt.span))

    def value_type(self, op: Op, name: str) -> TileType:
        kind = self.value(getattr(op, name)).type
        assert isinstance(kind, TileType)
        return kind

    def hop(self, trip: _Trip, at: Value, hop: Hop) -> Value:
        """One hop on the way; a hop that an enclosing block made already is used again."""
        key = (at, hop.dst, hop.to_dtype)
        for scope in reversed(self.reached):
            if key in scope:
                return scope[key]
        name = f"{trip.source.name}_{hop.dst.value.lower()}"
        kind = trip.source.type
        assert isinstance(kind, TileType)
        if hop.dst is DDR:
            made = self.store(at, kind, hop, name, trip.span)
        elif hop.src is DDR:
            op: Op = Load(at, (0,) * kind.rank, kind.shape, kind.valid, hop.dst, span=trip.span)
            made = self.let(op, name, trip.span)
        else:
            changed = None if hop.dtype is hop.to_dtype else hop.to_dtype
            made = self.let(Move(at, hop.dst, target_type=changed, span=trip.span), name, trip.span)
        self.reached[-1][key] = made
        return made

    def store(self, at: Value, kind: TileType, hop: Hop, name: str, span: Span) -> Value:
        """Into a temporary tensor as large as the tile."""
        create = Create(kind.shape, hop.to_dtype, level=Level.TENSOR, span=span)
        space = self.let(create, f"{name}_space", span, TensorType(kind.shape, hop.to_dtype))
        return self.let(Store(at, (0,) * kind.rank, space, span=span), name, span)

    def changes_nothing(self, trip: _Trip) -> bool:
        """Whether source and result are the same bytes of one memory."""
        before, after = trip.source.type, trip.made.type
        assert isinstance(before, TileType) and isinstance(after, TileType)
        same = self.target.same_memory(trip.src, trip.dst) and before.dtype is after.dtype
        views = (before.view.pad, before.view.compact) == (after.view.pad, after.view.compact)
        return same and views and self.layout(before) == self.layout(after) and not self.changes_role(trip)

    def changes_role(self, trip: _Trip) -> bool:
        """Whether the move is there for its result's type: another role of one memory, where paths join."""
        return trip.src is not trip.dst and any(use.op is None for use in self.uses.get(trip.made, ()))

    def layout(self, kind: TileType) -> object:
        assert kind.space is not None
        return kind.view.layout or self.target.layout(kind.space, kind.static_shape)

    # --- loads ---
    def load(self, stmt: Let, op: Op) -> None:
        kind = stmt.target.type
        assert isinstance(kind, TileType)
        space = kind.space
        if space is None or space is DDR:
            super().visit_let(stmt)
            return
        edge = self.target.edge(DDR, space)
        if edge is not None and edge.carries(kind.dtype, kind.dtype):
            super().visit_let(stmt)
            return
        route = self.target.route(DDR, space, kind.dtype, nbytes=nbytes_of(kind))
        if route is None:
            raise self.no_route(DDR, space, kind.dtype, kind.dtype, "the tensor", stmt.target, stmt.span)
        attribute = placing_attribute(op)
        assert attribute is not None
        first = op.with_operands(self.get).replace(**{attribute: route.hops[0].dst})
        at = self.let(first, f"{stmt.target.name}_{route.hops[0].dst.value.lower()}", stmt.span)
        for hop in route.hops[1:-1]:
            at = self.let(Move(at, hop.dst, span=stmt.span), f"{stmt.target.name}_{hop.dst.value.lower()}", stmt.span)
        self.emit(Let(stmt.target, Move(at, space, span=stmt.span), span=stmt.span))

    # --- routes ---
    def route(self, trip: _Trip, dtype: DType, to_dtype: DType) -> Route:
        kind = trip.source.type
        assert isinstance(kind, TileType)
        found = self.target.route(trip.src, trip.dst, dtype, to_dtype, nbytes_of(kind))
        if found is None:
            raise self.no_route(trip.src, trip.dst, dtype, to_dtype, trip.source.name, trip.made, trip.span)
        return found

    def no_route(
        self, src: MemorySpace, dst: MemorySpace, dtype: DType, to: DType, producer: str, made: Value, span: Span
    ) -> Exception:
        readers = [use for use in self.uses.get(made, ()) if isinstance(use.stmt, Let)]
        consumer = made.name
        if readers and isinstance(readers[0].stmt, Let) and readers[0].op is not None:
            consumer = f"{readers[0].stmt.target.name} = {readers[0].op.qualified_name}"
        return self.target.no_route(src, dst, dtype, to, producer=producer, consumer=consumer, span=span)
