"""spaces R12, R13, R15, R16: every pair of memories, for every element type, on every target."""

from __future__ import annotations

import pytest
from building import Builder, ops_of
from passes.checking import legalized

from tilewright.analysis.legality import check_spaces
from tilewright.errors import NoRouteError
from tilewright.ir.dtypes import BF16, FP16, FP32, INT8, INT32, DType
from tilewright.ir.function import Program
from tilewright.ir.layout import ROW_MAJOR, MemorySpace
from tilewright.ir.nodes import Let
from tilewright.ir.op import Level
from tilewright.ir.types import TileType
from tilewright.ir.verify import verify
from tilewright.ops.cast import Cast
from tilewright.ops.create import Create
from tilewright.ops.matmul import Matmul
from tilewright.ops.movement import Move
from tilewright.passes.tile.infer_spaces import infer_spaces
from tilewright.passes.tile.legalize_moves import legalize_moves
from tilewright.targets import load_target, target_names

DTYPES = (FP32, FP16, BF16, INT8, INT32)


def moved(src: MemorySpace, dst: MemorySpace, dtype: DType) -> Program:
    b = Builder()
    if src is MemorySpace.DDR:
        b.load("made", b.tensor("a", (32, 32), dtype), space=dst)
    else:
        x = b.let("source", Create((32, 32), dtype, src, level=Level.TILE))
        b.let("made", Move(x, dst))
    return b.program()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", target_names())
def test_every_pair_of_memories(name: str, dtype: DType) -> None:
    target = load_target(name)
    for src in target.spaces:
        for dst in target.spaces:
            if dst is MemorySpace.DDR:
                continue
            route = target.route(src, dst, dtype)
            program = moved(src, dst, dtype)
            if route is None:
                with pytest.raises(NoRouteError) as caught:
                    legalize_moves(program, target)
                text = str(caught.value)
                assert src.value in text and dst.value in text and "->" in text and "made" in text
                assert "kernel.py" in text
                continue
            out = legalize_moves(program, target)
            verify(out)
            check_spaces(out, target)
            hops = [stmt.target.type for stmt in out.main.walk() if isinstance(stmt, Let)]
            assert route.hops or len(hops) <= 2
            for kind in hops:
                assert not isinstance(kind, TileType) or kind.view.layout is None


def product_of_products(dtype: DType, cast: bool) -> Program:
    b = Builder()
    x, y, z = (b.load(n, b.tensor(t, (64, 64), dtype)) for n, t in (("x", "a"), ("y", "b"), ("z", "c")))
    out = b.tensor("out", (64, 64), FP32, out=True)
    ab = b.let("ab", Matmul(x, y))
    if cast:
        ab = b.let("ab16", Cast(ab, dtype))
    return b.program(b.store(b.let("abc", Matmul(ab, z)), out))


@pytest.mark.parametrize("dtype", (FP16, BF16), ids=str)
def test_an_accumulator_reaches_left_through_mat(dtype: DType) -> None:
    out = legalized(product_of_products(dtype, True), "ascend910b")
    lines = ops_of(out)
    at = lines.index("ab_mat = tile.move(ab) [Mat]")
    assert lines[at + 1] == "ab16 = tile.move(ab_mat) [Left]"
    assert not any("cast" in line or "tensor.create" in line for line in lines)


def test_an_f32_accumulator_goes_through_ddr_on_the_910b() -> None:
    lines = ops_of(legalized(product_of_products(FP32, False), "ascend910b"))
    chain = [line.split(" = ")[1] for line in lines if line.startswith("ab_")]
    assert chain == [
        "tensor.create()", "tile.store(ab, ab_ddr_space)", "tile.load(ab_ddr) [Mat]", "tile.move(ab_mat) [Left]",
    ]  # fmt: skip


def test_the_950_keeps_f32_on_chip() -> None:
    lines = ops_of(legalized(product_of_products(FP32, False), "ascend950"))
    assert "ab_mat = tile.move(ab) [Mat]" in lines and not any("create" in line for line in lines)


def test_only_the_last_hop_carries_the_layout_that_is_asked_for() -> None:
    """spaces R13."""
    b = Builder()
    source = b.let("acc", Create((64, 64), FP32, MemorySpace.ACC, level=Level.TILE))
    b.let("left", Move(source, MemorySpace.LEFT, blayout=ROW_MAJOR.blayout, target_type=BF16))
    out = legalize_moves(b.program(), load_target("ascend910b"))
    moves = [stmt for stmt in out.main.walk() if isinstance(stmt, Let) and isinstance(stmt.value, Move)]
    assert [stmt.value.blayout for stmt in moves] == [None, ROW_MAJOR.blayout]  # type: ignore[union-attr]
    first, last = (stmt.target.type for stmt in moves)
    assert isinstance(first, TileType) and isinstance(last, TileType)
    assert first.view.layout is None and last.view.layout is not None and last.dtype is first.dtype is BF16


def test_moves_that_start_alike_share_their_first_hop() -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (64, 64), BF16))
    out = b.tensor("out", (64, 64), FP32, out=True)
    s = b.let("s", Cast(b.let("xx", Matmul(x, x)), BF16))
    lines = ops_of(legalized(b.program(b.store(b.let("ss", Matmul(s, s)), out)), "ascend910b"))
    assert sum("[Mat]" in line and "move" in line for line in lines) == 1


def test_a_move_that_changes_nothing_disappears() -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (64, 64)), space=MemorySpace.VEC)
    out = b.tensor("out", (64, 64), out=True)
    program = b.program(b.store(b.let("y", Move(x, MemorySpace.VEC)), out))
    assert not any("move" in line for line in ops_of(legalized(program, "ascend910b")))


def test_no_route_names_the_user_s_values_and_line() -> None:
    """spaces R15: a tile that a user keeps in Mat, made by a product, read by a vector operation on the 950."""
    b = Builder()
    x = b.let("weights", Create((64, 64), BF16, MemorySpace.MAT, level=Level.TILE))
    b.let("wide", Cast(x, FP32))
    program = infer_spaces(b.program(), load_target("ascend950"))
    with pytest.raises(NoRouteError) as caught:
        legalize_moves(program, load_target("ascend950"))
    text = str(caught.value)
    for part in ("weights", "wide = tile.cast", "Mat", "Vec", "kernel.py:2", "DDR -> "):
        assert part in text
