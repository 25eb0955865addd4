"""Loops of tile operations joined and put into vectors: what the pages show, what may be joined, the same numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from properties.loop_programs import draw_loops, loop_arguments

from tilewright.execute.loops import interpret_loops
from tilewright.frontend import parse_loops
from tilewright.ir.loop_builder import LoopBuilder
from tilewright.ir.loop_level import Loop, LoopFunction, LoopKind
from tilewright.ir.nodes import walk
from tilewright.ir.verify_loops import verify_loops
from tilewright.passes.loop.flatten_loops import flatten_loops
from tilewright.passes.loop.fuse_loops import fuse_loops
from tilewright.passes.loop.vectorize import Vectors, vectorize

PAGES = Path(__file__).parents[2] / "docs" / "passes"
PLAIN, MASKED = Vectors(32, False), Vectors(64, True)
HEAD = "import tilewright.language as pl\n\n@pl.loop.function\n"


def read(text: str) -> LoopFunction:
    return parse_loops(HEAD + text)


def loops_of(function: LoopFunction) -> list[Loop]:
    return [stmt for stmt in walk(function.body) if isinstance(stmt, Loop)]


def in_vectors(function: LoopFunction) -> LoopFunction:
    return vectorize(function, PLAIN)


def in_one(function: LoopFunction) -> LoopFunction:
    return flatten_loops(function, function.params)[0]


@pytest.mark.parametrize(
    ("name", "change"), [("fuse_loops", fuse_loops), ("vectorize", in_vectors), ("flatten_loops", in_one)]
)
def test_the_page_shows_what_the_pass_does(name: str, change: Callable[[LoopFunction], LoopFunction]) -> None:
    before, after = re.findall(r"^```python\n(.*?)^```", (PAGES / f"{name}.md").read_text(), re.S | re.M)
    found = change(parse_loops("import tilewright.language as pl\n\n" + before))
    assert str(found).split("\n", 2)[2].strip() == after.strip()


PAIR = """\
def main(A: pl.loop.Buffer[[20], pl.INT32], B: pl.loop.Buffer[[20], pl.INT32]):
    for i in pl.loop.serial(0, 16):
        A[{first}] = B[i] + 1
    for j in pl.loop.serial({start}, 16):
        B[{second}] = A[{third}] * 2
"""


@pytest.mark.parametrize(
    ("first", "second", "third", "start", "joined"),
    [
        ("i", "j", "j", 0, True),
        ("i", "j", "j + 1", 0, False),  # the next trip writes it
        ("i + 1", "j", "j", 0, True),  # an earlier trip did
        ("i", "j + 1", "j", 0, False),  # the next trip reads what this one would overwrite
        ("i", "j", "j", 1, False),  # another range
        ("i", "j", "0", 0, False),  # one element: no distance
        ("i", "j", "19", 0, False),
        ("19 - i", "j", "19 - j", 0, True),
        ("19 - i", "j", "j", 0, False),
    ],
)
def test_loops_are_joined_where_no_trip_comes_too_late(
    first: str, second: str, third: str, start: int, joined: bool
) -> None:
    before = read(PAIR.format(first=first, second=second, third=third, start=start))
    after = fuse_loops(before)
    assert (len(loops_of(after)) == 1) is joined
    results: list[list[np.ndarray]] = []
    for function in (before, after):
        arrays = [np.arange(20, dtype=np.int32), np.arange(20, dtype=np.int32) * 3]
        interpret_loops(function, arrays)
        results.append(arrays)
    assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))


def test_parameters_that_may_overlap_keep_loops_apart() -> None:
    before = read(PAIR.format(first="i", second="j", third="j", start=0))
    a, b = before.params
    assert len(loops_of(fuse_loops(before, {a: "one", b: "one"}))) == 2
    assert len(loops_of(fuse_loops(before, {a: "one", b: "two"}))) == 1


def test_what_is_more_than_loops_over_stores_stays_in_order() -> None:
    text = """\
def main(A: pl.loop.Buffer[[16], pl.INT32], n: pl.Scalar[pl.INDEX]):
    for i in pl.loop.serial(0, 16):
        A[i] = 1
    if n > 3:
        A[0] = 7
    for j in pl.loop.serial(0, 16):
        A[j] = A[j] + 1
"""
    before = read(text)
    assert fuse_loops(before) == before


@pytest.mark.parametrize("structured", [True, False])
def test_random_programs_keep_their_meaning(structured: bool) -> None:
    for seed in range(60):
        before = draw_loops(seed, structured=structured, affine=True)
        expected = loop_arguments(before, seed)
        interpret_loops(before, expected)
        for after in (fuse_loops(before), vectorize(before, PLAIN), vectorize(fuse_loops(before), MASKED)):
            verify_loops(after)
            found = loop_arguments(before, seed)
            interpret_loops(after, found)
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_array_equal(a, b)


SUM = """\
def main(A: pl.loop.Buffer[[{n}], pl.INT32], B: pl.loop.Buffer[[1], pl.INT32]):
    for j in pl.loop.serial(0, {n}):
        B[0] = B[0] + A[j]
"""


@pytest.mark.parametrize("vectors", [PLAIN, MASKED], ids=["plain", "masked"])
@pytest.mark.parametrize("n", [1, 3, 15, 16, 17, 63, 64, 65, 200])
def test_a_sum_in_vectors(n: int, vectors: Vectors) -> None:
    before = read(SUM.format(n=n))
    after = vectorize(before, vectors)
    lanes = [loop for loop in loops_of(after) if loop.kind is LoopKind.VECTORIZED]
    assert bool(lanes) is (n > 1)
    given, total = np.arange(n, dtype=np.int32), np.array([5], np.int32)
    interpret_loops(after, [given, total])
    assert total[0] == 5 + given.sum()


ORDER = """\
def main(A: pl.loop.Buffer[[17], pl.INT32], B: pl.loop.Buffer[[1], pl.INT32]):
    for j in pl.loop.serial(0, 16):
        {body}
"""


@pytest.mark.parametrize("body", ["A[j + 1] = A[j] + 1", "B[0] = A[j]", "A[0] = A[j] + 1", "B[0] = B[0] - A[j]"])
def test_trips_that_need_each_other_stay_in_order(body: str) -> None:
    before = read(ORDER.format(body=body))
    assert vectorize(before, PLAIN) == before


def test_another_name_of_the_same_memory_keeps_loops_apart() -> None:
    f = LoopBuilder()
    a, out = f.buffer("A", (8,)), f.buffer("out", (8,))
    name = f.alias("other", a, (8,))
    with f.loop("i", 8) as i:
        f.store(a, (i,), 1.0)
    with f.loop("j", 8) as j:
        f.store(out, (j,), f.load(name, 7 - j))
    before = f.build()
    assert fuse_loops(before) == before


@pytest.mark.parametrize("line", ["x[i, 0] * 2.0", "x[i, j] * m[0, j]", "x[63 - i, j]"])
def test_what_is_read_otherwise_keeps_two_loops(line: str) -> None:
    text = f"""\
def main(
    x: pl.loop.Buffer[[64, 12], pl.FP32], m: pl.loop.Buffer[[1, 12], pl.FP32], y: pl.loop.Buffer[[64, 12], pl.FP32]
):
    for i in pl.loop.serial(0, 64):
        for j in pl.loop.serial(0, 12):
            y[i, j] = {line}
"""
    before = read(text)
    assert flatten_loops(before, before.params) == (before, {})


def test_rows_with_gaps_keep_two_loops() -> None:
    text = """\
def main(x: pl.loop.Buffer[[64, 12], pl.FP32], y: pl.loop.Buffer[[64, 12], pl.FP32]):
    for i in pl.loop.serial(0, 64):
        for j in pl.loop.serial(0, 12):
            y[i, j] = x[i, j]
"""
    before = read(text)
    assert flatten_loops(before, before.params[:1]) == (before, {})
    assert len(loops_of(flatten_loops(before, before.params)[0])) == 1
