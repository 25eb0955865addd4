"""Buffers are as large as what is touched of them: known answers, and what must stay whole."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tilewright.analysis.buffer_regions import plan_buffers
from tilewright.execute.loops import interpret_loops
from tilewright.ir.buffers import AddressOf, Extern, IfThenElse, Likely, Ramp, Region, buffer_type
from tilewright.ir.dtypes import FP32, INDEX
from tilewright.ir.loop_builder import LoopBuilder
from tilewright.ir.loop_level import Allocate, ComputeBlock, LoopFunction
from tilewright.ir.op import Level
from tilewright.ir.scalar import BinaryKind, Const, Scalar, Select, UnaryKind, Value, binary, logic, unary
from tilewright.ir.types import TileType
from tilewright.ir.verify_loops import verify_loops
from tilewright.ops.elementwise import Add
from tilewright.passes.loop.compact_buffers import compact_buffers
from tilewright.passes.loop.lower_blocks import lower_blocks
from tilewright.passes.loop.simplify import simplify

LT, EQ = BinaryKind.LT, BinaryKind.EQ
ONE = Const(1.0, FP32)


def shapes(function: LoopFunction) -> dict[str, tuple[Scalar, ...]]:
    """The shape of each allocated buffer."""
    allocs = [stmt for stmt in function.walk() if isinstance(stmt, Allocate)]
    allocs += [alloc for stmt in function.walk() if isinstance(stmt, ComputeBlock) for alloc in stmt.allocs]
    return {alloc.buffer.name: buffer_type(alloc.buffer).shape for alloc in allocs}


def touching(
    extents: Sequence[int],
    index: Callable[[Value, Value], Scalar | tuple[Scalar, ...]],
    where: Callable[[Value, Value], Scalar] | None = None,
    shape: tuple[int, ...] = (16,),
) -> LoopFunction:
    """A function that allocates B and stores to it once in a nest of loops, under `where`."""
    f = LoopBuilder()
    b = f.alloc("B", shape)

    with f.loop("i", extents[0]) as i, f.loop("j", *extents[1:] or [1]) as j:
        at = index(i, j)
        indices = at if isinstance(at, tuple) else (at,)
        if where is None:
            f.store(b, indices, 1.0)
        else:
            with f.when(where(i, j)):
                f.store(b, indices, 1.0)
    return f.build()


def less(left: Scalar, right: Scalar) -> Scalar:
    return binary(LT, left, right)


KNOWN = {
    "i - 1, i < 10": (touching([10], lambda i, _: i - 1), (9,)),
    "i + 5, i < 15": (touching([15], lambda i, _: i + 5), (11,)),
    "i + j < 8": (
        touching([16, 16], lambda i, j: (i, j), lambda i, j: less(i + j, 8), (16, 16)),
        (8, 8),
    ),
    "j < i": (touching([8, 8], lambda i, j: j, lambda i, j: less(j, i)), (7,)),
    "i < 2 or i < 6": (
        touching([16], lambda i, _: i, lambda i, _: logic(BinaryKind.OR, less(i, 2), less(i, 6))),
        (6,),
    ),
    "i * i": (touching([5], lambda i, _: i * i, shape=(64,)), (17,)),
    "i * (4 - i)": (touching([5], lambda i, _: i * (4 - i), shape=(64,)), (5,)),
    "i % 4 == 1": (touching([16], lambda i, _: i % 4, lambda i, _: binary(EQ, i % 4, 1)), (1,)),
    "j * 4 + k < 10": (
        touching([4, 4], lambda j, k: j * 4 + k, lambda j, k: less(j * 4 + k, 10)),
        (10,),
    ),
    "likely": (touching([16], lambda i, _: i, lambda i, _: Likely(less(i, 3))), (3,)),
    "a number is a condition": (touching([16], lambda i, _: i, lambda i, _: i // 12), (4,)),
    "not (i < 3 or 9 < i)": (
        touching([16], lambda i, _: i, lambda i, _: unary(UnaryKind.NOT, logic(BinaryKind.OR, less(i, 3), less(9, i)))),
        (7,),
    ),
    "diagonal": (touching([60], lambda x, _: (x, x), shape=(256, 256)), (60, 60)),
    "an unused dimension": (touching([16], lambda i, _: (i, 0), shape=(16, 16)), (16, 1)),
    "outside everywhere": (touching([4], lambda i, _: i + 20), (16,)),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_answers(name: str) -> None:
    function, expected = KNOWN[name]
    small = compact_buffers(function)
    assert shapes(small) == {"B": expected}
    assert compact_buffers(small) == small


def test_steps_and_lanes() -> None:
    f = LoopBuilder()
    b, c, d = f.alloc("B", (16,)), f.alloc("C", (16,)), f.alloc("D", (16,))
    with f.loop("i", 0, 16, 4) as i:
        f.store(b, (i,), 1.0)
    f.store(c, (Ramp(1, 2, 4),), 1.0)
    f.store(d, (Ramp(9, -3, 3),), 1.0)
    assert shapes(compact_buffers(f.build())) == {"B": (13,), "C": (7,), "D": (7,)}


def test_a_fixed_iterator_is_in_the_minimum_only() -> None:
    f = LoopBuilder()
    out = f.buffer("out", (4, 8))
    with f.loop("i", 4) as i:
        b = f.alloc("B", (64,))
        with f.loop("j", 8) as j:
            f.store(b, (i * 8 + j,), 2.0)
            f.store(out, (i, j), f.load(b, i * 8 + j))
    function = f.build()
    small = compact_buffers(function)
    assert shapes(small) == {"B": (8,)}
    assert "B[j] = " in str(small)


def test_two_minima_of_a_fixed_iterator() -> None:
    f = LoopBuilder()
    with f.loop("i", 8) as i:
        b = f.alloc("B", (16,))
        f.store(b, (i,), 1.0)
        f.store(b, (i * 2,), 1.0)
    with f.loop("h", 28) as h:
        c = f.alloc("C", (256,))
        first = binary(BinaryKind.MAX, h * 8 - 1, 0)
        with f.loop("k", h * 8 + 8 - first) as k:
            f.store(c, (first + k,), 1.0)
    small = compact_buffers(f.build())
    assert shapes(small) == {"B": (8,), "C": (9,)}
    assert compact_buffers(small) == small


def test_a_select_is_no_predicate_and_if_then_else_is() -> None:
    f = LoopBuilder()
    out = f.buffer("out", (16,))
    b, c = f.alloc("B", (16,)), f.alloc("C", (16,))
    with f.loop("i", 16) as i:
        f.store(out, (i,), Select(less(i, 4), f.load(b, i), ONE))
        f.store(out, (i,), IfThenElse(less(i, 4), f.load(c, i), ONE))
    assert shapes(compact_buffers(f.build())) == {"B": (16,), "C": (4,)}


def test_the_other_arm_is_where_the_condition_does_not_hold() -> None:
    f = LoopBuilder()
    b, c = f.alloc("B", (16,)), f.alloc("C", (16,))
    out = f.buffer("out", (16,))
    with f.loop("i", 16) as i:
        f.store(c, (i,), 1.0)
        with f.when(less(i, 4)):
            f.store(out, (i,), 0.0)
        with f.otherwise():
            f.store(b, (i,), f.load(c, i))
            f.store(out, (i,), IfThenElse(less(i, 6), ONE, f.load(b, i)))
    function = f.build()
    plan = {made.buffer.name: made for made in plan_buffers(function)}
    assert (plan["B"].shape, plan["B"].minima) == ((12,), (4,))
    assert shapes(compact_buffers(function)) == {"B": (12,), "C": (16,)}
    g = LoopBuilder()
    b, out = g.alloc("B", (16,)), g.buffer("out", (16,))
    with g.loop("i", 16) as i:
        g.store(out, (i,), IfThenElse(less(i, 6), ONE, g.load(b, i)))
    assert shapes(compact_buffers(g.build())) == {"B": (10,)}


def test_what_is_not_affine_is_dropped_after_negating() -> None:
    f = LoopBuilder()
    flag = f.buffer("flag", (1,), INDEX)
    b = f.alloc("B", (16,))
    with f.loop("i", 16) as i:
        both = logic(BinaryKind.AND, less(i, 4), less(f.load(flag, 0), 1))
        with f.when(unary(UnaryKind.NOT, both)):
            f.store(b, (i,), 1.0)
    assert shapes(compact_buffers(f.build())) == {"B": (16,)}


def test_a_dead_guard_goes_with_its_access() -> None:
    f = LoopBuilder()
    b = f.alloc("B", (16,))
    with f.loop("i", 4) as i:
        f.store(b, (i,), 1.0)
        with f.when(less(10, i)):
            f.store(b, (i + 8,), 1.0)
    small = compact_buffers(f.build())
    assert shapes(small) == {"B": (4,)} and "if" not in str(small)


def test_without_strict_the_box_covers_what_is_outside() -> None:
    function = touching([20], lambda i, _: i - 1)
    assert shapes(compact_buffers(function, strict=False)) == {"B": (20,)}
    assert shapes(compact_buffers(function)) == {"B": (16,)}


def test_a_cell_that_a_while_changes() -> None:
    f = LoopBuilder()
    out = f.buffer("out", (4,), INDEX)
    n, b = f.alloc("n", (1,), INDEX), f.alloc("B", (4,), INDEX)
    f.store(n, (0,), 0)
    with f.repeat(less(f.load(n, 0), 4)):
        f.store(b, (f.load(n, 0),), f.load(n, 0) + 1)
        f.store(n, (0,), f.load(n, 0) + 1)
    with f.loop("i", 4) as i:
        f.store(out, (i,), f.load(b, i))
    small = compact_buffers(f.build())
    assert shapes(small) == {"n": (1,), "B": (4,)}
    array = np.zeros(4, np.int64)
    interpret_loops(small, [array])
    assert array.tolist() == [1, 2, 3, 4]


def test_an_index_cell_changed_between_write_and_read() -> None:
    f = LoopBuilder()
    out = f.buffer("out", (1,))
    cell, b = f.alloc("I", (1,), INDEX), f.alloc("B", (8,))
    f.store(cell, (0,), 3)
    f.store(b, (f.load(cell, 0),), 1.0)
    f.store(cell, (0,), f.load(cell, 0) + 1)
    f.store(out, (0,), f.load(b, f.load(cell, 0) - 1))
    small = compact_buffers(f.build())
    assert shapes(small)["B"] == (8,)
    array = np.zeros(1, np.float32)
    interpret_loops(small, [array])
    assert array.tolist() == [1.0]


def test_what_stays_whole_says_why() -> None:
    f = LoopBuilder()
    a, b, c, _ = (f.alloc(name, (16,)) for name in ("A", "B", "C", "idle"))
    f.evaluate(Extern("fill", (AddressOf(a),), FP32))
    alias = f.alias("view", b, (4, 4))
    f.store(alias, (0, 0), 1.0)
    f.store(b, (0,), 1.0)
    m = f.let("m", Extern("where", (), INDEX))
    f.store(c, (m,), 1.0)
    plan = {made.buffer.name: made for made in plan_buffers(f.build())}
    assert "address" in plan["A"].why and "another name" in plan["B"].why and "nothing" in plan["idle"].why
    assert {name: made.shape for name, made in plan.items()} == dict.fromkeys(("A", "B", "C", "idle"), (16,))


def test_threads_that_see_a_buffer_are_relaxed() -> None:
    f = LoopBuilder()
    with f.loop("o", 4) as o, f.loop("t", 8, thread="t1") as t:
        b = f.alloc("B", (64,))
        half = f.let("half", t // 2)
        f.store(b, (o * 8 + half,), 1.0)
    assert shapes(compact_buffers(f.build())) == {"B": (4,)}


@pytest.mark.parametrize("limit", [1, 9, 15, 16, 40])
def test_both_forms_give_the_same(limit: int) -> None:
    f = LoopBuilder()
    out = f.buffer("out", (16,))
    with f.loop("i", 16) as i, f.block("all", writes=[f.region(out, (i,))], where=less(i * 2, limit)) as parts:
        b = parts.alloc("B", (64,))
        f.store(b, (i * 2 + 3,), 4.0)
        f.store(out, (i,), f.load(b, i * 2 + 3))
    function = f.build()
    assert simplify(lower_blocks(compact_buffers(function))) == compact_buffers(lower_blocks(function))
    results: list[list[float]] = []
    for made in (function, compact_buffers(function)):
        array = np.zeros(16, np.float32)
        interpret_loops(made, [array])
        results.append(array.tolist())
    assert results[0] == results[1] and shapes(compact_buffers(function)) == {"B": (1,)}


def test_what_a_block_declares_follows_the_box() -> None:
    f = LoopBuilder()
    out = f.buffer("out", (16,))
    with f.block("all", writes=[f.whole(out)]) as parts:
        b = parts.alloc("B", (64,))
        with f.loop("i", 16) as i, f.block("put", writes=[f.region(b, (i + 3,))]):
            f.store(b, (i + 3,), 4.0)
        with f.loop("i", 16) as i, f.block("get", reads=[f.whole(b)], writes=[f.region(out, (i,))]):
            f.store(out, (i,), f.load(b, i + 3))
    made = compact_buffers(f.build())
    verify_loops(made)
    blocks = {stmt.name: stmt for stmt in made.walk() if isinstance(stmt, ComputeBlock)}
    small = blocks["all"].allocs[0].buffer
    assert buffer_type(small).shape == (16,)
    assert blocks["put"].writes == (Region(small, (0,), (16,)),) and blocks["get"].reads == (
        Region(small, (0,), (16,)),
    )


def test_a_whole_operation_finds_its_tiles_in_the_box() -> None:
    f = LoopBuilder()
    out = f.buffer("out", (2, 4))
    b = f.alloc("B", (16, 16))
    with f.loop("i", 2) as i, f.loop("j", 4) as j:
        f.store(b, (i + 5, j + 7), 3.0)
    x = Value("x", TileType((2, 4), FP32))
    f.op(Add(x, x, level=Level.TILE), [(x, f.region(b, (5, 7), (2, 4)))], f.whole(out))
    made = compact_buffers(f.build())
    assert shapes(made) == {"B": (2, 4)}
    array = np.zeros((2, 4), np.float32)
    interpret_loops(made, [array])
    assert (array == 6).all()


def test_the_passes_are_there_without_islpy() -> None:
    """Its import is most of a short command, and few programs need a set."""
    script = "import sys, tilewright.compiler; sys.exit('islpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
