"""The main property: what a random program means is the same after every pass, on every machine, in every backend.

Programs come from seeds: the quick profile always has the same ones. TILEWRIGHT_PROPERTIES=20 in the environment takes
twenty times as many. A failure prints the program; `tests/properties/shrink.py` makes a small one of it.
"""

from __future__ import annotations

import os

import pytest
from meaning import outcome
from properties.judges import (
    DECLINED,
    SCRATCHPAD,
    TARGETS,
    has_masks,
    judge_certificate,
    judge_machine,
    judge_native,
    judge_passes,
    judge_pto,
)
from properties.strategies import Generated, Seeded, generate

from tilewright import parse
from tilewright.compiler import lower
from tilewright.errors import UnsupportedError
from tilewright.ir.function import Program
from tilewright.ir.op import Level
from tilewright.ir.rewrite import clone_block
from tilewright.ir.verify import verify
from tilewright.ops.collective import NEEDS_SITES
from tilewright.passes.tensor.inline import inline
from tilewright.passes.tensor.outline_sections import outline_sections
from tilewright.passes.tensor.unroll import unroll
from tilewright.passes.tile.flatten_tiles import flatten_tiles
from tilewright.passes.tile.infer_spaces import infer_spaces
from tilewright.passes.tile.legalize_dtypes import legalize_dtypes
from tilewright.passes.tile.legalize_layouts import legalize_layouts
from tilewright.passes.tile.legalize_moves import legalize_moves
from tilewright.targets import Target, load_target

TIMES = int(os.environ.get("TILEWRIGHT_PROPERTIES", "1"))
NAMES = {"910b": "ascend910b", "950": "ascend950", "scratchpad": SCRATCHPAD, "avx512": "x86_avx512"}


def seeds(count: int) -> range:
    return range(count * TIMES)


def judged(drawn: Generated, target: Target) -> bool:
    """Whether the target takes the program; raises when the numbers, the text or the addresses are wrong."""
    arguments = drawn.arguments()
    wanted = outcome(drawn.program, arguments)
    try:
        placed = judge_passes(drawn.program, target, arguments, wanted)
        judge_machine(placed, target, arguments, wanted)
        judge_certificate(placed, target)
        if target.pto_arch is not None and not has_masks(drawn.program):
            judge_pto(placed, target, arguments, wanted)
    except DECLINED:
        return False
    return True


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("level", ["tile", "tensor"])
@pytest.mark.parametrize("part", seeds(3))
def test_every_stage_means_the_same(level: str, name: str, part: int) -> None:
    for seed in range(part * 2, part * 2 + 2):
        assert judged(generate(Seeded(seed), Level(level)), load_target(NAMES[name])) is not None


def test_most_programs_are_taken() -> None:
    """What is declined has a reason that the compiler states; that is the exception."""
    taken = 0
    for seed in range(16):
        try:
            taken += bool(lower(generate(Seeded(seed), Level.TILE).program, load_target("ascend910b")))
        except DECLINED as error:
            assert error.message
    assert taken >= 8


@pytest.mark.parametrize("level", ["tile", "tensor"])
@pytest.mark.parametrize("part", seeds(3))
def test_native_code(level: str, part: int) -> None:
    for seed in range(1000 + part * 3, 1003 + part * 3):
        drawn = generate(Seeded(seed), Level(level))
        arguments = drawn.arguments()
        try:
            judge_native(drawn.program, arguments, outcome(drawn.program, arguments))
        except UnsupportedError as error:
            assert NEEDS_SITES in error.message  # of all that may be drawn, what talks to other sites alone


@pytest.mark.parametrize("seed", seeds(8))
def test_tight_memories(seed: int) -> None:
    """With little room, a program is placed without overlap and right, or refused with the capacity named."""
    target = load_target("ascend910b").with_capacity(Vec=12 * 1024, Mat=24 * 1024, Acc=16 * 1024)
    drawn = generate(Seeded(2000 + seed), Level.TILE, 8)
    arguments = drawn.arguments()
    wanted = outcome(drawn.program, arguments)
    try:
        assert judge_passes(drawn.program, target, arguments, wanted)
    except DECLINED as error:
        assert error.message


@pytest.mark.parametrize("seed", seeds(20))
def test_equal_programs_are_equal_and_hash_alike(seed: int) -> None:
    """A copy with every value new is equal, has the same hash and the same text, which reads back."""
    program = generate(Seeded(3000 + seed), Level.TILE).program
    copy = Program(tuple(f.with_body(clone_block(f.body, {})) for f in program.functions), program.entry)
    assert copy == program and hash(copy) == hash(program) and str(copy) == str(program)
    again = parse(str(program))
    assert again == program and str(again) == str(program)
    verify(copy)


@pytest.mark.parametrize("seed", seeds(15))
def test_tensor_passes_change_nothing_the_second_time(seed: int) -> None:
    program = generate(Seeded(4000 + seed), Level.TENSOR).program
    for step in (inline, unroll, outline_sections):
        program = step(program)
        assert step(program) == program, step


@pytest.mark.parametrize("name", ["ascend910b", SCRATCHPAD], ids=["910b", "scratchpad"])
@pytest.mark.parametrize("seed", seeds(6))
def test_tile_passes_change_nothing_the_second_time(name: str, seed: int) -> None:
    target = load_target(name)
    program = lower(generate(Seeded(5000 + seed), Level.TILE, 8).program, target, after="flatten_tiles")
    assert flatten_tiles(program) == program
    try:
        for step in (infer_spaces, legalize_moves, legalize_dtypes, legalize_layouts):
            program = step(program, target)
            assert step(program, target) == program, step
    except DECLINED as error:
        assert error.message


def test_the_targets_are_those_of_the_judges() -> None:
    assert set(NAMES.values()) == set(TARGETS)
