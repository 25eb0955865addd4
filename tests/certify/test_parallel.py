"""Work items: what they share, alone and where one core runs several of them."""

from __future__ import annotations

import pytest

from tilewright import parse
from tilewright.certify.parallel import blocks_of, check_parallel_loops
from tilewright.targets import load_target

TARGET = load_target("ascend910b")

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
