"""Sections that meet other sites (S12): sums over sites and messages, in the interpreter, joined and apart."""

from __future__ import annotations

from contextvars import Context
from typing import Any

import numpy as np
import pytest
from support import exact_ints

from tilewright import parse
from tilewright.codegen.native import compile_native
from tilewright.codegen.pto.writer import emit_pto
from tilewright.compiler import UNPLACED, lower
from tilewright.errors import ArgumentError, TilewrightError
from tilewright.execute.interpreter import interpret
from tilewright.execute.sites import run_sites
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.nodes import Call
from tilewright.sections.driver import plan_forwarding
from tilewright.sections.lift import lift
from tilewright.sections.lower import lower as lowered
from tilewright.sections.price import Price
from tilewright.sections.section import AllReduce, Recv, Section
from tilewright.sections.verify import faults
from tilewright.targets import load_target

CHIP = load_target("ascend950")
SITES = 3

GRADIENT = """
import tilewright.language as pl

@pl.program(entry="main")
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[32, 16], pl.FP32], w: pl.Tensor[[16, 48], pl.FP32], out: pl.Out[pl.Tensor[[32, 48], pl.FP32]]):
        a = pl.tensor.adds(x, 1.0)
        b = pl.tensor.matmul(a, w)
        out_1 = pl.tensor.assemble(out, b, [0, 0])
        out_2 = pl.tensor.all_reduce(out_1, group="all")
        return out_2
"""  # noqa: E501
MESSAGE = """
import tilewright.language as pl

@pl.program(entry="main")
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[32, 16], pl.FP32], out: pl.Out[pl.Tensor[[32, 16], pl.FP32]]):
        r = pl.tensor.recv([32, 16], pl.FP32, channel="left")
        s = pl.tensor.add(r, x)
        t = pl.tensor.relu(s)
        out_1 = pl.tensor.assemble(out, t, [0, 0])
        return out_1
"""


def free(function: Function) -> Price:
    return Price()


def joined(text: str) -> tuple[Program, Program]:
    program = lower(parse(text), CHIP, after="convert_tensor_to_tile", forward=False)
    return program, plan_forwarding(program, CHIP, free).program


def inputs(site: int) -> list[Any]:
    return [exact_ints((32, 16), np.float32, site), exact_ints((16, 48), np.float32, 9), np.zeros((32, 48), np.float32)]


def sections(program: Program) -> list[Section]:
    found = [lift(f) for f in program.functions if f.kind is FunctionKind.INCORE]
    assert all(isinstance(section, Section) and not faults(section) for section in found)
    return [section for section in found if isinstance(section, Section)]


def test_a_sum_over_sites_is_the_same_apart_and_joined() -> None:
    program, together = joined(GRADIENT)
    arguments = [inputs(site) for site in range(SITES)]
    expected = sum((x + 1) @ w for x, w, _ in arguments)
    for version in (parse(GRADIENT), program, together):
        values = [inputs(site) for site in range(SITES)]
        run_sites(version, values)
        for site in range(SITES):
            np.testing.assert_array_equal(values[site][2], expected)
    assert sum(isinstance(s, Call) for s in together.main.walk()) < sum(
        isinstance(s, Call) for s in program.main.walk()
    )


def test_what_is_reduced_is_lifted_lowered_and_stays_in_memory() -> None:
    program, _ = joined(GRADIENT)
    found = [s for s in sections(program) if any(isinstance(stage.kind, AllReduce) for stage in s.stages)]
    (section,) = found
    assert section.requires.interconnect == {"all"}
    assert lowered(section) == program.function(section.name)


def test_a_message_is_forwarded_like_anything_else() -> None:
    program, together = joined(MESSAGE)
    (first, *_) = [s for s in sections(program) if any(isinstance(stage.kind, Recv) for stage in s.stages)]
    assert first.requires.interconnect == {"left"} and lowered(first) == program.function(first.name)
    assert sum(isinstance(s, Call) for s in together.main.walk()) == 1
    messages = [[exact_ints((32, 16), np.float32, 20 + site)] for site in range(SITES)]
    for version in (parse(MESSAGE), program, together):
        values = [[exact_ints((32, 16), np.float32, site), np.zeros((32, 16), np.float32)] for site in range(SITES)]
        run_sites(version, values, {"left": messages})
        for site in range(SITES):
            np.testing.assert_array_equal(values[site][1], np.maximum(messages[site][0] + values[site][0], 0))


def test_one_site_by_itself_sums_its_own() -> None:
    values = inputs(0)
    interpret(parse(GRADIENT), values)
    np.testing.assert_array_equal(values[2], (values[0] + 1) @ values[1])


def test_messages_that_nobody_sends_are_refused() -> None:
    values = [[exact_ints((32, 16)), np.zeros((32, 16), np.float32)] for _ in range(2)]
    with pytest.raises(ArgumentError, match="nobody sends"):
        run_sites(parse(MESSAGE), values, {"left": [[exact_ints((32, 16))], []]})
    with pytest.raises(ArgumentError, match="nothing is sent"):
        Context().run(interpret, parse(MESSAGE), values[0])  # whatever ran in this process before
    with pytest.raises(ArgumentError, match="another tensor"):
        run_sites(parse(MESSAGE), values, {"left": [[exact_ints((32, 8))], [exact_ints((32, 16))]]})


def test_the_order_of_sums_is_kept() -> None:
    text = GRADIENT.replace(
        "        return out_2", '        y_1 = pl.tensor.all_reduce(y, group="all")\n        return out_2, y_1'
    ).replace("pl.FP32]]):", "pl.FP32]], y: pl.InOut[pl.Tensor[[8, 8], pl.FP32]]):")
    program, together = joined(text)
    for version in (program, together):
        values = [[*inputs(site), exact_ints((8, 8), np.float32, site)] for site in range(SITES)]
        expected = sum(value[3].copy() for value in values)
        run_sites(version, values)
        np.testing.assert_array_equal(values[0][3], expected)


@pytest.mark.parametrize("text", [GRADIENT, MESSAGE])
def test_no_backend_runs_them(text: str) -> None:
    host = load_target("host")
    with pytest.raises(TilewrightError, match="other sites"):
        compile_native(lower(parse(text), host, after=UNPLACED), host)
    with pytest.raises(TilewrightError):
        emit_pto(lower(parse(text), CHIP), CHIP)
