"""Random loop programs keep their meaning when buffers are compacted, in both forms, and nothing touched is cut off."""

from __future__ import annotations

import numpy as np
import pytest
from properties.loop_programs import draw_loops, loop_arguments

from tilewright.analysis import buffer_regions
from tilewright.analysis.buffer_regions import plan_buffers
from tilewright.execute.loops import interpret_loops
from tilewright.ir.buffers import buffer_type
from tilewright.ir.loop_builder import LoopBuilder
from tilewright.ir.loop_level import LoopFunction
from tilewright.ir.scalar import Scalar, Value
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


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("seed", range(60))
def test_what_is_found_without_a_set_is_what_the_set_says(seed: int, strict: bool) -> None:
    """Random sums over loops, fixed and relaxed, with steps, zero trips, and iterators in two indices."""
    draw = np.random.default_rng(seed)
    f = LoopBuilder()
    trips = [tuple(int(n) for n in (draw.integers(-2, 3), draw.integers(-1, 6), draw.integers(1, 3))) for _ in range(4)]
    with f.loop("h", *trips[0]) as h:
        b = f.alloc("B", (12, 9))
        with f.loop("i", *trips[1]) as i, f.loop("j", *trips[2]) as j, f.loop("k", *trips[3]) as k:
            for _ in range(int(draw.integers(1, 3))):
                pick = [int(n) for n in draw.choice([0, 0, 0, 1, 1, 2, -1, 3], 8)]
                first, second = (sum_of(pick[:3], (i, j, h), draw), sum_of(pick[3:6], (k, j, i), draw))
                f.store(b, (first, second), 1.0)
    function = f.build()
    quick = [(made.shape, made.minima) for made in plan_buffers(function, strict)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buffer_regions, "plain_lines", no_lines)
        assert [(made.shape, made.minima) for made in plan_buffers(function, strict)] == quick


def no_lines(*_: object) -> None:
    """The short cut, closed."""


def sum_of(factors: list[int], values: tuple[Value, ...], draw: np.random.Generator) -> Scalar:
    made: Scalar = int(draw.integers(0, 5))
    for factor, value in zip(factors, values, strict=True):
        made = value * factor + made if factor else made
    return made
