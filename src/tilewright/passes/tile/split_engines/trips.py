"""Loops whose trips the caller launches one by one.

    for k in range(n):                      matrix core needs what the vector core stored in the trip before
        s = a @ x;  x = relu(s)

No order of whole phases serves such a loop. Its trips become launches: every phase runs for one trip, then for the
next, the trip's number a scalar argument. What the loop carries on chip waits in DDR between launches. Parallel loops
around it stay inside the launches, since their work items are independent of each other."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.errors import UnsupportedError
from tilewright.ir.function import Function, Param
from tilewright.ir.layout import MemorySpace, Pad
from tilewright.ir.nodes import Block, For, Let, LoopKind, Yield
from tilewright.ir.op import Level, Op
from tilewright.ir.rewrite import Rewriter
from tilewright.ir.scalar import Value, values_in
from tilewright.ir.storage import written_operand
from tilewright.ir.types import TensorType, TileType
from tilewright.ops.create import Create
from tilewright.ops.movement import Load, Store
from tilewright.passes.tile.split_engines.phases import Phase, plan_phases
from tilewright.targets import Target


@dataclass(frozen=True, slots=True)
class Launch:
    """One phase of `function`, which is the original or what stands for a part of it."""

    function: Function
    phase: Phase


@dataclass(frozen=True, slots=True)
class Repeat:
    """`steps` once for each trip of `loop`; `trip` is the parameter that takes its number."""

    loop: For
    trip: Value
    steps: tuple[Step, ...]


Step = Launch | Repeat


def plan_steps(function: Function, target: Target) -> tuple[Step, ...]:
    """What the caller launches, in order. Raises `UnsupportedError` when no order serves."""
    try:
        return tuple(Launch(function, phase) for phase in plan_phases(function, target))
    except UnsupportedError as refusal:
        loop = _repeatable(function)
        if loop is None:
            raise
        spill = _Spill(loop, target, refusal)
        function = spill.function(function)
        loop = spill.made
        if loop is None or any(not isinstance(arg.type, TensorType) for arg in loop.iter_args):
            raise
    before, trip, after = (_Part(loop, part) for part in ("before", "trip", "after"))
    within = trip.function(function)
    within = within.with_(params=(*within.params, Param(trip.number)))
    return (
        *plan_steps(before.function(function), target),
        Repeat(loop, trip.number, plan_steps(within, target)),
        *plan_steps(after.function(function), target),
    )


def _repeatable(function: Function) -> For | None:
    """The first sequential loop that only parallel loops enclose, and whose bounds the caller knows."""
    params = {param.value for param in function.params}
    todo: list[Block] = [function.body]
    while todo:
        for stmt in todo.pop(0):
            if not isinstance(stmt, For):
                continue
            if stmt.kind is LoopKind.PARALLEL:
                todo.append(stmt.body)
            elif not stmt.conditional and all(
                v in params for b in (stmt.start, stmt.stop, stmt.step) if not isinstance(b, int) for v in values_in(b)
            ):
                return stmt
    return None


class _Spill(Rewriter):
    """Carries tensors in place of tiles: stored at the end of a trip, loaded at the start of the next."""

    def __init__(self, loop: For, target: Target, refusal: UnsupportedError) -> None:
        super().__init__()
        self.loop = loop
        self.target = target
        self.refusal = refusal
        self.made: For | None = None

    def visit_for(self, stmt: For) -> None:
        if stmt is not self.loop:
            super().visit_for(stmt)
            return
        new = stmt.substitute(self.get)
        assert isinstance(new, For)
        tiles = [isinstance(arg.type, TileType) for arg in stmt.iter_args]
        inits = tuple(self.saved(i) if tile else i for i, tile in zip(new.inits, tiles, strict=True))  # type: ignore[arg-type]
        args = tuple(
            Value(arg.name, init.type, arg.span) if tile and isinstance(init, Value) else arg
            for arg, init, tile in zip(stmt.iter_args, inits, tiles, strict=True)
        )
        outer, self._out = self._out, []
        for old, arg in zip(stmt.iter_args, args, strict=True):
            if old is not arg:
                self.bind(old, self.loaded(arg, old))
        for inner in stmt.body[:-1]:
            self.stmt(inner)
        last = stmt.body[-1]
        assert isinstance(last, Yield)
        given = tuple(
            self.stored(self.scalar(v), arg) if tile else self.scalar(v)  # type: ignore[arg-type]
            for v, arg, tile in zip(last.values, args, tiles, strict=True)
        )
        self.emit(Yield(given, span=last.span))
        body, self._out = tuple(self._out), outer
        results = tuple(
            Value(r.name, a.type, r.span) if t else r for r, a, t in zip(stmt.results, args, tiles, strict=True)
        )
        made = new.replace(inits=inits, iter_args=args, body=body, results=results)
        assert isinstance(made, For)
        self.made = made
        self.emit(made)
        for old, result in zip(stmt.results, results, strict=True):
            if old is not result:
                self.bind(old, self.loaded(result, old))

    def saved(self, tile: Value) -> Value:
        """A new tensor with the tile in it."""
        kind = tile.type
        assert isinstance(kind, TileType) and kind.space is not None
        there, back = self.target.edge(kind.space, MemorySpace.DDR), self.target.edge(MemorySpace.DDR, kind.space)
        if there is None or back is None or kind.view.pad is not Pad.NULL:
            raise self.refusal
        create = Create(kind.shape, kind.dtype, level=Level.TENSOR, span=tile.span)
        return self.stored(tile, self.let(create, f"{tile.name}_between_trips", tile.span))

    def stored(self, tile: Value, tensor: Value) -> Value:
        kind = tile.type
        assert isinstance(kind, TileType)
        return self.let(Store(tile, (0,) * kind.rank, tensor, span=tile.span), tensor.name, tile.span)

    def loaded(self, tensor: Value, like: Value) -> Value:
        kind = like.type
        assert isinstance(kind, TileType)
        load = Load(tensor, (0,) * kind.rank, kind.shape, kind.valid, kind.space, span=like.span)
        return self.let(load, like.name, like.span, kind.substitute(self.get))


class _Part(Rewriter):
    """The function with the stores before the loop, of one trip of it, or after it; the rest of the stores left out.
    In place of the loop stands its body, for trip `number`, or nothing."""

    def __init__(self, loop: For, part: str) -> None:
        super().__init__()
        self.loop = loop
        self.part = part
        self.now = "before"
        self.number = Value(loop.iv.name, loop.iv.type, loop.iv.span)

    def visit_let(self, stmt: Let) -> None:
        written = written_operand(stmt.value) if isinstance(stmt.value, Op) else None
        if written is None or self.now == self.part:
            super().visit_let(stmt)
        else:
            self.bind(stmt.target, self.get(written))

    def visit_for(self, stmt: For) -> None:
        if stmt is not self.loop:
            super().visit_for(stmt)
            return
        inits = [self.scalar(init) for init in stmt.inits]
        if self.part == "trip":
            self.now = "trip"
            self.bind(stmt.iv, self.number)
            for arg, init in zip(stmt.iter_args, inits, strict=True):
                self.bind(arg, init)
            for inner in stmt.body[:-1]:
                self.stmt(inner)
            last = stmt.body[-1]
            assert isinstance(last, Yield)
            inits = [self.scalar(value) for value in last.values]
        for result, init in zip(stmt.results, inits, strict=True):
            self.bind(result, init)
        self.now = "after"
