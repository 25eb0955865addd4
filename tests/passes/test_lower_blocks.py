"""From the structured form to the lowered one: what becomes of each part, and that the program means the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from properties.loop_programs import draw_loops, loop_arguments

from tilewright.execute.loops import interpret_loops
from tilewright.frontend import parse_loops
from tilewright.ir.loop_level import LoopFunction
from tilewright.ir.verify_loops import form_of, verify_loops
from tilewright.passes.loop.lower_blocks import lower_blocks

HEAD = "import tilewright.language as pl\n\n@pl.loop.function\ndef main(A: pl.loop.Buffer[[6, 8], pl.FP32], n: pl.Scalar[pl.INDEX]):\n"  # noqa: E501


def read(body: str) -> LoopFunction:
    lines = body.strip("\n").splitlines()
    return parse_loops(HEAD + "\n".join("    " + line for line in lines) + "\n")


def results(function: LoopFunction, externs: Any = None) -> list[list[float]]:
    array = np.arange(48, dtype=np.float32).reshape(6, 8)
    interpret_loops(function, [array, 3], externs)
    return array.tolist()


CASES = {
    "predicate, local buffer and thread": (
        """
for c in pl.loop.thread("core", 0, 6):
    with pl.loop.block("update", kept=1):
        pl.loop.where(c < n)
        t = pl.loop.local([4, 8], pl.FP32, pl.Mem.Vec, dim_align=[[0, 16, 8]])
        pl.loop.reads(A[c, 0:8])
        t[c, 1] = A[c, 0] + 1.0
        A[c, 7] = t[c, 1]
""",
        """
for c in pl.loop.launch("core", 6):
    if c < n:
        t = pl.loop.alloc([4, 8], pl.FP32, pl.Mem.Vec, dim_align=[[0, 16, 8]])
        t[c, 1] = A[c, 0] + 1.0
        A[c, 7] = t[c, 1]
""",
    ),
    "windows inside windows": (
        """
for i in pl.loop.serial(0, 2):
    with pl.loop.block("outer"):
        w = pl.loop.match(A[i:i + 3, 2:6])
        with pl.loop.block("inner"):
            v = pl.loop.match(w[1, 0:n], shape=[n])
            v[0] = v[n - 1] + w[2, 3]
""",
        """
for i in pl.loop.serial(0, 2):
    A[i + 1, 2] = A[i + 1, n + 1] + A[i + 2, 5]
""",
    ),
    "an operation on a row of a window": (
        """
with pl.loop.block("whole"):
    w = pl.loop.match(A[2:6, 0:4])
    with pl.loop.op(w[0:2, 0:4]):
        x: pl.Tile[[2, 4], pl.FP32] = w[2:4, 0:4]
        pl.tile.muls(x, 2.0)
""",
        """
with pl.loop.op(A[2:4, 0:4]):
    x: pl.Tile[[2, 4], pl.FP32] = A[4:6, 0:4]
    pl.tile.muls(x, 2.0)
""",
    ),
    "a pointer to rows that lie together": (
        """
with pl.loop.block("opaque"):
    w = pl.loop.match(A[n:n + 2, 0:8])
    pl.loop.extern("fill", pl.loop.address_of(w), dtype=pl.FP32)
""",
        """
w = pl.loop.alias(A, [2, 8], pl.FP32, offset=n * 8)
pl.loop.extern("fill", pl.loop.address_of(w), dtype=pl.FP32)
""",
    ),
    "a pointer to a window that does not": (
        """
with pl.loop.block("opaque"):
    w = pl.loop.match(A[1:3, n:n + 4])
    pl.loop.extern("fill", pl.loop.address_of(w), dtype=pl.FP32)
    pl.loop.extern("fill", pl.loop.address_of(w, offset=9, extent=2), dtype=pl.FP32)
""",
        """
pl.loop.extern("fill", pl.loop.address_of(A, offset=n + 8, extent=12), dtype=pl.FP32)
pl.loop.extern("fill", pl.loop.address_of(A, offset=n + 17, extent=2), dtype=pl.FP32)
""",
    ),
}


def fill(pointer: Any) -> None:
    """Each element behind a pointer, one after the other."""
    for index in range(len(pointer)):
        pointer[index] = pointer[index] * 2 + index


@pytest.mark.parametrize("case", list(CASES))
def test_cases(case: str) -> None:
    before, after = (read(text) for text in CASES[case])
    lowered = lower_blocks(before)
    assert lowered == after, str(lowered)
    verify_loops(lowered)
    assert results(before, {"fill": fill}) == results(lowered, {"fill": fill})
    assert lower_blocks(lowered) is lowered


def test_an_operation_on_a_row() -> None:
    """A tile of one dimension less than its buffer."""
    before = read("""
with pl.loop.block("row"):
    w = pl.loop.match(A[n, 0:8], shape=[8])
    w[0] = 5.0
    with pl.loop.attribute("hot", w, 1):
        w[1] = w[0]
""")
    lowered = lower_blocks(before)
    verify_loops(lowered)
    assert results(before) == results(lowered) and results(lowered)[3][:2] == [5, 5]


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_random_programs_mean_the_same(seed: int, affine: bool) -> None:
    function = draw_loops(seed, affine=affine)
    lowered = lower_blocks(function)
    verify_loops(lowered)
    assert form_of(lowered) is None
    before, after = loop_arguments(function, seed), loop_arguments(function, seed)
    interpret_loops(function, before)
    interpret_loops(lowered, after)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
