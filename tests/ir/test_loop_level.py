"""Statements of the loop level: built, walked, compared."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.ir.buffers import Broadcast, IfThenElse, Ramp, Region
from tilewright.ir.dtypes import BOOL, FP32, INDEX
from tilewright.ir.layout import MemorySpace
from tilewright.ir.loop_builder import LoopBuilder
from tilewright.ir.loop_level import ComputeBlock, Loop, LoopFunction, LoopKind
from tilewright.ir.loop_rewrite import rebuilt
from tilewright.ir.scalar import BinaryKind, Const, Scalar, Select, Value, binary
from tilewright.ir.types import ScalarType


def nest(
    *,
    iv: str = "i",
    constant: float = 1.0,
    kind: LoopKind = LoopKind.SERIAL,
    limit: int = 10,
    align: int = 16,
    stride: int = 1,
    reads_at: int = 0,
    space: MemorySpace | None = None,
) -> LoopFunction:
    """A nest in which each argument says one thing of its own."""
    f = LoopBuilder("main")
    n = Value("n", ScalarType(INDEX))
    a, b = f.buffer("A", (16, n)), f.buffer("B", (16,), space=space)
    with f.loop(iv, 16, kind=kind) as i:
        read = Region(a, (i, reads_at), (1, 4))
        with f.block("update", [read], [f.region(b, (i,))], binary(BinaryKind.LT, i, limit)) as own:
            t = own.alloc("t", (1, 4), dim_align=((0, align, 0),))
            m = own.match("m", read)
            lanes = Ramp(0, stride, 4)
            f.store(t, (0, lanes), f.load(m, 0, lanes) + Broadcast(Const(constant, FP32), 4))
            f.store(b, (i,), IfThenElse(binary(BinaryKind.GT, i, 0), f.load(t, 0, 0), Const(0.0, FP32)))
    return f.build()


def test_names_do_not_count_and_everything_else_does() -> None:
    assert nest() == nest(iv="row") and hash(nest()) == hash(nest(iv="row"))
    others: list[Callable[[], LoopFunction]] = [
        lambda: nest(constant=2.0),
        lambda: nest(kind=LoopKind.PARALLEL),
        lambda: nest(limit=9),
        lambda: nest(align=8),
        lambda: nest(stride=-1),
        lambda: nest(reads_at=1),
        lambda: nest(space=MemorySpace.VEC),
    ]
    for other in others:
        assert other() != nest()


def test_a_symbol_is_known_by_its_name() -> None:
    assert [value.name for value in nest().symbols] == ["n"]


def test_walking_meets_each_statement_once_and_replacing_leaves_the_rest() -> None:
    function = nest()
    assert [type(stmt).__name__ for stmt in function.walk()] == ["Loop", "ComputeBlock", "Store", "Store"]
    loop = function.body[0]
    assert isinstance(loop, Loop) and loop.with_blocks(loop.blocks()) is loop
    block = loop.body[0]
    assert isinstance(block, ComputeBlock)
    moved = block.substitute(lambda value: 3 if value is loop.iv else value)
    assert isinstance(moved, ComputeBlock)
    assert moved.where == Const(True, BOOL) and moved.reads[0].offsets == (3, 0)


def test_both_arms_of_a_branch() -> None:
    f = LoopBuilder()
    a = f.buffer("A", (4,))
    with f.when(binary(BinaryKind.LT, f.scalar("n"), 3)):
        f.store(a, (0,), 1.0)
    with f.otherwise():
        f.store(a, (1,), 2)
    assert [len(block) for block in f.build().body[0].blocks()] == [1, 1]


def test_a_choice_that_evaluates_both_is_another_one() -> None:
    condition, one, two = binary(BinaryKind.LT, Value("n", ScalarType(INDEX)), 3), Const(1.0, FP32), Const(2.0, FP32)
    assert IfThenElse(condition, one, two) == IfThenElse(condition, one, two)
    assert IfThenElse(condition, one, two) != Select(condition, one, two)


def test_what_is_shared_is_rebuilt_once() -> None:
    tree: Scalar = Value("x", ScalarType(FP32))
    for _ in range(100):  # 2 ** 100 paths
        tree = binary(BinaryKind.ADD, tree, tree)
    assert rebuilt(tree, lambda part: part) is tree
