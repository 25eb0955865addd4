"""Pipelines: the trips of a `pl.pipeline` loop get buffers of their own, so that engines work on several at once.

Before:  for i, (o,) in pl.pipeline(0, 5, 1, stage=2, init_values=(out,)):
             x = pl.tile.load(a, [i * 16, 0], [16, 64], target_memory=pl.Mem.Vec)
             o_1 = pl.tile.store(x, [i * 16, 0], o)
             o_2 = pl.yield_(o_1)
Ensures: no pipelined loop has a stage above 1. One of stage 1 holds as many trips as it has slots, one after another,
         and the planner of addresses keeps every buffer of its body apart; trip t is copy t mod n.
After:   for i, (o,) in pl.pipeline(0, 4, 2, stage=1, init_values=(out,)):
             x = pl.tile.load(a, [i * 16, 0], ...)           # slot 0
             o_1 = pl.tile.store(x, [i * 16, 0], o)
             x_1 = pl.tile.load(a, [(i + 1) * 16, 0], ...)   # slot 1
             o_2 = pl.tile.store(x_1, [(i + 1) * 16, 0], o_1)
         for i, (o,) in pl.pipeline(4, 5, 2, stage=1, init_values=(o_3,)):     # what is left over
             ...                                             # slot 0

Addresses are constants, therefore slots are copies of the body. Meaning stays sequential: what a trip carries is what
the next one starts from, in the same buffer, so an accumulator is there once. The loop for what is left over runs at
most once; where the number of trips is not known, its later copies are guarded.

A plain loop whose trips cross between cores gets `CROSSING` slots where there is room; see `overlap`.

Does less than it was asked, and says so (`PH-MR-001`): a depth whose buffers do not fit is reduced, inner loops served
first, in the end to a plain loop in which buffers are reused; a loop whose step is not constant has depth 1.
Refuses: more copies than `MAX_STATEMENTS` allows (`UnsupportedError`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tilewright.analysis.hints import PerfHint
from tilewright.errors import TilewrightError, UnsupportedError
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.nodes import Block, For, LoopKind
from tilewright.passes.memory.fitting import misfit
from tilewright.passes.tile.pipeline.copies import PLAIN, Depths, replicate, trips_of
from tilewright.passes.tile.pipeline.overlap import crossing_loops
from tilewright.targets import Target

MAX_STATEMENTS = 100_000
"""Statements that the copies may add to one function: what the compiler is built to carry."""

DEEPEST = 4
"""Depths up to this may be decided on instead of the one asked for."""

CROSSING = 2
"""The depth of a plain loop whose trips cross between cores, where there is room for it."""

REDUCED = "PH-MR-001"
"""A pipelined loop has fewer slots than it was given."""


def pipeline(program: Program, target: Target) -> Program:
    """Requires placed tiles. Ensures that slots are copies, of which as many were made as fit."""
    plan = plan_pipelines(program, target)
    return program.map(lambda function: replicate(function, plan.depths, target))


@dataclass(slots=True)
class PipelinePlan:
    """How many slots each pipelined loop gets, and what was reduced."""

    depths: Depths = field(default_factory=dict[For, int])
    found: list[PerfHint] = field(default_factory=list[PerfHint])

    @property
    def hints(self) -> tuple[PerfHint, ...]:
        return tuple(self.found)

    def __str__(self) -> str:
        lines = [f"loop over {loop.iv.name}: {_spelled(depth)}" for loop, depth in self.depths.items()]
        return "\n".join([*lines, *map(str, self.found)])


def plan_pipelines(program: Program, target: Target) -> PipelinePlan:
    """Decides the depth of every pipelined loop: what was asked for, if all of it fits; else loops are served one
    after another, inner ones first, since those run most often."""
    plan = PipelinePlan()
    for function in program.functions:
        if function.kind is FunctionKind.INCORE:
            _decide(function, list(_innermost_first(function.body)), crossing_loops(function, target), target, plan)
    return plan


def _innermost_first(block: Block) -> Iterator[For]:
    for stmt in block:
        for inner in stmt.blocks():
            yield from _innermost_first(inner)
        if isinstance(stmt, For) and stmt.kind is LoopKind.PIPELINE:
            yield stmt


def _decide(function: Function, asked: list[For], crossing: list[For], target: Target, plan: PipelinePlan) -> None:
    """`asked` are the loops with a depth of their own; those `crossing` get one where there is room for it."""
    wished = {loop: _useful(loop, loop.stage, plan, target) for loop in asked}
    _check_length(function, wished)
    for loop in crossing:
        depth = _useful(loop, CROSSING, plan, target)
        if depth > 1 and _length(function, wished | {loop: depth}) <= MAX_STATEMENTS:
            wished[loop] = depth
    if not wished:
        return
    plain: Depths = dict.fromkeys(wished, PLAIN)
    reason = misfit(replicate(function, wished, target), target)
    if reason is None or misfit(replicate(function, plain, target), target) is not None:
        # When not even plain loops fit, the error is raised where addresses are planned.
        plan.depths |= wished if reason is None else plain
        return
    decided = plain
    for loop, most in wished.items():
        # One slot alone gains a loop nothing that was not asked to have any.
        least = PLAIN if loop.kind is LoopKind.PIPELINE else 1
        why: TilewrightError | None = reason
        for depth in range(most, least, -1):
            why = misfit(replicate(function, decided | {loop: depth}, target), target)
            if why is None:
                decided[loop] = depth
                break
            reason = why
        if loop.kind is LoopKind.PIPELINE and decided[loop] < most and most > 1:
            plan.found.append(_reduced(loop, most, max(1, decided[loop]), reason))
    plan.depths |= decided


def _useful(loop: For, stage: int, plan: PipelinePlan, target: Target) -> int:
    """The depth asked for, or decided; no more than there are trips."""
    if not isinstance(loop.step, int):
        if stage > 1:
            message = f"the loop over {loop.iv.name} has depth 1, not {stage}: its step is known only at run time"
            plan.found.append(PerfHint(REDUCED, message, loop.span))
        return 1
    trips = trips_of(loop)
    most = max(DEEPEST, stage) if not isinstance(trips, int) else max(1, trips)
    options = [min(stage, most), *(d for d in range(1, min(DEEPEST, most) + 1) if d != min(stage, most))]
    return target.decisions.first(f"depth of loops over {loop.iv.name} instead of {stage}", options)[0]


def _length(function: Function, depths: Depths) -> int:
    """The number of statements with all copies; 0 where there are none."""
    copies: dict[For, int] = {loop: 2 * depth - 1 for loop, depth in depths.items() if depth > 1}

    def size(block: Block) -> int:
        inside = ((stmt, sum(size(inner) for inner in stmt.blocks())) for stmt in block)
        return sum(1 + count * copies.get(stmt, 1) if isinstance(stmt, For) else 1 + count for stmt, count in inside)

    return size(function.body) if copies else 0


def _check_length(function: Function, depths: Depths) -> None:
    total = _length(function, depths)
    if total > MAX_STATEMENTS:
        loop = max(depths, key=lambda each: depths[each])
        raise UnsupportedError(
            "the slots of a pipeline make the function too long",
            span=loop.span,
            required=f"at most {MAX_STATEMENTS:,} statements",
            found=f"{total:,}, with {depths[loop]} slots here",
            help="give the loop a smaller stage",
        )


def _reduced(loop: For, asked: int, depth: int, reason: TilewrightError) -> PerfHint:
    message = f"the loop over {loop.iv.name} has depth {depth}, not {asked}: {reason.message}"
    if reason.required and reason.found:
        message += f" ({reason.required}; {reason.found})"
    return PerfHint(REDUCED, message, loop.span)


def _spelled(depth: int) -> str:
    return "plain" if depth == PLAIN else f"{depth} slot{'s' if depth > 1 else ''}"
