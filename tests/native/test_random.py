"""Programs drawn at random give the interpreter's results natively, bit for bit, and write nothing around."""

from __future__ import annotations

from copy import deepcopy

import pytest
from meaning import outcome
from native.building import compare, compiled, frame_intact, framed, is_array
from properties.strategies import Seeded, generate

from tilewright.compiler import UNPLACED, lower
from tilewright.ir.op import Level
from tilewright.targets import load_target

TARGETS = ("host", "x86_avx2", "generic")


@pytest.mark.parametrize("seed", range(60))
def test_random_tile_programs(seed: int) -> None:
    """Loads, elementwise, reductions, views, products, loops that carry and swap, branches; three kinds of vector."""
    drawn = generate(Seeded(seed), Level.TILE, 8 + seed % 20)
    arguments = drawn.arguments(seed)
    expected = outcome(drawn.program, arguments)
    target = load_target(TARGETS[seed % len(TARGETS)])
    kernel = compiled(lower(drawn.program, target, after=UNPLACED), target)
    if not kernel.runnable:
        return
    own = [framed(a) if is_array(a) else deepcopy(a) for a in arguments]
    results = kernel.run(own)
    implicit = kernel.signature.implicit
    for found, wanted in zip([*results[: len(results) - implicit], *own], expected, strict=True):
        compare(found, wanted)
    assert all(frame_intact(a) for a in own if is_array(a))
