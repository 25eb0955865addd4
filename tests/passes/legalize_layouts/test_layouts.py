"""spaces R20, matmul R8, R10, R13, R15: boxes, padding of K, column vectors, compact tiles."""

from __future__ import annotations

import numpy as np
import pytest
from building import Builder, ops_of
from passes.checking import count, emulated, legalized
from support import TAILS

from tilewright.errors import UnsupportedError
from tilewright.execute.interpreter import interpret
from tilewright.ir.dtypes import BF16, FP16, FP32, INT8, INT32, DType
from tilewright.ir.function import Program
from tilewright.ir.layout import ZN, Compact, MemorySpace, Pad
from tilewright.ir.nodes import Let
from tilewright.ir.op import Level
from tilewright.ir.scalar import Value, constant
from tilewright.ir.types import TileType
from tilewright.ops.broadcast import RowExpandSub
from tilewright.ops.cast import Cast
from tilewright.ops.create import Create, Full
from tilewright.ops.elementwise import Add, Exp, Mul
from tilewright.ops.matmul import Matmul, MatmulAcc
from tilewright.ops.movement import Load
from tilewright.ops.reduce import ColMax, RowMax, RowSum
from tilewright.ops.select import Cmp, Sel
from tilewright.ops.shape import Reshape, Slice, Transpose, TransposeView
from tilewright.passes.tile.infer_spaces import infer_spaces
from tilewright.passes.tile.legalize_layouts import legalize_layouts
from tilewright.passes.tile.legalize_moves import legalize_moves
from tilewright.targets import load_target

ASCEND = ("ascend910b", "ascend950")
ALL = (*ASCEND, "x86_amx", "generic")


def types(program: Program) -> dict[str, TileType]:
    values = (v for stmt in program.main.walk() for v in (*stmt.block_args(), *stmt.defs()))
    return {value.name: value.type for value in values if isinstance(value.type, TileType)}


def product(m: int, k: int, n: int, dtype: DType) -> Program:
    b = Builder()
    x, y = b.load("x", b.tensor("a", (m, k), dtype)), b.load("y", b.tensor("b", (k, n), dtype))
    r = b.let("r", Matmul(x, y))
    return b.program(b.store(r, b.tensor("out", (m, n), r.dtype, out=True)))


@pytest.mark.parametrize("target", ALL)
@pytest.mark.parametrize("size", TAILS)
@pytest.mark.parametrize("dtype", (FP16, INT8), ids=str)
def test_products_of_any_size(target: str, size: int, dtype: DType) -> None:
    legalized(product(size, 33, 17, dtype), target)
    legalized(product(17, size, 33, dtype), target)
    legalized(product(33, 17, size, dtype), target)


@pytest.mark.parametrize(
    ("dtype", "m", "k", "n"), [(FP16, 16, 16, 16), (BF16, 16, 16, 16), (FP32, 16, 16, 16), (INT8, 32, 32, 32)], ids=str
)
def test_extents_are_rounded_to_what_the_whole_route_needs(dtype: DType, m: int, k: int, n: int) -> None:
    """matmul R3, on the 910B: f16, bf16, f32 16/16/16; int8 16/32/32, and 32 rows of an int32 accumulator."""
    found = types(legalized(product(3, 5, 7, dtype), "ascend910b"))
    assert found["r"].shape == (m, n) and found["x_left"].shape == (m, k) and found["y_right"].shape == (k, n)
    assert found["r"].valid == (3, 7) and found["x_left"].valid == (3, 5)
    if dtype is INT8:
        assert types(legalized(product(3, 5, 7, dtype), "ascend950"))["r"].shape == (16, 32)


@pytest.mark.parametrize("target", ASCEND)
def test_a_partial_k_is_padded_with_zeros_on_both_operands(target: str) -> None:
    """matmul R10: K = 40 in boxes of 16, with NaN around what is valid."""
    program = legalized(product(64, 40, 64, FP16), target)
    found = types(program)
    for name in ("x", "y", "x_left", "y_right"):
        assert found[name].view.pad is Pad.ZERO
    seen: dict[str, np.ndarray] = {}

    def observe(value: Value, data: object) -> None:
        if value.name in ("x", "y"):
            seen[value.name] = getattr(data, "array").copy()  # noqa: B009

    interpret(program, [np.ones((64, 40), np.float16), np.ones((40, 64), np.float16), np.zeros((64, 64), np.float32)],
              observe=observe)  # fmt: skip
    assert not seen["x"][:, 40:].any() and not seen["y"][40:, :].any()


def test_a_whole_k_is_not_padded() -> None:
    found = types(legalized(product(17, 32, 17, FP16), "ascend910b"))
    assert found["x"].view.pad is found["y"].view.pad is Pad.NULL


@pytest.mark.parametrize("target", ASCEND)
def test_a_computed_operand_is_padded_on_its_way_to_mat(target: str) -> None:
    b = Builder()
    x, y = b.load("x", b.tensor("a", (17, 24), BF16)), b.load("y", b.tensor("b", (24, 40), BF16))
    z = b.load("z", b.tensor("c", (40, 8), BF16))
    h = b.let("h", Cast(b.let("xy", Matmul(x, y)), BF16))
    out = b.tensor("out", (17, 8), out=True)
    found = types(legalized(b.program(b.store(b.let("r", Matmul(h, z)), out)), target))
    assert found["xy_mat"].view.pad is Pad.ZERO and found["xy"].view.pad is Pad.NULL


@pytest.mark.parametrize("target", ASCEND)
@pytest.mark.parametrize("rows", TAILS)
def test_column_vectors_are_turned_around_row_operations(target: str, rows: int) -> None:
    """spaces R20: a vector chain stays in rows until something wants the column."""
    b = Builder()
    x = b.load("x", b.tensor("a", (rows, 40)))
    out, other = b.tensor("out", (rows, 40), out=True), b.tensor("other", (rows, 1), out=True)
    top = b.let("top", RowMax(x))
    twice = b.let("twice", Add(top, top))
    thrice = b.let("thrice", Mul(twice, constant(3.0, FP32)))
    kept = b.store(thrice, other)
    program = b.program(b.store(b.let("r", RowExpandSub(x, thrice)), out), kept)
    placed = legalized(program, target)
    assert count(placed, Reshape) == 2  # top to a row, thrice back to a column
    assert types(placed)["thrice_row"].shape[0] == 1 and types(placed)["thrice"].shape[1] == 1


def test_machines_without_rows_of_bytes_turn_nothing() -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (17, 40)))
    top = b.let("top", RowMax(x))
    program = b.program(b.store(b.let("r", Add(top, top)), b.tensor("out", (17, 1), out=True)))
    placed = infer_spaces(program, load_target("generic"))
    assert legalize_layouts(placed, load_target("generic")) is placed


@pytest.mark.parametrize("target", ASCEND)
def test_running_maxima_carried_by_a_loop(target: str) -> None:
    b = Builder()
    a, out = b.tensor("a", (20, 192)), b.tensor("out", (20, 1), out=True)
    first = b.let("low", Full((20, 1), FP32, constant(-9.0, FP32), level=Level.TILE))

    def body(k: Value, top: Value) -> tuple[Value, ...]:
        from tilewright.ops.elementwise import Maximum

        x = b.load("x", a, (20, 64), offsets=(0, k * 64))
        m = b.let("m", RowMax(x))
        return (b.let("next", Maximum(top, m)),)

    (top,) = b.loop(3, (first,), body)
    legalized(b.program(b.store(top, out)), target)


@pytest.mark.parametrize("target", ASCEND)
def test_masks_of_column_vectors(target: str) -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (40, 24)))
    m, s = b.let("m", RowMax(x)), b.let("s", RowSum(x))
    mask = b.let("mask", Cmp(m, s, 2))
    program = b.program(b.store(b.let("r", Sel(mask, m, s)), b.tensor("out", (40, 1), out=True)))
    legalized(program, target)


@pytest.mark.parametrize("target", ASCEND)
@pytest.mark.parametrize("cols", TAILS)
def test_masks_need_no_wider_tiles(target: str, cols: int) -> None:
    """Masks are packed: comparing rounds no extent up to whole bytes of bits."""
    b = Builder()
    x = b.load("x", b.tensor("a", (5, cols)))
    mask = b.let("mask", Cmp(x, constant(0.0, FP32), 4))
    program = b.program(b.store(b.let("r", Sel(mask, x, constant(7.0, FP32))), b.tensor("out", (5, cols), out=True)))
    found = types(legalized(program, target))
    assert found["mask"].shape == found["x"].shape == (5, -(-cols // 8) * 8)


def test_a_vector_and_a_column_of_a_matrix_do_not_mix() -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (17, 40)))
    top = b.let("top", RowMax(x))
    b.let("r", RowExpandSub(top, top))
    target = load_target("ascend910b")
    with pytest.raises(UnsupportedError, match="on a column vector"):
        legalize_layouts(infer_spaces(b.program(), target), target)


def test_reducing_a_column_vector_is_refused_with_a_way_out() -> None:
    b = Builder()
    b.let("r", ColMax(b.let("top", RowMax(b.load("x", b.tensor("a", (17, 40)))))))
    target = load_target("ascend910b")
    with pytest.raises(UnsupportedError, match="on a column vector") as caught:
        legalize_layouts(infer_spaces(b.program(), target), target)
    assert "reshape" in str(caught.value)


@pytest.mark.parametrize("target", ASCEND)
def test_a_reshape_that_a_box_gets_in_the_way_of_goes_through_ddr(target: str) -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (4, 65)))
    y = b.let("y", Reshape(b.let("e", Add(x, x)), (5, 52)))
    program = b.program(b.store(b.let("r", Add(y, y)), b.tensor("out", (5, 52), out=True)))
    lines = ops_of(legalized(program, target))
    emulated(program, target)
    assert "y_view = tensor.reshape(y_ddr)" in lines and "y = tile.load(y_view) [Vec]" in lines


@pytest.mark.parametrize("target", ASCEND)
def test_a_reshape_between_whole_boxes_stays_a_view(target: str) -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (4, 64)))
    y = b.let("y", Reshape(b.let("e", Add(x, x)), (8, 32)))
    program = b.program(b.store(b.let("r", Add(y, y)), b.tensor("out", (8, 32), out=True)))
    placed = legalized(program, target)
    assert count(placed, Reshape) == 1 and count(placed, Load) == 1


@pytest.mark.parametrize("target", ALL)
def test_slices_that_grow_find_room_in_their_source(target: str) -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (16, 40)))
    part = b.let("part", Slice(x, (16, 12), (0, 28)))
    program = b.program(b.store(b.let("r", Add(part, part)), b.tensor("out", (16, 12), out=True)))
    legalized(program, target)
    if target in ASCEND:
        emulated(program, target)


@pytest.mark.parametrize("target", ASCEND)
@pytest.mark.parametrize(("offset", "cut"), ((8, False), (3, True)))
def test_a_window_within_the_bytes_that_stay_together_goes_through_ddr(target: str, offset: int, cut: bool) -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (16, 40)))
    part = b.let("part", Slice(b.let("e", Add(x, x)), (8, 16), (4, offset)))
    program = b.program(b.store(b.let("r", Add(part, part)), b.tensor("out", (8, 16), out=True)))
    lines = ops_of(legalized(program, target))
    assert any("part_space" in line for line in lines) is cut
    emulated(program, target)


@pytest.mark.parametrize("target", ASCEND)
def test_a_part_seen_turned_over_is_a_part_of_the_turned_whole(target: str) -> None:
    b = Builder()
    x, y = (b.load(n, b.tensor(t, (64, 32), FP16)) for n, t in (("x", "a"), ("y", "b")))
    turned = b.let("turned", TransposeView(b.let("part", Slice(y, (48, 32), (16, 0)))))
    program = b.program(b.store(b.let("r", Matmul(x, turned)), b.tensor("out", (64, 48), out=True)))
    assert "turned = tile.slice(y_t) [Mat]" in ops_of(legalized(program, target))
    emulated(program, target)


@pytest.mark.parametrize("target", ASCEND)
def test_transposed_loads(target: str) -> None:
    """Into Mat turned over; into Vec as it stands, and transposed there."""
    b = Builder()
    x = b.load("x", b.tensor("a", (24, 40), FP16), space=MemorySpace.MAT, transpose=True)
    y = b.load("y", b.tensor("b", (24, 33), FP16))
    v = b.load("v", b.tensor("c", (33, 40)), space=MemorySpace.VEC, transpose=True)
    out, other = b.tensor("out", (40, 33), out=True), b.tensor("other", (40, 33), out=True)
    kept = b.store(b.let("e", Add(v, v)), other)
    program = b.program(b.store(b.let("r", Matmul(x, y)), out), kept)
    placed = legalized(program, target)
    assert types(placed)["x"].view.layout == ZN and types(placed)["x_left"].view.layout is None
    assert count(placed, Transpose) == 1


@pytest.mark.parametrize("target", ASCEND)
def test_partial_tiles_of_the_matrix_engine_are_compact(target: str) -> None:
    """matmul R13, R15: where the valid part ends before the last box, and where it ends only at run time."""
    b = Builder()
    n = b.index("n")
    a, w, out = b.tensor("a", (64, 64), FP16), b.tensor("w", (64, 64), FP16), b.tensor("out", (64, 64), inout=True)
    y = b.load("y", w)
    few = b.load("few", a, (64, 64), valid_shape=(33, 64))
    some = b.load("some", a, (64, 64), valid_shape=(n, 64))
    whole = b.load("whole", a)
    o = b.store(b.let("r1", Matmul(few, y)), out)
    o = b.store(b.let("r2", Matmul(some, y)), o)
    program = b.program(b.store(b.let("r3", Matmul(whole, y)), o))
    found = types(legalized(program, target, (9,)))
    for name in ("few_left", "r1", "some_left", "r2"):
        assert found[name].view.compact is Compact.NORMAL, name
    for name in ("whole_left", "r3", "y_right", "few", "some"):
        assert found[name].view.compact is Compact.NULL, name


@pytest.mark.parametrize("target", ASCEND)
def test_an_accumulator_keeps_one_type_through_its_loop(target: str) -> None:
    b = Builder()
    a, w, out = b.tensor("a", (33, 96), FP16), b.tensor("w", (96, 17), FP16), b.tensor("out", (33, 17), out=True)
    acc = b.let("acc", Create((33, 17), FP32, level=Level.TILE))

    def body(k: Value, carried: Value) -> tuple[Value, ...]:
        from tilewright.ir.scalar import BinaryKind, binary

        x, y = b.load("x", a, (33, 48), offsets=(0, k * 48)), b.load("y", w, (48, 17), offsets=(k * 48, 0))
        return (b.let("next", MatmulAcc(acc=carried, lhs=x, rhs=y, init_cond=binary(BinaryKind.EQ, k, 0))),)

    (total,) = b.loop(2, (acc,), body)
    found = types(legalized(b.program(b.store(total, out)), target))
    assert found["acc"] is found["acc_arg"] is found["acc_out"] is found["next"]


def test_exp_of_a_tail_is_rounded_in_its_row() -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (5, 17), BF16))
    program = b.program(b.store(b.let("e", Exp(x)), b.tensor("out", (5, 17), BF16, out=True)))
    found = types(legalized(program, "ascend910b"))
    assert found["x"].shape == found["x_fp32"].shape == (5, 32)


def test_int32_rows_are_tied_from_the_accumulator_back_to_the_load() -> None:
    target = load_target("ascend910b")
    program = legalize_layouts(legalize_moves(infer_spaces(product(16, 64, 64, INT8), target), target), target)
    found = types(program)
    assert found["x"].shape[0] == found["x_left"].shape[0] == found["r"].shape[0] == 32
    assert found["r"].dtype is INT32
