"""spaces R21."""

from __future__ import annotations

import pytest
from building import Builder, ops_of
from passes.checking import legalized

from tilewright.ir.function import Program
from tilewright.ir.layout import MemorySpace
from tilewright.ir.op import Level
from tilewright.ir.dtypes import FP32
from tilewright.ops.create import Create
from tilewright.ops.reduce import RowSum
from tilewright.passes.tile.materialize_scratch import materialize_scratch
from tilewright.targets import load_target


def reduction(own: bool) -> Program:
    b = Builder()
    x = b.load("x", b.tensor("a", (17, 40)), space=MemorySpace.VEC)
    tmp = b.let("mine", Create((17, 40), FP32, level=Level.TILE)) if own else None
    s = b.let("s", RowSum(x, tmp_tile=tmp))
    return b.program(b.store(s, b.tensor("out", (17, 1), out=True)))


@pytest.mark.parametrize("target", ("ascend910b", "ascend950"))
def test_a_missing_scratch_operand_is_made(target: str) -> None:
    lines = ops_of(legalized(reduction(False), target))
    assert lines[1:3] == ["s_tmp_tile = tile.create() [Vec]", "s = tile.row_sum(x, s_tmp_tile) [Vec]"]


def test_a_user_s_own_is_kept_and_placed() -> None:
    lines = ops_of(legalized(reduction(True), "ascend910b"))
    assert lines[1:3] == ["mine = tile.create() [Vec]", "s = tile.row_sum(x, mine) [Vec]"]


def test_machines_that_need_none_get_none() -> None:
    program = reduction(False)
    assert materialize_scratch(program, load_target("generic")) is program
