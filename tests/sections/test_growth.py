"""Forwarding grows with the program, not with its square."""

from __future__ import annotations

from time import process_time

import pytest

from tilewright import parse
from tilewright.compiler import judge, lower
from tilewright.ir.collector import collector_paused
from tilewright.ir.function import Program
from tilewright.sections.driver import plan_forwarding
from tilewright.targets import load_target

CHIP = load_target("ascend950")


def chain(length: int) -> Program:
    """Operations one after the other: softmaxes, in which a tensor has two readers."""
    kind = "pl.Tensor[[64, 64], pl.FP32]"
    lines = ["import tilewright.language as pl", "", '@pl.program(entry="main")', "class P:"]
    lines += ["    @pl.function(type=pl.FunctionType.Orchestration)"]
    lines += [f"    def main(self, x: {kind}, out: pl.Out[{kind}]):"]
    last = "x"
    for at in range(length):
        base = f"v{at - at % 5 - 1}" if at >= 5 else "x"
        lines.append(
            f"        v{at} = pl.tensor."
            + (
                f"row_max({last})", f"row_expand_sub({base}, {last})", f"exp({last})", f"row_sum({last})",
                f"row_expand_div(v{at - 2}, {last})",
            )[at % 5]
        )  # fmt: skip
        last = f"v{at}"
    lines += [f"        out_1 = pl.tensor.assemble(out, {last}, [0, 0])", "        return out_1"]
    return lower(parse("\n".join(lines) + "\n"), CHIP, after="convert_tensor_to_tile", forward=False, check=False)


def seconds(length: int) -> float:
    """Processor seconds, the best of a few runs."""
    program = chain(length)
    best = float("inf")
    for _ in range(3 if length < 500 else 1):
        with collector_paused():
            started = process_time()
            found = plan_forwarding(program, CHIP, judge(CHIP))
            best = min(best, process_time() - started)
        assert len(found.program.functions) == 2 and not found.declines
    return best


@pytest.mark.slow
def test_two_hundred_sections_take_less_than_a_second_and_ten_times_as_many_ten_times_as_long() -> None:
    """At most twelve times. Other work on the machine slows the long runs down more: measured up to four times."""
    ratios: list[float] = []
    while not ratios or (min(ratios) > 12 and len(ratios) < 4):
        few = seconds(200)
        assert few < 1.0
        ratios.append(seconds(2000) / few)
    assert min(ratios) <= 12, ratios
