"""Work items: what they share, alone and where one core runs several of them."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest
from properties.judges import SCRATCHPAD

from tilewright import parse
from tilewright.certify.checker import check
from tilewright.certify.parallel import blocks_of, check_parallel_loops
from tilewright.certify.writer import certify
from tilewright.compiler import lower
from tilewright.targets import Target, load_target

TARGET = load_target("ascend910b")
ONE_CORE = load_target(SCRATCHPAD)

SOURCE = """
import tilewright.language as pl

@pl.program
class Main:
    @pl.function(type=pl.FunctionType.InCore, attrs={{"core": "vector"}})
    def main(self, a: pl.Tensor[[2048, 64], pl.FP32], n: pl.Scalar[pl.INDEX],
             out: pl.InOut[pl.Tensor[[2048, 64], pl.FP32]]):
        for i, (o,) in pl.{loop}, init_values=(out,)):
            x = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
            o_1 = pl.tile.store(x, [{offset}, 0], o{atomic})
            o_2 = pl.yield_(o_1)
        return o_2
"""


def said(loop: str, offset: str, atomic: str = "") -> list[str]:
    program = parse(SOURCE.format(loop=loop, offset=offset, atomic=atomic))
    return [finding.message for finding in check_parallel_loops(program.main, TARGET).findings]


@pytest.mark.parametrize(
    ("loop", "offset"),
    [
        ("parallel(0, 1024, 16", "i"),
        ("parallel(64", "i * 16"),
        ("parallel(64", "1008 - i * 16"),
        ("parallel(64", "i // 8 * 128 + i % 8 * 16"),
        ("parallel(n", "i * 16"),
        ("parallel(1", "0"),
        ("range(64", "0"),
        ("parallel(100", "i % 48 * 16"),  # dealt out to 48 cores: trips i and i + 48 run on one of them
        ("parallel(100", "i % 96 * 16"),
        ("parallel(0, 400, 4", "i // 4 % 48 * 16"),
    ],
)
def test_independent(loop: str, offset: str) -> None:
    assert blocks_of(parse(SOURCE.format(loop=loop, offset=offset, atomic="")).main, TARGET) == 48
    assert not said(loop, offset)


@pytest.mark.parametrize(
    ("loop", "offset"),
    [
        ("parallel(64", "0"),
        ("parallel(64", "i * 8"),
        ("parallel(0, 1024, 16", "i // 2"),
        ("parallel(64", "n"),
        ("parallel(n", "i % 2 * 16"),
        ("parallel(100", "i % 36 * 16"),
        ("parallel(100", "i % 24 * 16"),
    ],
)
def test_not_independent(loop: str, offset: str) -> None:
    assert said(loop, offset) == ["two work items of the loop over 'i' may meet in 'out'"]


def test_atomic_additions_may_meet() -> None:
    assert not said("parallel(64", "0", ", atomic=1")


# --- one core -----------------------------------------------------------------------------------------------------
WORKSPACE = """
import tilewright.language as pl

@pl.program(entry="main")
class Main:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 32], pl.FP32], out: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
        for i, (o,) in pl.parallel(0, 64, 16, init_values=(out,)):
            space = pl.tensor.create([16, 32], pl.FP32)
            space_1 = pl.tile.store(pl.tile.load(a, [i, 0], [16, 32]), [0, 0], space)
            o_1 = pl.tile.store(pl.tile.exp(pl.tile.load(space_1, [0, 0], [16, 32])), [i, 0], o)
            o_2 = pl.yield_(o_1)
        return o_2
"""


def with_cores(count: int) -> Target:
    return replace(ONE_CORE, cores=MappingProxyType({"core": count}))


def test_items_of_one_core_take_turns_with_a_workspace() -> None:
    """The compiler gives them one part, which is right there and wrong as soon as there is a second core."""
    placed = lower(parse(WORKSPACE), ONE_CORE)
    section = placed.function("main_section")
    assert blocks_of(section, ONE_CORE) == 1
    assert "space: pl.Out[pl.Tensor[[16, 32], pl.FP32]]" in str(placed)
    assert check(placed, certify(placed, ONE_CORE), ONE_CORE).accepted
    assert blocks_of(section, with_cores(2)) == 2
    found = check_parallel_loops(section, with_cores(2)).findings
    assert {finding.message for finding in found} == {"two work items of the loop over 'i' may meet in 'space'"}


@pytest.mark.parametrize("cores", [2, 3, 4])
def test_parts_for_as_many_items_as_run_at_once(cores: int) -> None:
    target = with_cores(cores)
    placed = lower(parse(WORKSPACE), target)
    assert f"space: pl.Out[pl.Tensor[[{16 * cores}, 32], pl.FP32]]" in str(placed)
    assert check(placed, certify(placed, target), target).accepted


def test_a_loop_of_an_unknown_kind_of_core_is_nobody_s_in_turn() -> None:
    program = parse(SOURCE.format(loop="parallel(64", offset="0", atomic="").replace('"vector"', '"tensor"'))
    assert blocks_of(program.main, TARGET) == 0
    assert check_parallel_loops(program.main, TARGET).findings
