"""The driver: which calls become one, where the result stands, what stays stored, and what it says of the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sections.kernels import CASES, five, gated, in_a_loop, ints, kept, softmax, two_products, two_readers
from sections.tiled import Blocks, Deep, Epilogue, Rows
from support import exact_ints

import tilewright.language as pl
from tilewright import parse
from tilewright.compiler import judge, judge_plan, lower
from tilewright.execute.interpreter import interpret
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.nodes import Call, Let
from tilewright.ir.op import Op
from tilewright.ir.verify import verify
from tilewright.report import explain
from tilewright.sections.driver import plan_forwarding
from tilewright.sections.plan import Apart, Forwarding, NoRoom, Slower
from tilewright.sections.price import Price
from tilewright.sections.refusals import Crossing, TilesDiffer, Transposed
from tilewright.sections.section import Phase
from tilewright.targets import load_target

CHIP = load_target("ascend950")


def planned(kernel: Any, *arguments: Any, target: Any = CHIP, judged: Any = None) -> Forwarding:
    program = lower(kernel.program(*arguments), target, after="convert_tensor_to_tile", forward=False)
    found = plan_forwarding(program, target, judged or judge(target))
    verify(found.program)
    return found


def calls(program: Program) -> list[str]:
    return [stmt.callee for stmt in program.main.walk() if isinstance(stmt, Call)]


def cheap(function: Function) -> Price:
    """Everything costs nothing."""
    return Price()


def x(*shape: int, seed: int = 0) -> Any:
    return ints(*shape, seed=seed)


def test_a_chain_becomes_one_call() -> None:
    found = planned(five, x(65, 63), x(65, 63))
    assert calls(found.program) == ["five_0_to_five_5"]
    assert [f.name for f in found.program.functions] == ["five_0_to_five_5", "five"]
    assert [join.tensor for join in found.joins] == ["a", "b", "c", "d", "sub"] and not found.declines
    assert not any(join.kept for join in found.joins) and found.joins[0].nbytes == 65 * 63 * 4
    assert "a stays on chip from five_0 to five_1, in five_0_to_five_5" in str(found)
    (name, before, after), *rest = found.prices
    assert name == "five_0_to_five_5" and not rest and after.cycles < before.cycles and after.ddr < before.ddr


def test_a_reader_of_several_tensors_joins_with_all() -> None:
    found = planned(softmax, x(65, 63), x(65, 63))
    assert len(calls(found.program)) == 1 and [join.tensor for join in found.joins].count("e") == 2


def test_two_products_of_one_tensor_and_their_reader_are_one() -> None:
    found = planned(gated, x(64, 32), x(32, 32, seed=1), x(32, 32, seed=2), x(32, 64, seed=3), x(64, 64))
    assert len(calls(found.program)) == 1 and [join.tensor for join in found.joins].count("n") == 2


def test_off_means_off() -> None:
    source = five.program(x(65, 63), x(65, 63))
    apart = lower(source, CHIP, after="partition", forward=False)
    assert len(calls(apart)) == 6
    assert len(calls(lower(source, CHIP, after="partition"))) == 1
    assert len(calls(five.lower(x(65, 63), x(65, 63), target=CHIP))) == 1


def test_an_output_that_is_read_again_is_stored_too() -> None:
    found = planned(kept, x(65, 63), x(65, 63), x(65, 63))
    assert len(calls(found.program)) == 1
    join = next(join for join in found.joins if join.tensor == "mid")
    assert join.kept and "is stored for others" in str(join)


def test_a_reader_outside_keeps_the_store() -> None:
    @pl.jit
    def tee(a: pl.Tensor, out: pl.Out[pl.Tensor], other: pl.Out[pl.Tensor]):
        b = a + 1.0
        c = b * 2.0
        out[:] = c
        w = pl.transpose(b, 0, 1)
        other[:] = pl.relu(w)
        return out, other

    values = [x(32, 64), np.zeros((32, 64), np.float32), np.zeros((64, 32), np.float32)]
    found = planned(tee, *values)
    interpret(found.program, values)
    np.testing.assert_array_equal(values[1], (values[0] + 1) * 2)
    np.testing.assert_array_equal(values[2], np.maximum(values[0] + 1, 0).T)


def test_inside_a_loop_calls_join_and_what_comes_from_outside_stays() -> None:
    found = planned(in_a_loop, x(32, 32), np.zeros((96, 32), np.float32))
    assert {join.tensor for join in found.joins} == {"b", "c"}
    assert calls(found.program) == ["in_a_loop_0", "in_a_loop_1_to_in_a_loop_3"]


def test_a_transposed_reader_is_refused_and_says_so() -> None:
    found = planned(two_readers, x(64, 32), x(48, 32, seed=1), x(64, 32), x(48, 64))
    reasons = [d.refusal.reason for d in found.declines if d.tensor == "a"]
    assert reasons == [Transposed("a")]


def test_a_window_is_refused_and_says_so() -> None:
    case = CASES["window_reader"]
    found = planned(case.kernel, *case.arguments())
    (decline,) = found.declines
    assert decline.tensor == "a" and isinstance(decline.refusal.reason, TilesDiffer)
    assert "through DDR from window_reader_0 to window_reader_1" in str(decline) and decline.span.line > 0


def test_memories_that_meet_in_ddr_only_are_named() -> None:
    target = load_target("ascend910b")
    case = CASES["attention"]
    found = planned(case.kernel, *case.arguments(), target=target)
    scores = [d.refusal for d in found.declines if d.tensor == "s"]
    assert len(scores) == 2 and all(isinstance(refusal.reason, Crossing) for refusal in scores)
    assert "s is in Acc and s in Vec, which meet only in DDR" in str(scores[0])


@pytest.mark.parametrize("cast", [False, True])
def test_a_copy_or_a_cast_hides_no_crossing(cast: bool) -> None:
    @pl.jit
    def through(a: pl.Tensor, b: pl.Tensor, mid: pl.Out[pl.Tensor], out: pl.Out[pl.Tensor]):
        mid[:] = pl.matmul(a, b)
        out[:] = mid + 1.0
        return mid, out

    values = [exact_ints((32, 32), np.float16 if cast else np.float32, seed) for seed in range(4)]
    found = planned(through, *values, target=load_target("ascend910b"))
    assert any(isinstance(d.refusal.reason, Crossing) and d.tensor == "mid" for d in found.declines)


def test_slower_joins_are_not_kept_and_faster_ones_are() -> None:
    def judged(function: Function) -> Price:
        ops = [stmt.value.name for stmt in function.walk() if isinstance(stmt, Let) and isinstance(stmt.value, Op)]
        return Price(float(ops.count("store") + 10 * max(0, ops.count("matmul") - 1)))

    found = planned(two_products, x(64, 32), x(32, 32), x(32, 64), x(64, 64), judged=judged)
    (decline,) = found.declines
    assert decline.tensor == "h" and decline.refusal.rule == "S11"
    assert isinstance(decline.refusal.reason, Slower) and "joined it would take 11 cycles" in str(decline)
    assert [join.tensor for join in found.joins] == ["matmul"] and len(calls(found.program)) == 2


def test_what_does_not_compile_is_not_joined() -> None:
    def judged(function: Function) -> Price | str:
        return "too large" if function.name == "joined" else Price()

    found = planned(five, x(65, 63), x(65, 63), judged=judged)
    assert not found.joins and len(found.declines) == 5
    assert all(d.refusal.reason == NoRoom("too large") for d in found.declines)
    assert len(calls(found.program)) == 6


INTERLEAVED = """
import tilewright.language as pl

@pl.program(entry="main")
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[32, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32], o: pl.Out[pl.Tensor[[32, 32], pl.FP32]], p: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        a1 = pl.tensor.adds(a, 3.0)
        b1 = pl.tensor.abs(b)
        a2 = pl.tensor.neg(a1)
        b2 = pl.tensor.relu(b1)
        o1 = pl.tensor.assemble(o, a2, [0, 0])
        p1 = pl.tensor.assemble(p, b2, [0, 0])
        return o1, p1
"""  # noqa: E501
BETWEEN = INTERLEAVED.replace("pl.tensor.abs(b)", "pl.tensor.matmul(a1, b, b_trans=True)").replace(
    "pl.tensor.neg(a1)", "pl.tensor.sub(a1, b1)"
)


def test_chains_that_alternate_are_told_apart() -> None:
    program = lower(parse(INTERLEAVED), CHIP, after="convert_tensor_to_tile", forward=False)
    found = plan_forwarding(program, CHIP, cheap)
    assert len(calls(found.program)) == 2 and len(found.joins) == 4
    values = [x(32, 32), x(32, 32, seed=1), np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32)]
    interpret(found.program, values)
    np.testing.assert_array_equal(values[2], -(values[0] + 3))
    np.testing.assert_array_equal(values[3], np.abs(values[1]))


def test_what_stands_between_and_depends_on_both_is_named() -> None:
    text = BETWEEN.replace("pl.tensor.sub(a1, b1)", "pl.tensor.row_expand_sub(a1, pl.tensor.row_max(b1))")
    program = lower(parse(text), CHIP, after="convert_tensor_to_tile", forward=False)

    def apart(function: Function) -> Price | str:
        return "no" if any("matmul" in str(stmt) for stmt in function.walk()) and function.name == "joined" else Price()

    found = plan_forwarding(program, CHIP, apart)
    verify(found.program)
    assert any(isinstance(d.refusal.reason, (Apart, NoRoom)) for d in found.declines)
    values = [x(32, 32), x(32, 32, seed=1), np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32)]
    expected = [value.copy() for value in values]
    interpret(parse(text), expected)
    interpret(found.program, values)
    np.testing.assert_array_equal(values[2], expected[2])


# --- sections with blocks -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("target", ["ascend910b", "ascend950", "host"])
def test_blocks_in_the_same_order_are_joined(target: str) -> None:
    machine = load_target(target)
    program = lower(Blocks.program, machine, after="flatten_tiles", forward=False)  # type: ignore[attr-defined]
    found = plan_forwarding(program, machine, judge_plan(machine), Phase.TILED)
    assert calls(found.program) == ["add_to_double"] and not found.declines
    values = [x(128, 64), x(128, 64, seed=1), np.zeros((128, 64), np.float32)]
    interpret(lower(Blocks.program, machine), values)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(values[2], (values[0] + values[1]) * 2)


@pytest.mark.parametrize("owner", [Epilogue, Deep])
def test_an_epilogue_over_a_grid_is_joined_where_the_engines_meet(owner: Any) -> None:
    a, b = (param.value.type.shape for param in owner.program.main.params[:2])
    for name, count in (("ascend950", 1), ("host", 1), ("ascend910b", 2)):
        machine = load_target(name)
        joined = lower(owner.program, machine, after="forward_plans")
        assert len(calls(joined)) == count
        values = [exact_ints(a, np.float16), exact_ints(b, np.float16, 1), np.zeros((128, 128), np.float32)]
        interpret(lower(owner.program, machine), values)
        product = values[0].astype(np.float32) @ values[1].astype(np.float32)
        np.testing.assert_array_equal(values[2], np.maximum(product, 0))


def test_rows_over_blocks_of_columns_are_refused() -> None:
    program = lower(Rows.program, CHIP, after="flatten_tiles", forward=False)  # type: ignore[attr-defined]
    found = plan_forwarding(program, CHIP, judge_plan(CHIP), Phase.TILED)
    (decline,) = found.declines
    assert decline.refusal.rule == "5" and found.program is program


def test_tiles_of_the_user_are_left_to_the_second_round() -> None:
    program = lower(Blocks.program, CHIP, after="forward_templates")  # type: ignore[attr-defined]
    assert calls(program) == ["add", "double"]


# --- explain --------------------------------------------------------------------------------------------------------
def test_explain_lists_joins_and_refusals() -> None:
    case = CASES["attention"]
    arguments = case.arguments()
    found = case.kernel.explain(*arguments, target="ascend910b")
    by_tensor = {hand.tensor: hand for hand in found.hands}
    assert by_tensor["m"].function and not by_tensor["m"].why
    assert not by_tensor["s"].function and "meet only in DDR" in by_tensor["s"].why
    text = str(found)
    assert "From section to section" in text and "through DDR: s is in Acc and s in Vec" in text
    assert found.to_json()["hands"][0]["tensor"]


def test_explain_says_nothing_where_nothing_is_handed_over() -> None:
    found = explain(parse(ONE), target="ascend950")
    assert not found.hands and "From section to section" not in str(found)


ONE = """
import tilewright.language as pl

@pl.program(entry="main")
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[32, 32], pl.FP32]):
        b = pl.tensor.exp(a)
        return b
"""


def test_kinds_of_functions_stay() -> None:
    found = planned(five, x(65, 63), x(65, 63))
    assert [f.kind for f in found.program.functions] == [FunctionKind.INCORE, FunctionKind.ORCHESTRATION]


def test_a_section_that_leaves_nothing_behind_stays_by_itself() -> None:
    text = ONE.replace("b = pl.tensor.exp(a)", "b = pl.tensor.abs(a)").replace(
        "return b", "c = pl.tensor.add(b, a)\n        d = pl.tensor.relu(b)\n        return d"
    )
    program = lower(parse(text), CHIP, after="convert_tensor_to_tile", forward=False)
    found = plan_forwarding(program, CHIP, cheap)
    verify(found.program)
    (join,) = found.joins
    assert (join.tensor, join.consumer, join.kept) == ("b", "main_2", True)
    assert ["leaves nothing behind" in str(decline) for decline in found.declines] == [True]
