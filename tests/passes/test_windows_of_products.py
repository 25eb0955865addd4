"""A window of a product that starts within a box: stored and loaded again, to a memory that DDR has a way to."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.pto.emulate import launch
from tilewright.codegen.pto.writer import emit_pto
from tilewright.compiler import lower
from tilewright.errors import NoRouteError
from tilewright.targets import load_target

TEXT = """
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(
        self, a: pl.Tensor[[15, 15], pl.FP32], part: pl.Out[pl.Tensor[[{rows}, 15], pl.FP32]],
        whole: pl.Out[pl.Tensor[[15, 15], pl.FP32]]
    ):
        x = pl.tile.load(a, [0, 0], [15, 15], target_memory=pl.Mem.Mat)
        y = pl.tile.matmul(x, x)
        window = pl.tile.slice(y, [{rows}, 15], [{first}, 0])
{more}        part_1 = pl.tile.store({read}, [0, 0], part)
        whole_1 = pl.tile.store(y, [0, 0], whole)
        return part_1, whole_1
"""


def lowered(machine: str, **fields: object) -> tw.Program:
    return lower(tw.parse(TEXT.format(**fields)), load_target(machine))


@pytest.mark.parametrize(("first", "rows"), [(1, 14), (3, 7), (8, 1)])
@pytest.mark.parametrize("machine", ["ascend910b", "ascend950"])
def test_a_window_that_is_stored(machine: str, first: int, rows: int) -> None:
    target = load_target(machine)
    placed = lowered(machine, rows=rows, first=first, more="", read="window")
    a = (np.arange(225, dtype=np.float32) % 7 - 3).reshape(15, 15)
    module = emit_pto(placed, target)
    part, whole = np.zeros((rows, 15), np.float32), np.zeros((15, 15), np.float32)
    launch(module.manifest, module.texts, {"a": a, "part": part, "whole": whole}, sync="auto")
    np.testing.assert_array_equal(whole, a @ a)
    np.testing.assert_array_equal(part, (a @ a)[first : first + rows])


@pytest.mark.parametrize("machine", ["ascend910b", "ascend950"])
def test_a_window_that_is_added_to_is_refused(machine: str) -> None:
    """An accumulator has to be where the product was, and nothing loads it there."""
    more = "        left = pl.tile.load(a, [0, 0], [7, 15])\n        sum = pl.tile.matmul_acc(window, left, x)\n"
    with pytest.raises(NoRouteError, match="starts within a box") as refused:
        lowered(machine, rows=7, first=3, more=more, read="sum")
    assert refused.value.help == "store the product, and load the window from there"
