"""The decision: cheapest by the target's edges, independent of the order of the program, printable (spaces R7, R8)."""

from __future__ import annotations

from time import process_time

import pytest
import tilewright as tw
from tilewright.ir.dtypes import FP32
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.ir.types import TensorType
from tilewright.passes.tensor.convert_tensor_to_tile import (
    DEFAULT,
    ConsumerSpaceCollector,
    Form,
    convert_tensor_to_tile,
    plan_conversion,
)
from tilewright.passes.tensor.convert_tensor_to_tile.prices import IN_DDR, Prices
from tilewright.targets import load_target

VEC, MAT, ACC = MemorySpace.VEC, MemorySpace.MAT, MemorySpace.ACC
KIND = TensorType((64, 64), FP32)


def kernel(*lines: str) -> tw.Program:
    body = "\n        ".join(lines)
    return tw.parse(
        f"""import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[32, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32]):
        {body}
"""
    )


ADD, PRODUCT = "x = pl.tensor.add(t, b)", "y = pl.tensor.matmul(t, b)"


@pytest.mark.parametrize("target", ["ascend910b", "ascend950", "x86_amx", "generic"])
@pytest.mark.parametrize("start", ["t = pl.tensor.slice(a, [32, 32], [0, 0])", "t = pl.tensor.exp(a)"])
def test_both_orders_give_one_plan(target: str, start: str) -> None:
    machine = load_target(target)
    one = plan_conversion(kernel(start, ADD, PRODUCT, "return x, y"), machine)
    other = plan_conversion(kernel(start, PRODUCT, ADD, "return x, y"), machine)
    assert one == other and str(one) == str(other)
    assert any(decision.value == "t" for decision in one.decisions)


def test_two_loads_where_there_is_no_edge_between() -> None:
    plan = plan_conversion(kernel("x = pl.tensor.add(a, b)", "y = pl.tensor.matmul(a, b)", "return x, y"),
                           load_target("ascend910b"))
    assert "main: a [32, 32] FP32: Mat loaded, Vec loaded (" in str(plan)


def test_the_cheapest_tree_is_taken() -> None:
    """Checked against the prices of the edges themselves."""
    for name in ("ascend910b", "ascend950", "x86_amx", "generic"):
        target = load_target(name)
        tree, price = Prices(target).tree(IN_DDR, (Form(VEC), Form(MAT)), KIND)
        assert set(tree) == {Form(VEC), Form(MAT)}

        def cost(a: MemorySpace, b: MemorySpace, target=target) -> float:
            route = target.route(a, b, FP32, nbytes=64 * 64 * 4)
            return float("inf") if route is None else route.cost

        ddr = MemorySpace.DDR
        ways = [
            cost(ddr, VEC) + cost(ddr, MAT), cost(ddr, VEC) + cost(VEC, MAT), cost(ddr, MAT) + cost(MAT, VEC)
        ]
        assert price[0] == min(ways)


def test_ties_go_to_fewer_bytes_over_ddr() -> None:
    """A transposed view of a tile costs nothing, a second load does."""
    tree, _ = Prices(load_target("ascend910b")).tree(IN_DDR, (Form(MAT), Form(MAT, True)), KIND)
    assert tree == {Form(MAT): None, Form(MAT, True): Form(MAT)}


def test_a_transposed_accumulator_is_turned_where_it_can_be() -> None:
    tree, _ = Prices(load_target("ascend910b")).tree(Form(ACC), (Form(MAT, True),), KIND)
    assert tree == {Form(ACC): None, Form(MAT): Form(ACC), Form(MAT, True): Form(MAT)}


def test_demand_passes_through_views_carries_and_phis() -> None:
    program = kernel(
        "s = pl.tensor.slice(a, [32, 32], [0, 0])",
        "u = pl.tensor.reshape(s, [32, 32])",
        "for i, (c,) in pl.range(2, init_values=(u,)):",
        "    d = pl.tensor.slice(b, [32, 32], [0, 0])",
        "    c_1 = pl.yield_(d)",
        "if n > 2:",
        "    z = pl.yield_(c_1)",
        "else:",
        "    z = pl.yield_(c_1)",
        "y = pl.tensor.matmul(z, b)",
        "return y",
    )
    survey = ConsumerSpaceCollector(program.main, program, DEFAULT)
    (web,) = survey.webs
    assert web.wants == {Form(MAT): 1}
    after = convert_tensor_to_tile(program, load_target("ascend910b"))
    loads = [s.value for s in after.main.walk() if isinstance(s, Let) and isinstance(s.value, Op)]
    spaces = [op.target_memory for op in loads if op.qualified_name == "tile.load"]
    assert spaces == [MAT] * 3, "one load for each of s, d and b, none of them moved"
    assert not any(op.qualified_name == "tile.move" for op in loads)


def test_linear_in_the_size_of_the_program() -> None:
    """Ten times the statements take about ten times as long; a square would take a hundred."""

    def seconds(count: int) -> float:
        lines = ["x0 = pl.tensor.add(a, b)"]
        for i in range(count):
            lines += [f"y{i} = pl.tensor.matmul(x{i}, b, b_trans=True)", f"x{i + 1} = pl.tensor.add(y{i}, a)"]
        program = kernel(*lines, f"return x{count}")
        start = process_time()
        convert_tensor_to_tile(program, load_target("ascend910b"))
        return process_time() - start

    seconds(20)
    small, large = seconds(60), seconds(600)
    assert large < 35 * small + 0.05, f"{small:.3f} s for 60, {large:.3f} s for 600"


def test_a_transposed_view_flows_into_a_loop_unplaced() -> None:
    """Its layout is not that of what else flows in, so inference places them together."""
    program = kernel(
        "s = pl.tensor.slice(a, [32, 32], [0, 0])",
        "r = pl.tensor.reshape(s, [32, 32])",
        "u = pl.tensor.transpose(r, 0, 1)",
        "for i, (c,) in pl.range(2, init_values=(u,)):",
        "    d = pl.tensor.slice(b, [32, 32], [0, 0])",
        "    c_1 = pl.yield_(d)",
        "y = pl.tensor.matmul(c_1, b)",
        "return y",
    )
    after = convert_tensor_to_tile(program, load_target("ascend910b"))
    tw.verify(after)
    loads = [s.value for s in after.main.walk() if isinstance(s, Let) and isinstance(s.value, Op)]
    assert [op.target_memory for op in loads if op.qualified_name == "tile.load"] == [None, None, MAT]
