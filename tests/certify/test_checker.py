"""The checker on programs that are right, and on the same programs edited by hand."""

from __future__ import annotations

import json

import pytest

from tilewright import parse
from tilewright.certify.certificate import Certificate, read_certificate
from tilewright.certify.checker import check
from tilewright.certify.verdict import Verdict
from tilewright.certify.writer import certify
from tilewright.compiler import lower
from tilewright.errors import CertificateError
from tilewright.ir.function import Program
from tilewright.targets import Target, load_target

TARGET = load_target("ascend910b")

SOURCE = """
import tilewright.language as pl

@pl.program
class Main:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 64], pl.FP32], b: pl.Tensor[[64, 64], pl.FP32],
             out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        for i, (o,) in pl.range(0, 64, 16, init_values=(out,)):
            x = pl.tile.load(a, [i, 0], [16, 64], target_memory=pl.Mem.Vec)
            y = pl.tile.load(b, [i, 0], [16, 64], target_memory=pl.Mem.Vec)
            z = pl.tile.add(x, y)
            w = pl.tile.row_max(z)
            v = pl.tile.row_expand_sub(z, w)
            o_1 = pl.tile.store(v, [i, 0], o)
            o_2 = pl.yield_(o_1)
        return o_2
"""


@pytest.fixture(scope="module")
def placed() -> tuple[str, Certificate]:
    """The text of the placed program, and its certificate."""
    program = lower(parse(SOURCE), TARGET)
    return str(program), certify(program, TARGET)


def edited(text: str, old: str, new: str, count: int = 1) -> Program:
    """The program with a piece of its text replaced."""
    assert text.count(old) >= 1, f"{old} is not in\n{text}"
    return parse(text.replace(old, new, count))


def judged(text: str, certificate: Certificate | None, old: str, new: str, target: Target = TARGET) -> Verdict:
    return check(edited(text, old, new), certificate, target, bind=False)


def test_a_right_program_is_accepted(placed: tuple[str, Certificate]) -> None:
    text, certificate = placed
    verdict = check(parse(text), certificate, TARGET)
    assert verdict.accepted and not verdict.assumptions, str(verdict)
    assert verdict.counts["order"] and verdict.counts["overlap"] and verdict.counts["bounds"]
    assert str(verdict).startswith("accepted: ")


def test_an_address_moved_by_32_bytes(placed: tuple[str, Certificate]) -> None:
    """Which two tiles overlap, when, and at which lines."""
    text, certificate = placed
    line = next(line for line in text.splitlines() if " y: pl.Tile" in line)
    moved = line.replace("addr=4096", "addr=4064")
    assert moved != line
    verdict = judged(text, certificate, line, moved)
    overlap = next(finding for finding in verdict.findings if finding.fact == "overlap")
    lines = text.replace(line, moved).splitlines()
    assert "'y' is written over 'x'" in overlap.message
    assert overlap.other is not None
    assert [lines[span.line - 1].split(":")[0].strip() for span in (overlap.span, overlap.other)] == ["y", "x"]
    assert overlap.found is not None
    assert "'x' in bytes 0 to 4,096" in overlap.found and "'y' in bytes 4,064 to 8,160" in overlap.found
    assert "both alive from statement 3 to 4" in overlap.found
    assert "certificate" in verdict.facts


def test_json_and_back(placed: tuple[str, Certificate]) -> None:
    _, certificate = placed
    assert read_certificate(json.loads(json.dumps(certificate.to_json()))) == certificate


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "is not an object"),
        ({}, "lacks the field"),
        ({"format": "1"}, "format is not a whole number"),
        ({"format": 1, "more": 2}, "has no field 'more'"),
    ],
)
def test_what_is_no_certificate(data: object, said: str) -> None:
    with pytest.raises(CertificateError, match=said):
        read_certificate(data)


def test_another_version(placed: tuple[str, Certificate]) -> None:
    with pytest.raises(CertificateError, match="another format"):
        read_certificate(placed[1].to_json() | {"format": 99})
