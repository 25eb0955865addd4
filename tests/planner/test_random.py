"""Random programs in memories of exactly the size that they need: every plan is optimal when bytes alone count, and
nothing is written over while somebody still reads it."""

from __future__ import annotations

import os
from copy import deepcopy

import pytest
from meaning import first_difference, outcome
from properties.addresses import check_addresses
from properties.strategies import Seeded, generate

from tilewright.compiler import lower
from tilewright.errors import TilewrightError
from tilewright.execute.memory import run_placed
from tilewright.ir.function import FunctionKind, Program
from tilewright.ir.op import Level
from tilewright.passes.memory.place_buffers import place_buffers, plan_addresses
from tilewright.targets import Target, load_target

TIMES = int(os.environ.get("TILEWRIGHT_PROPERTIES", "1"))
BLOCKS, EACH = 4, 6


def tight(program: Program, target: Target) -> Target:
    """`target` with each memory as large as the fullest function needs it to be."""
    peaks: dict[str, int] = {}
    for function in program.functions:
        if function.kind is not FunctionKind.ORCHESTRATION:
            plan = plan_addresses(function, target, engines=False)
            assert all(memory.optimal for memory in plan.memories.values()), str(plan)
            for name, peak in plan.peaks.items():
                peaks[name] = max(peaks.get(name, 0), peak)
    for name, peak in peaks.items():
        space = next(space for space in target.spaces if target.memory(space).name == name)
        target = target.with_capacity(**{space.value: peak})
    return target


@pytest.mark.parametrize("block", range(BLOCKS * TIMES))
def test_random_programs_in_memories_that_just_suffice(block: int) -> None:
    placed = 0
    for seed in range(EACH * block, EACH * (block + 1)):
        drawn = generate(Seeded(40_000 + seed), Level.TILE)
        for name in ("ascend910b", "ascend950"):
            target = load_target(name)
            try:
                program = lower(drawn.program, target, after="assign_buffers")
            except TilewrightError:
                continue
            small = tight(program, target)
            arguments = drawn.arguments(seed)
            wanted = outcome(drawn.program, arguments)
            for engines in (True, False):
                planned = place_buffers(program, small, engines=engines)
                check_addresses(planned, small)
                own = deepcopy(arguments)
                run_placed(planned, small, own, seed=seed)
                for one, two in zip(wanted[len(wanted) - len(own) :], own, strict=True):
                    assert first_difference(one, two) is None, f"seed {40_000 + seed} on {name}"
                placed += 1
    assert placed
