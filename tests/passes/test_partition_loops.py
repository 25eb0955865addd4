"""Loops divided at their predicates: known parts, symbols, and random programs in which no predicate is left."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from properties.loop_programs import draw_loops, loop_arguments

from tilewright.analysis.loop_cuts import comparisons
from tilewright.execute.loops import interpret_loops
from tilewright.frontend import parse_loops
from tilewright.ir.loop_level import Loop, LoopFunction
from tilewright.ir.scalar import values_in
from tilewright.ir.verify_loops import verify_loops
from tilewright.passes.loop.partition_loops import partition_loops

HEAD = """\
import tilewright.language as pl

@pl.loop.function
def main(A: pl.loop.Buffer[[32], pl.FP32], n: pl.Scalar[pl.INDEX]):
"""


def read(body: str) -> LoopFunction:
    return parse_loops(HEAD + "\n".join("    " + line for line in body.strip("\n").splitlines()) + "\n")


CASES = {
    "a constant boundary": (
        """
for i in pl.loop.serial(0, 8):
    if i < 5:
        A[i] = 1.0
    else:
        A[i] = 2.0
""",
        """
for i in pl.loop.serial(0, 5):
    A[i] = 1.0
for i in pl.loop.serial(5, 8):
    A[i] = 2.0
""",
    ),
    "a step, and a slope downwards": (
        """
for i in pl.loop.serial(1, 20, 3):
    if 21 - i * 2 >= 0:
        A[i] = 1.0
""",
        """
for i in pl.loop.serial(1, 13, 3):
    A[i] = 1.0
""",
    ),
    "one trip that is special": (
        """
for i in pl.loop.parallel(0, 8):
    A[i] = pl.loop.if_then_else(i == 3, 5.0, 1.0)
""",
        """
for i in pl.loop.parallel(0, 3):
    A[i] = 1.0
for i in pl.loop.parallel(3, 4):
    A[i] = 5.0
for i in pl.loop.parallel(4, 8):
    A[i] = 1.0
""",
    ),
    "an equality that never holds": (
        """
for i in pl.loop.serial(0, 8):
    if i * 2 == 5:
        A[i] = 5.0
    A[i] = A[i] + 1.0
""",
        """
for i in pl.loop.serial(0, 3):
    A[i] = A[i] + 1.0
for i in pl.loop.serial(3, 8):
    A[i] = A[i] + 1.0
""",
    ),
    "a symbol": (
        """
for i in pl.loop.serial(0, 8):
    if i < n:
        A[i] = 1.0
""",
        """
for i in pl.loop.serial(0, pl.max(0, pl.min(n, 8))):
    A[i] = 1.0
""",
    ),
    "a triangle": (
        """
for i in pl.loop.serial(0, 5):
    for j in pl.loop.serial(0, 4):
        if j < i:
            A[j] = A[j] + 1.0
""",
        """
for i in pl.loop.serial(1, 4):
    for j in pl.loop.serial(0, i):
        A[j] = A[j] + 1.0
for i in pl.loop.serial(4, 5):
    for j in pl.loop.serial(0, 4):
        A[j] = A[j] + 1.0
""",
    ),
    "a remainder, trip by trip": (
        """
for i in pl.loop.serial(0, 8):
    if i // 4 > 0:
        A[i] = 1.0
""",
        """
for i in pl.loop.serial(4, 8):
    A[i] = 1.0
""",
    ),
    "a block": (
        """
for i in pl.loop.serial(0, 8):
    with pl.loop.block("b"):
        pl.loop.where(i >= 6 and n > 1)
        A[i] = 1.0
""",
        """
for i in pl.loop.serial(6, 8):
    with pl.loop.block("b"):
        pl.loop.where(n > 1)
        A[i] = 1.0
""",
    ),
    "what is left alone": (
        """
for c in pl.loop.thread("core", 0, 4):
    if c < 2:
        A[c] = 1.0
for i in pl.loop.serial(7, -1, -1):
    if i < 2:
        A[i] = 1.0
for i in pl.loop.serial(0, 8):
    if pl.cast(A[i], pl.INDEX) < i:
        A[i] = 1.0
""",
        None,
    ),
}


@pytest.mark.parametrize("case", list(CASES))
def test_cases(case: str) -> None:
    text, expected = CASES[case]
    before = read(text)
    after = partition_loops(before)
    if expected is None:
        assert after is before
        return
    assert after == read(expected), str(after)
    assert partition_loops(after) is after
    for n in (-3, 0, 3, 8, 11):
        arrays = [np.zeros(32, np.float32), np.zeros(32, np.float32)]
        interpret_loops(before, [arrays[0], n])
        interpret_loops(after, [arrays[1], n])
        np.testing.assert_array_equal(arrays[0], arrays[1])


TILES = """\
import tilewright.language as pl

@pl.loop.function
def main(A: pl.loop.Buffer[[128, 128], pl.FP32], B: pl.loop.Buffer[[128, 128], pl.FP32]):
    for i in pl.loop.serial(0, 5):
        for j in pl.loop.serial(0, 5):
            t = pl.loop.alloc([26, 26], pl.FP32)
            for x in pl.loop.serial(0, 26):
                for y in pl.loop.serial(0, 26):
                    if i * 26 + x < 128 and j * 26 + y < 128:
                        t[x, y] = A[i * 26 + x, j * 26 + y]
                        B[i * 26 + x, j * 26 + y] = t[x, y]
"""


def test_a_padded_tiling_has_four_kinds_of_tiles() -> None:
    after = partition_loops(parse_loops(TILES))
    verify_loops(after)
    assert list(comparisons(after.body)) == []
    stops = [stmt.stop for stmt in after.walk() if isinstance(stmt, Loop) and stmt.iv.name in "xy"]
    assert stops == [26, 26, 26, 24, 24, 26, 24, 24]
    source, out = np.random.default_rng(0).random((128, 128), np.float32), np.zeros((128, 128), np.float32)
    interpret_loops(after, [source, out])
    np.testing.assert_array_equal(out, source)


def test_symbols_over_two_loops() -> None:
    before = read("""
for i in pl.loop.serial(0, 4):
    for x in pl.loop.serial(0, 8):
        if i * 8 + x < n:
            A[i * 8 + x] = 1.0
""")
    after = partition_loops(before)
    verify_loops(after)
    assert list(comparisons(after.body)) == [] and partition_loops(after) is after
    for n in (0, 1, 7, 8, 9, 20, 31, 32, 40):
        out = np.zeros(32, np.float32)
        interpret_loops(after, [out, n])
        np.testing.assert_array_equal(out, np.arange(32) < n)


def test_growth_is_bounded() -> None:
    before = parse_loops(TILES)
    after = partition_loops(before, largest=12)
    assert sum(1 for _ in after.walk()) <= 12


@pytest.mark.parametrize(("structured", "affine"), list(product([True, False], [True, False])))
@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed: int, structured: bool, affine: bool) -> None:
    function = draw_loops(seed, structured=structured, affine=affine)
    after = partition_loops(function, largest=100_000)
    verify_loops(after)
    if affine:
        assert partition_loops(after, largest=100_000) is after
        loops = {stmt.iv for stmt in after.walk() if isinstance(stmt, Loop)}
        left = [atom for atom in comparisons(after.body) if loops & set(values_in(atom))]
        assert not left, f"{left}\n{after}"
    one, other = loop_arguments(function, seed), loop_arguments(function, seed)
    interpret_loops(function, one)
    interpret_loops(after, other)
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
