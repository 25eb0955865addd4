"""Tiles that rows and columns cannot say, refused at their line."""

from __future__ import annotations

import pytest
import tilewright as tw
from tilewright.errors import TilewrightError, UnsupportedError, ValidShapeError
from tilewright.passes.tile.flatten_tiles import flatten_tiles


def kernel(*lines: str) -> tw.Program:
    body = "\n        ".join(lines)
    return tw.parse(
        f"""import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[4, 8, 16], pl.FP32], b: pl.Tensor[[65, 8, 16], pl.FP32], out: pl.Out[pl.Tensor[[4, 8, 16], pl.FP32]]):
        {body}
"""
    )


@pytest.mark.parametrize(
    ("error", "message", "lines"),
    [
        (UnsupportedError, "too many matrices", ["x = pl.tile.load(b, [0, 0, 0], [65, 8, 16])"]),
        (
            ValidShapeError,
            "no box of its rows",
            ["x = pl.tile.load(a, [0, 0, 0], [4, 8, 16], valid_shape=[4, 7, 16])"],
        ),
        (
            UnsupportedError,
            "no run of its rows",
            ["x = pl.tile.full([4, 8, 16], pl.FP32, 1.0)", "y = pl.tile.slice(x, [2, 4, 16], [0, 0, 0])"],
        ),
        (
            UnsupportedError,
            "transposition of leading dimensions",
            ["x = pl.tile.full([1, 8, 16], pl.FP32, 1.0)", "y = pl.tile.transpose(x, 0, 2)"],
        ),
        (
            ValidShapeError,
            "no box of its rows",
            ["x = pl.tile.create([4, 8, 16], pl.FP32, valid_shape=[4, 5, 16])"],
        ),
    ],
)
def test_refused(error: type[TilewrightError], message: str, lines: list[str]) -> None:
    program = kernel(*lines)
    with pytest.raises(error, match=message) as caught:
        flatten_tiles(program)
    assert caught.value.span is not None and caught.value.span.line == 6 + len(lines)


def test_a_program_of_matrices_is_returned_itself() -> None:
    program = kernel("x = pl.tile.full([8, 16], pl.FP32, 1.0)", "y = pl.tile.neg(x)")
    assert flatten_tiles(program) is program
