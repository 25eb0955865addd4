"""The order of engines: waits are left out at random, and brute force says whether what conflicts is still ordered."""

from __future__ import annotations

import os
import random
from dataclasses import replace

import pytest
from analysis.test_hazards import TARGET, Drawing, Unrolled, unordered

from tilewright import parse
from tilewright.analysis.hazards import Hazard, hazards
from tilewright.certify.certificate import HazardClaim
from tilewright.certify.checker import check
from tilewright.certify.lifetimes import lifetimes
from tilewright.certify.order import check_order
from tilewright.certify.writer import certify
from tilewright.compiler import lower
from tilewright.ir.function import Function
from tilewright.ir.nodes import Stmt
from tilewright.targets import load_target

TIMES = int(os.environ.get("TILEWRIGHT_PROPERTIES", "1"))
PATHS = 16
"""Ways through the branches that brute force follows."""


def claims(found: list[Hazard], numbers: dict[Stmt, int]) -> list[HazardClaim]:
    return [
        HazardClaim(
            numbers[h.before], numbers[h.after], h.before_engine, h.after_engine, h.kind, h.memory,
            None if h.loop is None else numbers[h.loop], h.distance,
        )
        for h in found
    ]  # fmt: skip


def drawn(seed: int) -> tuple[Function, list[Hazard], dict[Stmt, int]]:
    function = Drawing(seed).function(TARGET)
    return function, hazards(function, TARGET), lifetimes(function).begins


@pytest.mark.parametrize("part", range(4 * TIMES))
def test_what_is_left_out_is_missed(part: int) -> None:
    """With every wait the program is accepted; whenever brute force finds a conflict that nothing orders, so does the
    checker. Enough of the cases are of each kind."""
    wrong = right = 0
    for seed in range(part * 6, part * 6 + 6):
        function, found, numbers = drawn(seed)
        assert not check_order(function, TARGET, claims(found, numbers), numbers).findings, seed
        traces = [Unrolled(function, TARGET, random.Random(path)).events for path in range(PATHS)]
        for cut in range(6):
            choose = random.Random(seed * 100 + cut)
            left = list(found)
            for _ in range(choose.choice((1, 1, 2, 4))):
                if left:
                    left.pop(choose.randrange(len(left)))
            conflict = any(unordered(events, left) for events in traces)
            rejected = bool(check_order(function, TARGET, claims(left, numbers), numbers).findings)
            assert rejected or not conflict, f"seed {seed}, cut {cut}: a conflict is accepted"
            wrong += conflict
            right += not conflict and not rejected
    assert wrong >= 5 and right >= 3


def test_a_finding_names_both_statements() -> None:
    function, found, numbers = drawn(3)
    first = found[0]
    left = [h for h in found if (h.before, h.after) != (first.before, first.after)]
    finding = check_order(function, TARGET, claims(left, numbers), numbers).findings[0]
    assert finding.fact == "order"
    assert (finding.other, finding.span) == (first.before.span, first.after.span)
    assert finding.required is not None
    assert f"statement {numbers[first.after]} waits for {numbers[first.before]}" in finding.required


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"before": 10_000}, "names statements that are not there"),
        ({"before_engine": "CUBE"}, "names another engine"),
        ({"loop": 1, "distance": 1}, "names statements that are not there"),
    ],
)
def test_waits_that_mean_nothing(change: dict[str, int | str], said: str) -> None:
    function, found, numbers = drawn(3)
    given = claims(found, numbers)
    spoiled = replace(given[0], **change)  # type: ignore[arg-type]
    notes = check_order(function, TARGET, [spoiled, *given], numbers)
    assert any(said in finding.message and finding.fact == "certificate" for finding in notes.findings)


def test_a_wait_for_what_comes_later_is_never_over() -> None:
    function, found, numbers = drawn(3)
    given = claims(found, numbers)
    first = given[0]
    turned = replace(
        first,
        before=first.after,
        after=first.before,
        before_engine=first.after_engine,
        after_engine=first.before_engine,
    )
    notes = check_order(function, TARGET, [*given, turned], numbers)
    assert any("is never over" in finding.message for finding in notes.findings)


def test_many_loops_of_unknown_length() -> None:
    """What any of them may have written last is waited for by itself, however many there are."""
    body: list[str] = []
    now = "x"
    for k in range(60):
        body += [
            f"        for i{k}, (c{k},) in pl.range(n, init_values=({now},)):",
            f"            d{k} = pl.tile.add(c{k}, pl.tile.load(a, [0, 0], [16, 64]))",
            f"            w{k} = pl.yield_(d{k})",
        ]
        now = f"w{k}"
    source = """
import tilewright.language as pl

@pl.program
class Main:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 64], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [16, 64])
"""
    target = load_target("ascend910b")
    program = lower(parse(source + "\n".join(body) + f"\n        return pl.tile.store({now}, [0, 0], out)\n"), target)
    verdict = check(program, certify(program, target), target)
    assert verdict.accepted and verdict.counts["order"] > 60
