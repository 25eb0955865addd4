"""Loop functions as text: what is printed reads back as an equal function, for every statement and expression."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from properties.loop_programs import draw_loops

import tilewright.language as pl
from tilewright.errors import TilewrightError
from tilewright.execute.loops import interpret_loops
from tilewright.frontend import parse, parse_loops, says_loops
from tilewright.ir.loop_level import Allocate, Loop, LoopFunction, Store
from tilewright.ir.verify_loops import verify_loops
from tilewright.passes.loop.fuse_loops import fuse_loops
from tilewright.passes.loop.lower_blocks import lower_blocks
from tilewright.passes.loop.partition_loops import partition_loops
from tilewright.passes.loop.simplify import simplify
from tilewright.passes.loop.vectorize import Vectors, vectorize
from tilewright.text import print_loops

HEAD = "import tilewright.language as pl\n\n"

STRUCTURED = """\
n = pl.dynamic("n")

@pl.loop.function
def main(A: pl.loop.Buffer[[16, n], pl.FP32], Z: pl.loop.Buffer[[], pl.INT32], m: pl.Scalar[pl.INDEX]):
    B = pl.loop.alloc([16], pl.FP32, pl.Mem.Vec, dim_align=[[0, 16, 8]])
    for i in pl.loop.serial(0, 16):
        with pl.loop.block("update", explicit_read_region=[0]):
            pl.loop.where(i < m or not m > 3)
            whole = pl.loop.match(A[i:i + 2, 0:n])
            row = pl.loop.match(A[i, 0:4], shape=[4], space=pl.Mem.Vec)
            t = pl.loop.local([4, n], pl.BF16)
            pl.loop.reads(A[i, 0:16], pl.loop.region(A, [m, 0], [m + 1, n]))
            pl.loop.writes(B[i], Z[()])
            B[i] = A[i, 0] + pl.loop.if_then_else(i > 0, A[i - 1, 1], 0.0)
            Z[()] = Z[()] + 1
        for c in pl.loop.thread("core", 0, n):
            for u in pl.loop.unrolled(2, n, 2, annotations={"a.b": "c"}):
                for v in pl.loop.vectorized(0, 8):
                    for p in pl.loop.parallel(8, -1, -1, grain=2):
                        pass
    with pl.loop.block("nothing"):
        pass
"""
LOWERED = """\
@pl.loop.function
def main(A: pl.loop.Buffer[[16, 8], pl.FP32], k: pl.Scalar[pl.FP32], h: pl.loop.Handle[pl.FP32]):
    for c in pl.loop.launch("core", 4):
        for d in pl.loop.launch("core"):
            B = pl.loop.alias(A, [64], pl.INT32, pl.Mem.Vec, offset=c * 8)
            lanes = pl.loop.ramp(c, -2, 4)
            x = pl.exp(k) * pl.abs(k - 1.0) if c > d else pl.cast(c, pl.FP32)
            B[lanes] = pl.loop.broadcast(pl.const(3, pl.INT32), 4)
            A[pl.min(c, 3), d % 8] = x / 2.0 - -k
            pointer = pl.loop.address_of(B, offset=c, extent=4)
            y = pl.loop.extern("peek", pointer, 1, dtype=pl.FP32)
            pl.loop.extern("poke", pl.loop.address_of(A), y + pl.loop.extern("sq", 2.0, dtype=pl.FP32, pure=True), dtype=pl.FP32)
            while B[0] < 4 and pl.loop.likely(B[1] != 2):
                B[0] = B[0] + 1
    with pl.loop.attribute("double_buffer", A, 2):
        if A[0, 0] > k:
            A[0, 0] = k
        else:
            A[0, 1] = pl.const("inf", pl.FP32)
    with pl.loop.op(A[8:16, 0:8]):
        a: pl.Tile[[8, 8], pl.FP32, pl.Mem.Vec] = A[0:8, 0:8]
        pl.tile.muls(a, k)
    if k:
        pass
"""  # noqa: E501


@pytest.mark.parametrize("text", [STRUCTURED, LOWERED], ids=["structured", "lowered"])
def test_every_node_reads_back(text: str) -> None:
    function = parse_loops(HEAD + text)
    assert print_loops(function) == HEAD + text
    assert parse_loops(str(function)) == function


@pytest.mark.parametrize("structured", [True, False])
def test_random_programs_read_back(structured: bool) -> None:
    for seed in range(15):
        for function in (draw_loops(seed, structured=structured, affine=seed % 2 == 0),):
            for program in (function, simplify(function)):
                assert parse_loops(print_loops(program)) == program


def vectors(function: LoopFunction) -> LoopFunction:
    return vectorize(function, Vectors(32, True))


@pytest.mark.parametrize("apply", [fuse_loops, vectors, partition_loops, lower_blocks])
def test_what_passes_make_is_right_and_reads_back(apply: Callable[[LoopFunction], LoopFunction]) -> None:
    for seed in range(12):
        function = apply(draw_loops(seed, structured=seed % 3 == 0, affine=seed % 2 == 0))
        verify_loops(function)
        assert parse_loops(print_loops(function)) == function


ROWS = 4


@pl.loop.function
def doubled(A: pl.loop.Buffer[[4, 8], pl.FP32], B: pl.loop.Buffer[[4, 8], pl.FP32]):
    """A function in a Python file is a loop function; constants around it are read."""
    for i in pl.loop.parallel(ROWS):
        for j in pl.loop.serial(0, 8, 2):
            two = pl.loop.ramp(j, 1, 2)
            B[i, two] = A[i, two] * 2.0
            B[i, j] += 1.0


def test_a_python_function_is_a_loop_function() -> None:
    assert isinstance(doubled, LoopFunction)
    source, out = np.arange(32, dtype=np.float32).reshape(4, 8), np.zeros((4, 8), np.float32)
    interpret_loops(doubled, [source, out])
    np.testing.assert_array_equal(out, source * 2 + (np.arange(8) % 2 == 0))
    loop = doubled.body[0]
    assert isinstance(loop, Loop) and loop.span.file == __file__ and parse_loops(str(doubled)) == doubled


def test_statements_know_their_lines() -> None:
    function = parse_loops(HEAD + STRUCTURED)
    assert isinstance(function.body[0], Allocate) and function.body[0].span.line == 7
    stores = [stmt.span.line for stmt in function.walk() if isinstance(stmt, Store)]
    assert stores == [16, 17]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("A[0] = 1.0", "'A' has 2 dimensions"),
        ("A[0, 0:2] = 1.0", "an element is written at a time"),
        ("x = A[0, 0:2]", "a region stands in reads"),
        ("x = A", "a scalar is wanted here"),
        ("x = A * 2.0", "'A' is a buffer"),
        ("x = 1.0 < A", "'A' is a buffer"),
        ("x = pl.tile.exp(A)", "'A' is a buffer"),
        ("x = pl.min(A, 3)", "'A' is a buffer"),
        ("x = missing + 1", "'missing' is used before"),
        ("A[0, 0] = k + 0.5", "a float meets an integer"),
        ("k = 3", "'k' is bound already"),
        ("x = pl.loop.local([4], pl.FP32)", "at the start of a block only"),
        ("pl.loop.where(k < 1)", "does not stand inside an expression"),
        ("A[0, 0] = pl.loop.ramp(0, 1, 0)", "a number of lanes"),
        ("pl.loop.alocate([4])", "the language has no pl.loop.alocate"),
        ("return A", "not part of the loop level"),
        ("for i in range(4): pass", "no loop of the loop level"),
        ("x = pl.loop.extern(3)", "takes the name of a function"),
        ("B = pl.loop.alloc([4])", "an allocation has a shape and a dtype"),
        ("A[0, 0] = pl.loop.extern('f', dtype=pl.FP32)", "f is not pure"),
        ("A[0, pl.loop.ramp(0, 1, 4)] = pl.loop.broadcast(1.0, 2)", "vectors of different lanes"),
        ("B = pl.loop.alloc([z], pl.FP32)", "'z' is used before"),
    ],
)
def test_what_is_wrong_is_said_at_its_line(line: str, message: str) -> None:
    head = HEAD + "@pl.loop.function\ndef main(A: pl.loop.Buffer[[4, 4], pl.FP32], k: pl.Scalar[pl.INDEX]):\n"
    with pytest.raises(TilewrightError, match=message) as raised:
        parse_loops(head + f"    {line}\n", "wrong.py")
    assert raised.value.span is not None and raised.value.span.line == 5
    assert "^" in str(raised.value) and ("help" in str(raised.value) or "required" in str(raised.value))


def test_a_text_is_known_by_its_look() -> None:
    assert says_loops(HEAD + STRUCTURED) and says_loops(HEAD + LOWERED)
    assert not says_loops(HEAD + STRUCTURED + "\nclass Other: pass\n")
    assert not says_loops("@pl.jit\ndef main(): 'loop.function'\n") and not says_loops("loop.function(")
    with pytest.raises(TilewrightError, match=r"pl\.loop\.parse reads loop functions"):
        parse(HEAD + LOWERED)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = open('f')\n", "open"),
        ("def main(): pass\n", "no loop function"),
        ("import os\n", "does not belong"),
        ("@pl.loop.function\ndef main(A): pass\n", "has no type"),
        ("@pl.loop.function\ndef main(A: pl.loop.Buffer[[4]]): pass\n", "not complete"),
        ("def main(:\n", "not Python syntax"),
    ],
)
def test_text_that_is_none(text: str, message: str) -> None:
    with pytest.raises(TilewrightError, match=message):
        parse_loops(HEAD + text)
