"""Random loop programs keep their meaning when buffers are compacted, in both forms, and nothing touched is cut off."""

from __future__ import annotations

import numpy as np
import pytest
from properties.loop_programs import draw_loops, loop_arguments

from tilewright.analysis.buffer_regions import plan_buffers
from tilewright.execute.loops import interpret_loops
from tilewright.ir.buffers import buffer_type
from tilewright.ir.loop_level import LoopFunction
from tilewright.ir.scalar import Value
from tilewright.ir.verify_loops import verify_loops
from tilewright.passes.loop.compact_buffers import compact_buffers
from tilewright.passes.loop.lower_blocks import lower_blocks
from tilewright.passes.loop.simplify import simplify

FORMS = [(structured, affine) for structured in (True, False) for affine in (True, False)]


def results(function: LoopFunction, seed: int) -> list[list[float]]:
    """What the parameters hold after a run."""
    arguments = loop_arguments(function, seed)
    interpret_loops(function, arguments)
    return [np.asarray(array).tolist() for array in arguments]


def touched(function: LoopFunction, seed: int) -> dict[Value, tuple[int, ...]]:
    """The largest box of what one instance of each buffer was touched in, found by running."""
    boxes: dict[tuple[Value, int], list[tuple[int, ...]]] = {}
    kept: list[object] = []

    def see(buffer: Value, view: object, index: tuple[int, ...], written: bool) -> None:
        kept.append(view)
        boxes.setdefault((buffer, id(view)), []).append(tuple(index))

    interpret_loops(function, loop_arguments(function, seed), observe=see)
    found: dict[Value, tuple[int, ...]] = {}
    for (buffer, _), points in boxes.items():
        box = tuple(max(line) - min(line) + 1 for line in zip(*points, strict=True))
        found[buffer] = tuple(map(max, zip(box, found.get(buffer, box), strict=True)))
    return found


@pytest.mark.parametrize(("structured", "affine"), FORMS)
@pytest.mark.parametrize("seed", range(12))
def test_compaction_keeps_meaning(seed: int, structured: bool, affine: bool) -> None:
    function = draw_loops(seed, structured=structured, affine=affine)
    small = compact_buffers(function)
    verify_loops(small)
    assert results(small, seed) == results(function, seed)
    assert compact_buffers(small) == small
    if structured:
        assert simplify(lower_blocks(small)) == compact_buffers(lower_blocks(function))


@pytest.mark.parametrize(("structured", "affine"), FORMS)
@pytest.mark.parametrize("seed", range(12))
def test_the_box_holds_all_that_is_touched_and_is_no_larger_than_before(
    seed: int, structured: bool, affine: bool
) -> None:
    function = simplify(draw_loops(seed, structured=structured, affine=affine))
    boxes = touched(function, seed)
    for made in plan_buffers(function):
        old = buffer_type(made.buffer).shape
        for new, before, seen in zip(made.shape, old, boxes.get(made.buffer, made.shape), strict=True):
            assert isinstance(new, int) and isinstance(before, int) and isinstance(seen, int)
            assert seen <= new <= before
