"""Random loop programs run, and mean the same after passes that keep meaning."""

from __future__ import annotations

import numpy as np
import pytest
from properties.loop_programs import draw_loops, loop_arguments

from tilewright.execute.loops import interpret_loops
from tilewright.ir.loop_level import LoopFunction
from tilewright.ir.loop_rewrite import clone_loops
from tilewright.passes.loop.simplify import simplify

FORMS = [(structured, affine) for structured in (True, False) for affine in (True, False)]


def results(function: LoopFunction, seed: int) -> list[list[float]]:
    """What the parameters hold after a run."""
    arguments = loop_arguments(function, seed)
    interpret_loops(function, arguments)
    return [np.asarray(array).tolist() for array in arguments]


@pytest.mark.parametrize(("structured", "affine"), FORMS)
@pytest.mark.parametrize("seed", range(25))
def test_simplify_keeps_meaning_and_settles(seed: int, structured: bool, affine: bool) -> None:
    function = draw_loops(seed, structured=structured, affine=affine)
    simple = simplify(function)
    assert results(simple, seed) == results(function, seed)
    assert simplify(simple) is simple


@pytest.mark.parametrize(("structured", "affine"), FORMS)
def test_a_copy_is_equal_and_shares_no_value(structured: bool, affine: bool) -> None:
    for seed in range(10):
        function = draw_loops(seed, structured=structured, affine=affine)
        copy = function.with_body(clone_loops(function.body, {}))
        assert copy == function and hash(copy) == hash(function)
        both = [{value for stmt in f.walk() for value in (*stmt.defs(), *stmt.block_args())} for f in (function, copy)]
        assert not both[0] & both[1]


def test_programs_write_something() -> None:
    drawn = [(draw_loops(seed), seed) for seed in range(40)]
    changed = [results(function, seed)[1] != loop_arguments(function, seed)[1].tolist() for function, seed in drawn]
    assert sum(changed) >= 20
