"""Bounds: proved, guarded, assumed and failing ones, by substitution and by sets of integers."""

from __future__ import annotations

import pytest

from tilewright import parse
from tilewright.certify.affine import SetText, is_empty
from tilewright.certify.bounds import Bounds, check_bounds
from tilewright.certify.lifetimes import lifetimes
from tilewright.certify.render import Names
from tilewright.certify.sequence import callees_first
from tilewright.ir.function import Function, Program

HEAD = """
import tilewright.language as pl

@pl.program
class Main:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[{rows}, 64], pl.FP32], idx: pl.Tensor[[4, 1], pl.INT32],
             start: pl.Scalar[pl.INDEX], out: pl.InOut[pl.Tensor[[{rows}, 64], pl.FP32]]):
{body}
        return out
"""


def program(body: str, rows: object = 64) -> Program:
    lines = "\n".join("        " + line for line in body.strip("\n").splitlines())
    return parse(HEAD.format(rows=rows, body=lines))


def bounds_of(given: Program) -> Bounds:
    done: dict[str, tuple[Function, Bounds]] = {}
    for function in callees_first(given):
        done[function.name] = function, check_bounds(function, Names(function, lifetimes(function).begins), done)
    return done[given.entry][1]


def load(offset: str, extent: int = 16, valid: str | None = None) -> str:
    more = "" if valid is None else f", valid_shape=[{valid}, 64]"
    return f"x = pl.tile.load(a, [{offset}, 0], [{extent}, 64]{more})"


def dims(found: Bounds, what: str) -> list[tuple[str, ...]]:
    return [bound.dims for bound in found.found if bound.what == what]


@pytest.mark.parametrize(
    ("rows", "body"),
    [
        (64, f"for i in pl.range(0, 64, 16):\n    {load('i')}"),
        (64, f"for i in pl.range(4):\n    {load('i * 16')}"),
        (60, f"for i in pl.range(0, 60, 16):\n    {load('i', 16, 'pl.min(16, 60 - i)')}"),
        (64, f"for i in pl.range(0, 64, 32):\n    for j in pl.range(0, 32, 16):\n        {load('i + j')}"),
        ("n", f"for i in pl.range(0, n, 16):\n    {load('i', 16, 'pl.min(16, n - i)')}"),
        ("n", f"for i in pl.range((n + 15) // 16):\n    {load('i * 16', 16, 'pl.min(16, n - i * 16)')}"),
        ("n", f"for i in pl.range(n // 16):\n    {load('i * 16')}"),
        ("n", f"for i in pl.range(0, n // 32 * 32, 32):\n    {load('i + 16')}"),
        ("n", f"for i in pl.range(n % 16, n, 16):\n    {load('i')}"),
        (64, f"for i in pl.range(100):\n    {load('i % 4 * 16')}"),
        (64, f"for i in pl.range(64):\n    {load('i // 16 * 16')}"),
    ],
)
def test_proved(rows: object, body: str) -> None:
    found = bounds_of(program(body, rows))
    assert dims(found, "reads a") == [("proved", "proved")]
    assert not found.notes.findings and not found.assumptions


@pytest.mark.parametrize(
    "body",
    [
        f"if start >= 0 and start + 16 <= 64:\n    {load('start')}",
        f"if start < 0 or start > 48:\n    pass\nelse:\n    {load('start')}",
        f"for i in pl.range(8):\n    if i < 4:\n        {load('i * 16')}",
    ],
)
def test_guarded(body: str) -> None:
    if "pass" in body:
        body = body.replace("    pass\n", "    y = pl.tile.load(a, [0, 0], [16, 64])\n")
    found = bounds_of(program(body))
    assert ("guarded", "proved") in dims(found, "reads a")
    assert not found.notes.findings and not found.assumptions


def test_assumed_and_listed() -> None:
    found = bounds_of(program(load("start")))
    assert dims(found, "reads a") == [("assumed", "proved")]
    assert [a.condition for a in found.assumptions] == ["0 <= start and start + 16 <= 64"]
    assert "tile.load reads axis 0 of 'a'" in str(found.assumptions[0])


def test_what_the_run_reads_is_assumed() -> None:
    found = bounds_of(program(f"k = pl.tensor.read(idx, [0, 0])\n{load('pl.cast(k, pl.INDEX)')}"))
    assert ("assumed", "proved") in dims(found, "reads a")
    assert not found.notes.findings


def test_an_assumption_over_a_loop_names_its_range() -> None:
    found = bounds_of(program(f"for i in pl.range(start):\n    {load('i * 16')}"))
    assert any(a.condition.endswith("for every i in range(0, start, 1)") for a in found.assumptions)


@pytest.mark.parametrize(
    ("rows", "body"),
    [
        (60, f"for i in pl.range(0, 64, 16):\n    {load('i')}"),
        (64, f"for i in pl.range(5):\n    {load('i * 16')}"),
        (64, f"for i in pl.range(4):\n    {load('i * 16 + 1')}"),
        (64, f"for i in pl.range(4):\n    {load('i * 16 - 1')}"),
        (64, f"for i in pl.range(8):\n    if i < 5:\n        {load('i * 16')}"),
        ("n", f"for i in pl.range(n, n + 16, 16):\n    {load('i')}"),
    ],
)
def test_what_leaves_its_tensor_for_all_arguments_is_found(rows: object, body: str) -> None:
    found = bounds_of(program(body, rows))
    assert [finding.fact for finding in found.notes.findings] == ["bounds"]
    assert found.notes.findings[0].message == "tile.load reads outside 'a'"


def test_valid_shapes_lie_within_their_tiles() -> None:
    right = bounds_of(program(f"for i in pl.range(4):\n    {load('0', 16, 'i * 4')}"))
    assert dims(right, "valid shape of x") == [("proved", "proved")]
    wrong = bounds_of(program(f"for i in pl.range(6):\n    {load('0', 16, 'i * 4')}"))
    assert "valid shapes" in {finding.fact for finding in wrong.notes.findings}


CALLS = """
import tilewright.language as pl

@pl.program(entry="main")
class Main:
    @pl.function(type=pl.FunctionType.InCore)
    def block(self, a: pl.Tensor[[64, 64], pl.FP32], k: pl.Scalar[pl.INDEX],
              out: pl.InOut[pl.Tensor[[64, 64], pl.FP32]]):
        x = pl.tile.load(a, [k * 16, 0], [16, 64])
        return pl.tile.store(x, [k * 16, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INDEX],
             out: pl.InOut[pl.Tensor[[64, 64], pl.FP32]]):
        for i, (o,) in pl.range({trips}, init_values=(out,)):
            o_1 = self.block(a, i, o)
            o_2 = pl.yield_(o_1)
        return o_2
"""


def test_what_a_callee_demands_is_asked_of_the_call() -> None:
    assert not bounds_of(parse(CALLS.format(trips=4))).assumptions
    assert bounds_of(parse(CALLS.format(trips="n"))).assumptions
    assert not bounds_of(parse(CALLS.format(trips="n"))).notes.findings
    wrong = bounds_of(parse(CALLS.format(trips=5))).notes.findings
    assert wrong and "goes outside, called with these arguments" in wrong[0].message


def test_isl_gives_up_rather_than_run_for_ever() -> None:
    names = ", ".join(f"i{k}" for k in range(12))
    where = " and ".join(f"floor((i{k} * {k + 3} + i{(k + 5) % 12}) / {k + 7}) mod {k + 2} = 1" for k in range(12))
    assert is_empty(f"{{ [{names}] : {where} }}") in (None, False, True)
    assert SetText().set([]) == "[] -> { [] }"
