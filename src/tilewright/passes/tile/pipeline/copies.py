"""Copies of the bodies of pipelined loops: one for each slot, and once more for the trips that are left over."""

from __future__ import annotations

from tilewright.ir.function import Function
from tilewright.ir.nodes import For, If, LoopKind, Stmt, Yield
from tilewright.ir.rewrite import Rewriter, clone_block
from tilewright.ir.scalar import BinaryKind, Scalar, Value, binary, maximum
from tilewright.passes.tile.pipeline.conditions import Known, settled
from tilewright.passes.tile.pipeline.overlap import overlapped
from tilewright.targets import Target

PLAIN = 0
"""The depth of a loop that is not pipelined at all: the buffers of its body are reused within a trip."""

Depths = dict[For, int]


def replicate(function: Function, depths: Depths, target: Target) -> Function:
    """`function` with the loops in `depths` at their depths, what crosses between cores in them overlapped; itself
    where each has the depth that is written."""
    if all(depth == written(loop) <= 1 for loop, depth in depths.items()):
        return function
    return overlapped(_Replicator(depths).function(function), target)


def written(loop: For) -> int:
    """The depth that `loop` has as it stands."""
    return loop.stage if loop.kind is LoopKind.PIPELINE else PLAIN


class _Replicator(Rewriter):
    """Inner loops first: the copies of an outer loop contain those of the inner ones."""

    def __init__(self, depths: Depths) -> None:
        super().__init__()
        self.depths = depths

    def visit_for(self, stmt: For) -> None:
        depth = self.depths.get(stmt)
        if depth is None or depth == written(stmt) <= 1:
            super().visit_for(stmt)
            return
        body = self.block(stmt.body)
        loop: For = stmt.replace(body=body)
        if depth <= 1:
            kind = LoopKind.PIPELINE if depth else LoopKind.SEQUENTIAL
            self.emit(loop.replace(kind=kind, stage=1))
            return
        for made in replicated(loop, depth):
            self.emit(made)


def replicated(loop: For, depth: int) -> list[Stmt]:
    """The loop over groups of `depth` trips, and the one over what is left, which runs at most once."""
    assert isinstance(loop.step, int)
    trips = trips_of(loop)
    groups = binary(BinaryKind.FLOORDIV, trips, depth)
    middle = loop.start + groups * (depth * loop.step)
    rest = trips % depth if isinstance(trips, int) else None
    if rest == 0:
        return [_group(loop, loop.start, loop.stop, depth, loop.inits, loop.results)]
    between = tuple(_like(result) for result in loop.results)
    first = _group(loop, loop.start, middle, depth, loop.inits, between)
    if rest is None:
        return [first, _group(loop, middle, loop.stop, depth - 1, between, loop.results, depth, guarded=True)]
    assert isinstance(trips, int)
    left = _group(loop, middle, loop.stop, rest, between, loop.results, depth, earlier=trips - rest)
    return [first, left]


def trips_of(loop: For) -> Scalar:
    """The number of trips of a loop with a constant step."""
    assert isinstance(loop.step, int)
    low, high = (loop.start, loop.stop) if loop.step > 0 else (loop.stop, loop.start)
    size = abs(loop.step)
    return maximum(binary(BinaryKind.FLOORDIV, binary(BinaryKind.SUB, high, low) + (size - 1), size), 0)


def _like(value: Value) -> Value:
    return Value(value.name, value.type, value.span)


def _group(
    loop: For,
    start: Scalar,
    stop: Scalar,
    copies: int,
    inits: tuple[Scalar, ...],
    results: tuple[Value, ...],
    depth: int | None = None,
    *,
    earlier: int = 0,
    guarded: bool = False,
) -> For:
    """A loop each of whose trips is `copies` trips of `loop`, out of `depth`. At least `earlier` trips come before it.
    Where `guarded`, all but the first of its copies run only if they lie before `stop`."""
    assert isinstance(loop.step, int)
    iv = _like(loop.iv)
    iter_args = tuple(_like(arg) for arg in loop.iter_args)
    carried: tuple[Scalar, ...] = iter_args
    body: list[Stmt] = []
    for copy in range(copies):
        here = binary(BinaryKind.ADD, iv, copy * loop.step)
        block = clone_block(loop.body, {loop.iv: here} | dict(zip(loop.iter_args, carried, strict=True)))
        if loop.step > 0:
            block = settled(block, Known(here, loop.start, (earlier + copy) * loop.step))
        last = block[-1]
        assert isinstance(last, Yield)
        if guarded and copy:
            before = binary(BinaryKind.LT if loop.step > 0 else BinaryKind.GT, here, stop)
            made = tuple(_like(result) for result in results)
            body.append(If(before, block, (Yield(carried, span=last.span),), made, span=loop.span))
            carried = made
        else:
            body += block[:-1]
            carried = last.values
    body.append(Yield(carried, span=loop.body[-1].span))
    step = (depth or copies) * loop.step
    return For(
        iv, start, stop, step, LoopKind.PIPELINE, inits, iter_args, tuple(body), results, 1, span=loop.span
    )  # fmt: skip
