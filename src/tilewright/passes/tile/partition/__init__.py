"""Partition: a section whose tiles exceed on-chip memory becomes a grid of work items on blocks that do not.

Before:  x_1 = pl.tile.load(x, [0, 0], [1000, 1024], target_memory=pl.Mem.Vec)
         m = pl.tile.row_max(x_1)
         y = pl.tile.row_expand_sub(x_1, m)
         out_1 = pl.tile.store(y, [0, 0], out)
After:   for row, (out_2,) in pl.parallel(0, 1000, 16, init_values=(out,)):
             x_1 = pl.tile.load(x, [row, 0], [16, 1024], valid_shape=[pl.min(16, 1000 - row), 1024], ...)
             ...
             out_3 = pl.tile.store(y, [row, 0], out_2)
What is summed along a dimension too long for a block (a row of a hundred thousand, the inner dimension of a product)
is summed block by block, in passes over the blocks within each work item: the first block starts the sum, each
further one is added to it, in order. Within a block the operation's own order holds. FP16 and BF16 sums are carried in
FP32 and rounded once, as the whole sum would be.
Ensures: the physical shapes of a section that was cut are constants, tails are valid shapes.
Leaves:  sections that fit; sections with tiles, loops or branches that their user wrote; and what has no independent
         blocks, with the reason in the plan (its tiles then speak, if they really do not fit)."""

from __future__ import annotations

from collections.abc import Collection

from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.nodes import Let
from tilewright.ir.op import Level, Op
from tilewright.ir.storage import Roots, roots_of
from tilewright.passes.tile.partition.choose import choose, fits
from tilewright.passes.tile.partition.dimensions import dimensions_of
from tilewright.passes.tile.partition.leaves import separated
from tilewright.passes.tile.partition.narrow import widened
from tilewright.passes.tile.partition.parts import UncutError, body_of, check_tensors, parts_of
from tilewright.passes.tile.partition.plan import FunctionPlan, Part, PartitionPlan
from tilewright.passes.tile.partition.rewrite import rewrite
from tilewright.passes.tile.partition.working_set import section_of
from tilewright.targets import Target

__all__ = ["PartitionPlan", "hand_tiled", "partition", "plan_partition"]


def partition(program: Program, target: Target, leave: Collection[str] = ()) -> Program:
    """Requires the tile level, before tiles are flattened. `leave` names functions that stay as they are: those whose
    tiles their user chose (`hand_tiled`, asked before conversion). Linear in the size of the program."""
    plan = plan_partition(program, target, leave)
    return program.map(lambda function: _cut(function, plan))


def hand_tiled(program: Program) -> frozenset[str]:
    """The sections in which the user works on tiles. Asked before tensors become tiles: afterwards all look alike."""
    found: set[str] = set()
    for function in program.functions:
        if any(isinstance(s, Let) and isinstance(s.value, Op) and s.value.level is Level.TILE for s in function.walk()):
            found.add(function.name)
    return frozenset(found)


def plan_partition(program: Program, target: Target, leave: Collection[str] = ()) -> PartitionPlan:
    """What is cut, and why the rest is not."""
    return PartitionPlan(
        tuple(
            _plan(function, target, function.name in leave)
            for function in program.functions
            if function.kind is FunctionKind.INCORE
        )
    )


def _plan(function: Function, target: Target, leave: bool) -> FunctionPlan:
    if leave:
        return FunctionPlan(function.name, reason="its tiles are its user's")
    try:
        lets = body_of(function)
        if fits(section_of(lets, dimensions_of(lets), target), {}, 1.0):
            return FunctionPlan(function.name, reason="it fits")
        roots = roots_of(function)
        check_tensors(lets, roots)
        before, parts = parts_of(function, lets, roots)
    except UncutError as error:
        return FunctionPlan(function.name, reason=str(error))
    return FunctionPlan(function.name, tuple(_choose(part, roots, target) for part in parts), before)


def _choose(lets: tuple[Let, ...], roots: Roots, target: Target) -> Part:
    part = choose(lets, roots, target)
    apart = separated(lets) if part.reason is not None else None
    if apart is not None:
        other = choose(apart, roots, target)
        part = other if other.reason is None else part
    wide = widened(part)
    return part if wide is None else choose(wide, roots, target)


def _cut(function: Function, plan: PartitionPlan) -> Function:
    found = plan.of(function.name)
    return rewrite(function, found, roots_of(function)) if found is not None and found.cuts else function
