"""spaces R7, R8, R10, R14, R17 and the cases that must hold: where tiles live, and what bridges there are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from building import Builder, ops_of
from passes.checking import count, legalized

from tilewright.analysis.legality import check_spaces
from tilewright.compiler import lower
from tilewright.errors import AccumulatorError, NoRouteError
from tilewright.execute.interpreter import interpret
from tilewright.frontend import parse
from tilewright.ir.dtypes import BF16, FP16, FP32, INT32, INT8, DType
from tilewright.ir.function import Program
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import For, If, Let
from tilewright.ir.op import Level
from tilewright.ir.scalar import BinaryKind, Scalar, Value, binary, constant
from tilewright.ir.types import TileType
from tilewright.ops.cast import Cast
from tilewright.ops.create import Create, Full
from tilewright.ops.elementwise import Add, Mul
from tilewright.ops.matmul import Matmul, MatmulAcc
from tilewright.ops.movement import Load, Move
from tilewright.ops.parts import Assemble, Write
from tilewright.ops.shape import Reshape, SetValidShape, Slice, TransposeView
from tilewright.passes.tile.infer_spaces import infer_spaces, plan_of
from tilewright.passes.tile.legalize_moves import legalize_moves
from tilewright.targets import load_target

ASCEND = ("ascend910b", "ascend950")
SCRATCHPAD = str(Path(__file__).parents[3] / "examples/targets/scratchpad.toml")
ALL = (*ASCEND, "x86_amx", "x86_avx512", "generic")
MAT, LEFT, RIGHT, ACC, VEC = (
    MemorySpace.MAT, MemorySpace.LEFT, MemorySpace.RIGHT, MemorySpace.ACC, MemorySpace.VEC,
)  # fmt: skip


def spaces(program: Program) -> dict[str, MemorySpace | None]:
    """Where each tile is, by name."""
    values = (v for stmt in program.main.walk() for v in (*stmt.block_args(), *stmt.defs()))
    return {value.name: value.type.space for value in values if isinstance(value.type, TileType)}


# --- cases that must hold -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("target", ALL)
def test_scaled_product_times_another(target: str) -> None:
    """(a @ b) * s @ c."""
    b = Builder()
    x, y, z = (b.load(n, b.tensor(t, (32, 32), FP16)) for n, t in (("x", "a"), ("y", "b"), ("z", "c")))
    out = b.tensor("out", (32, 32), out=True)
    scaled = b.let("scaled", Mul(b.let("xy", Matmul(x, y)), constant(2.0, FP32)))
    legalized(b.program(b.store(b.let("r", Matmul(b.let("h", Cast(scaled, FP16)), z)), out)), target)


@pytest.mark.parametrize("target", ALL)
def test_slice_then_matmul_is_one_load_to_mat(target: str) -> None:
    """spaces R7: demand flows through views."""
    b = Builder()
    x = b.load("x", b.tensor("a", (64, 64), FP16))
    y = b.load("y", b.tensor("b", (32, 32), FP16))
    part = b.let("part", Slice(x, (32, 32), (32, 0)))
    view = b.let("view", Slice(part, (16, 32), (0, 0)))
    out = b.tensor("out", (16, 32), out=True)
    placed = legalized(b.program(b.store(b.let("r", Matmul(view, y)), out)), target)
    assert count(placed, Load) == 2
    if target in ASCEND:
        assert spaces(placed)["x"] is spaces(placed)["part"] is spaces(placed)["view"] is MAT


@pytest.mark.parametrize("target", ALL)
def test_slice_reshape_matmul(target: str) -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (4, 512), FP16))
    y = b.load("y", b.tensor("b", (32, 32), FP16))
    row = b.let("row", Slice(x, (2, 512), (1, 0)))
    square = b.let("square", Reshape(row, (32, 32)))
    out = b.tensor("out", (32, 32), out=True)
    legalized(b.program(b.store(b.let("r", Matmul(square, y)), out)), target)


@pytest.mark.parametrize("target", ALL)
@pytest.mark.parametrize("dtype", (FP16, FP32), ids=str)
def test_one_tensor_read_by_add_and_by_matmul(target: str, dtype: DType) -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (32, 32), dtype))
    out, other = b.tensor("out", (32, 32), out=True), b.tensor("other", (32, 32), dtype, out=True)
    added = b.store(b.let("s", Add(x, x)), other)
    placed = legalized(b.program(b.store(b.let("r", Matmul(x, x)), out), added), target)
    if target == "ascend910b":
        assert count(placed, Load) == 2 and "DDR" not in str(plan_of(b.program().main, load_target(target)))


@pytest.mark.parametrize("target", ALL)
def test_matmul_in_both_arms_of_a_branch(target: str) -> None:
    b = Builder()
    n = b.index("n")
    x, y = (b.load(name, b.tensor(t, (32, 32), FP16)) for name, t in (("x", "a"), ("y", "b")))
    out = b.tensor("out", (32, 32), out=True)
    condition = binary(BinaryKind.GT, n, 3)
    (phi,) = b.branch(condition, lambda: (b.let("p", Matmul(x, y)),), lambda: (b.let("q", Matmul(y, x)),))
    program = b.program(b.store(phi, out))
    for value in (1, 9):
        placed = legalized(program, target, (value,))
    assert spaces(placed)["phi0"] is ACC
    branch = next(stmt for stmt in placed.main.walk() if isinstance(stmt, If))
    for arm in branch.blocks():  # a bridge that one arm makes is not used in the other
        assert sum(isinstance(stmt, Let) and isinstance(stmt.value, Move) for stmt in arm) == 2


@pytest.mark.parametrize("target", ALL)
def test_transposed_slice_into_matmul(target: str) -> None:
    b = Builder()
    x, y = (b.load(n, b.tensor(t, (64, 32), FP16)) for n, t in (("x", "a"), ("y", "b")))
    turned = b.let("turned", TransposeView(b.let("part", Slice(y, (48, 32), (16, 0)))))
    out = b.tensor("out", (64, 48), out=True)
    legalized(b.program(b.store(b.let("r", Matmul(x, turned)), out)), target)


@pytest.mark.parametrize("target", ALL)
def test_a_transposing_load_into_matmul(target: str) -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (64, 40), FP16))
    y = b.load("y", b.tensor("b", (33, 40), FP16), transpose=True)
    out = b.tensor("out", (64, 33), out=True)
    placed = legalized(b.program(b.store(b.let("r", Matmul(x, y)), out)), target)
    if target in ASCEND:
        kind = next(s.target.type for s in placed.main.walk() if isinstance(s, Let) and s.target.name == "y")
        assert isinstance(kind, TileType) and kind.view.layout is not None  # ZN


@pytest.mark.parametrize("target", ALL)
@pytest.mark.parametrize("dtype", (FP16, INT8), ids=str)
def test_an_accumulator_that_starts_as_zeros(target: str, dtype: DType) -> None:
    b = Builder()
    wide = INT32 if dtype is INT8 else FP32
    lhs, rhs = b.tensor("a", (32, 128), dtype), b.tensor("b", (128, 32), dtype)
    out = b.tensor("out", (32, 32), wide, out=True)
    zero = b.let("zero", Full((32, 32), wide, constant(0, wide), level=Level.TILE))

    def outer(i: Value, acc: Value) -> tuple[Value, ...]:
        def inner(k: Value, part: Value) -> tuple[Value, ...]:
            at = i * 64 + k * 32
            x = b.load("x", lhs, (32, 32), offsets=(0, at))
            y = b.load("y", rhs, (32, 32), offsets=(at, 0))
            return (b.let("sum", MatmulAcc(acc=part, lhs=x, rhs=y)),)

        return b.loop(2, (acc,), inner)

    (total,) = b.loop(2, (zero,), outer)
    placed = legalized(b.program(b.store(total, out)), target)
    assert spaces(placed)["zero_acc"] is ACC and count(placed, Full) == 0


def test_zeros_that_a_product_may_not_overwrite_are_refused() -> None:
    b = Builder()
    n = b.index("n")
    lhs, rhs = b.tensor("a", (32, 128), FP16), b.tensor("b", (128, 32), FP16)
    out = b.tensor("out", (32, 32), out=True)
    zero = b.let("zero", Full((32, 32), FP32, constant(0.0, FP32), level=Level.TILE))

    def body(k: Value, acc: Value) -> tuple[Value, ...]:
        x = b.load("x", lhs, (32, 32), offsets=(0, k * 32))
        y = b.load("y", rhs, (32, 32), offsets=(k * 32, 0))
        return (b.let("sum", MatmulAcc(acc=acc, lhs=x, rhs=y)),)

    (total,) = b.loop(n, (zero,), body)
    with pytest.raises(AccumulatorError, match="only products write"):
        infer_spaces(b.program(b.store(total, out)), load_target("ascend910b"))


@pytest.mark.parametrize("target", ALL)
def test_a_tile_in_vec_fed_to_matmul_is_moved(target: str) -> None:
    """spaces R4: never passed silently."""
    b = Builder()
    x = b.load("x", b.tensor("a", (32, 32), FP16), space=VEC)
    y = b.let("y", Add(x, x))
    out = b.tensor("out", (32, 32), out=True)
    placed = legalized(b.program(b.store(b.let("r", Matmul(y, y)), out)), target)
    assert spaces(placed)["y"] is VEC and spaces(placed)["y_left"] is LEFT and spaces(placed)["y_right"] is RIGHT


@pytest.mark.parametrize("target", ALL)
def test_a_users_mat_tile_is_loaded_again_for_a_vector_operation(target: str) -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (32, 32)), space=MAT)
    out = b.tensor("out", (32, 32), out=True)
    placed = legalized(b.program(b.store(b.let("y", Add(x, x)), out)), target)
    if target in ASCEND:
        assert spaces(placed)["x_vec"] is VEC and count(placed, Load) == 1  # nobody reads the one in Mat
        assert not any("create" in line for line in ops_of(placed))


def changed_source() -> Program:
    b = Builder()
    a = b.tensor("a", (32, 32), inout=True)
    x = b.load("x", a, space=MAT)
    doubled = b.load("old", a, space=VEC)
    a1 = b.store(b.let("d", Add(doubled, doubled)), a)
    return b.program(b.store(b.let("y", Add(x, x)), a1))


def test_a_mat_tile_whose_source_changed_goes_through_ddr_on_the_910b() -> None:
    lines = ops_of(legalized(changed_source(), "ascend910b"))
    assert "x_ddr = tile.store(x, x_ddr_space)" in lines and "x_vec = tile.load(x_ddr) [Vec]" in lines


def test_a_mat_tile_whose_source_changed_has_no_way_on_the_950() -> None:
    target = load_target("ascend950")
    with pytest.raises(NoRouteError, match="from Mat"):
        legalize_moves(infer_spaces(changed_source(), target), target)


@pytest.mark.parametrize("target", ALL)
def test_a_view_of_a_view(target: str) -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (64, 64)))
    part = b.let("part", Slice(x, (32, 64), (16, 0)))
    view = b.let("view", SetValidShape(part, 20, 50))
    out = b.tensor("out", (20, 50), out=True)
    placed = legalized(b.program(b.store(b.let("y", Add(view, view)), out)), target)
    assert spaces(placed)["x"] is spaces(placed)["view"]


@pytest.mark.parametrize("target", ALL)
def test_a_carried_value_used_in_two_spaces_after_the_loop(target: str) -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (32, 32), FP16))
    out, other = b.tensor("out", (32, 32), out=True), b.tensor("other", (32, 32), FP16, out=True)
    (last,) = b.loop(1, (x,), lambda k, arg: (b.let("next", Add(arg, arg)),))
    kept = b.store(b.let("s", Add(last, last)), other)
    placed = legalized(b.program(b.store(b.let("r", Matmul(last, last)), out), kept), target)
    found = spaces(placed)
    assert found["x"] is found["x_arg"] is found["x_out"] is found["next"] is VEC


# --- rules --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("target", ASCEND)
def test_a_written_target_memory_is_never_overridden(target: str) -> None:
    """spaces R10."""
    b = Builder()
    x, y = (b.load(n, b.tensor(t, (32, 32), FP16), space=VEC) for n, t in (("x", "a"), ("y", "b")))
    out = b.tensor("out", (32, 32), out=True)
    placed = infer_spaces(b.program(b.store(b.let("r", Matmul(x, y)), out)), load_target(target))
    assert spaces(placed)["x"] is spaces(placed)["y"] is VEC


@pytest.mark.parametrize("target", ASCEND)
def test_left_and_right_tiles_that_a_user_loads(target: str) -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (32, 32), FP16), space=LEFT)
    y = b.load("y", b.tensor("b", (32, 32), FP16), space=RIGHT)
    out = b.tensor("out", (32, 32), out=True)
    placed = legalized(b.program(b.store(b.let("r", Matmul(x, y)), out)), target)
    assert spaces(placed)["x_mat"] is MAT and spaces(placed)["x"] is LEFT


def test_the_order_of_consumers_decides_nothing() -> None:
    """spaces R8."""
    plans: list[dict[str, MemorySpace]] = []
    for first in (True, False):
        b = Builder()
        x = b.load("x", b.tensor("a", (32, 32), FP16))
        if first:
            b.let("s", Add(x, x))
            b.let("r", Matmul(x, x))
        else:
            b.let("r", Matmul(x, x))
            b.let("s", Add(x, x))
        plan = plan_of(b.program().main, load_target("ascend910b"))
        plans.append({value.name: space for value, space in plan.homes.items()})
    assert plans[0] == plans[1]


def test_two_plans_of_one_program_are_equal_and_read_well() -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (32, 32), FP16))
    b.let("r", Matmul(x, x))
    target = load_target("ascend910b")
    one, two = plan_of(b.program().main, target), plan_of(b.program().main, target)
    assert one == two
    for part in (
        "x: Mat",
        "r: Acc",
        "x -> Left: move, 36 cycles",
        "x -> Right: move, 44 cycles",
        "x in Mat: cycles Mat",
    ):
        assert part in str(one)


def in_loop(size: int, trips: int) -> Program:
    """An operand that the loop leaves alone."""
    b = Builder()
    a, w, out = (
        b.tensor("a", (size, trips * 64), FP16),
        b.tensor("w", (size, 64), FP16),
        b.tensor("out", (64, trips * 64), out=True),
    )
    x = b.load("x", w)
    turned = b.let("turned", TransposeView(x))

    def body(k: Value, o: Value) -> tuple[Value, ...]:
        y = b.load("y", a, (size, 64), offsets=(0, k * 64))
        return (b.store(b.let("r", Matmul(turned, y)), o, (0, k * 64)),)

    return b.program(*b.loop(trips, (out,), body))


def test_a_bridge_of_an_unchanged_value_leaves_the_loop() -> None:
    """spaces R17."""
    placed = legalized(in_loop(64, 3), "ascend910b")
    lines = [stmt.target.name for stmt in placed.main.body if isinstance(stmt, Let)]
    assert "turned_left" in lines


def test_a_bridge_stays_in_the_loop_where_the_memory_is_too_small() -> None:
    """spaces R17: two tiles of one operand would not fit beside what the loop itself holds there."""
    b = Builder()
    one, two = (b.load(n, b.tensor(t, (64, 64), FP16)) for n, t in (("x", "a"), ("z", "c")))
    right = b.load("y", b.tensor("b", (64, 64), FP16))
    out = b.tensor("out", (64, 64), out=True)

    def body(k: Value, o: Value) -> tuple[Value, ...]:
        o = b.store(b.let("p", Matmul(one, right)), o)
        return (b.store(b.let("q", Matmul(two, right)), o),)

    program = b.program(*b.loop(2, (out,), body))
    roomy, tight = load_target("ascend910b"), load_target("ascend910b").with_capacity(Left=8192)
    for target, hoisted in ((roomy, True), (tight, False)):
        placed = infer_spaces(program, target)
        names = [stmt.target.name for stmt in placed.main.body if isinstance(stmt, Let)]
        assert ("x_left" in names) is hoisted and "y_right" in names
        loop = next(stmt for stmt in placed.main.body if isinstance(stmt, For))
        inside = [stmt.target.name for stmt in loop.body if isinstance(stmt, Let)]
        assert ("z_left" in inside) is not hoisted


def test_one_bridge_for_two_consumers() -> None:
    """spaces R5."""
    b = Builder()
    x, y = (b.load(n, b.tensor(t, (32, 32), FP16)) for n, t in (("x", "a"), ("y", "b")))
    out, other = b.tensor("out", (32, 32), out=True), b.tensor("other", (32, 32), out=True)
    first = b.store(b.let("r", Matmul(x, y)), out)
    second = b.store(b.let("s", Matmul(x, y)), other)
    assert count(infer_spaces(b.program(first, second), load_target("ascend910b")), Move) == 2


@pytest.mark.parametrize(("mode", "folded"), (("round", True), ("rint", False)))
def test_a_rounding_of_an_accumulator_is_part_of_the_store(mode: str, folded: bool) -> None:
    """spaces R14: only the default rounding is what the edge does."""
    b = Builder()
    x = b.load("x", b.tensor("a", (32, 32), BF16))
    out = b.tensor("out", (32, 32), BF16, out=True)
    program = b.program(b.store(b.let("h", Cast(b.let("r", Matmul(x, x)), BF16, mode)), out))
    placed = legalized(program, "ascend910b")
    assert count(placed, Cast) == (0 if folded else 1)


def test_a_rounding_that_a_vector_operation_reads_is_done_on_the_way() -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (32, 32), FP16))
    out = b.tensor("out", (32, 32), FP16, out=True)
    h = b.let("h", Cast(b.let("r", Matmul(x, x)), FP16))
    lines = ops_of(legalized(b.program(b.store(b.let("y", Add(h, h)), out)), "ascend910b"))
    assert not any("cast" in line for line in lines)


def test_int32_accumulators_are_not_narrowed_on_the_way() -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (32, 32), INT8))
    out = b.tensor("out", (32, 32), FP32, out=True)
    program = b.program(b.store(b.let("f", Cast(b.let("r", Matmul(x, x)), FP32)), out))
    assert count(legalized(program, "ascend910b"), Cast) == 1


@pytest.mark.parametrize("target", ASCEND)
def test_assembling_products_in_mat(target: str) -> None:
    """An update goes along an edge too: products are rounded into Mat, from where the next product reads them."""
    b = Builder()
    x = b.load("x", b.tensor("a", (32, 32), FP16))
    out = b.tensor("out", (32, 32), out=True)
    board = b.let("board", Create((32, 32), FP16, init_value=constant(0.0, FP16), level=Level.TILE))
    h = b.let("h", Cast(b.let("r", Matmul(x, x)), FP16))
    full = b.let("full", Assemble(board, h, (0, 0)))
    program = b.program(b.store(b.let("s", Matmul(full, full)), out))
    legalized(program, target)


@pytest.mark.parametrize("target", ALL)
def test_swapped_carries(target: str) -> None:
    b = Builder()
    x, y = (b.load(n, b.tensor(t, (32, 32))) for n, t in (("x", "a"), ("y", "b")))
    out = b.tensor("out", (32, 32), out=True)
    first, second = b.loop(3, (x, y), lambda k, p, q: (q, b.let("s", Add(p, q))))
    legalized(b.program(b.store(b.let("r", Mul(first, second)), out)), target)


@pytest.mark.parametrize("target", ALL)
def test_a_tile_that_parts_are_written_into_is_where_they_can_be(target: str) -> None:
    """A product reads the whole before and after; on the 910B nothing but a product is written into Mat."""
    b = Builder()
    whole, part = b.load("whole", b.tensor("a", (32, 32), FP16)), b.load("part", b.tensor("b", (16, 32), FP16))
    out, kept = b.tensor("out", (32, 32), out=True), b.tensor("kept", (32, 32), FP16, out=True)
    before = b.let("before", Matmul(whole, whole))
    joined = b.let("joined", Assemble(whole, b.let("twice", Add(part, part)), (16, 0)))
    program = b.program(b.store(b.let("r", Add(before, b.let("after", Matmul(joined, joined)))), out),
                        b.store(joined, kept))  # fmt: skip
    placed = legalized(program, target)
    if target == "ascend910b":
        assert spaces(placed)["joined"] is spaces(placed)["whole"] is VEC


def test_a_tile_in_mat_comes_to_where_an_element_is_written() -> None:
    """Its user put it into Mat; on the 910B it goes through DDR."""
    b = Builder()
    x = b.load("x", b.tensor("a", (16, 16), FP16), space=MAT)
    out, kept = b.tensor("out", (16, 16), out=True), b.tensor("kept", (16, 16), FP16, out=True)
    y = b.let("y", Write(x, (3, 4), constant(7.0, FP16)))
    placed = legalized(b.program(b.store(b.let("r", Matmul(y, y)), out), b.store(y, kept)), "ascend910b")
    assert spaces(placed)["y"] is VEC


ROLES = """
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[32, 32], pl.FP32]):
        with pl.at():
            if n == 0:
                r = pl.yield_(a)
            else:
                product = pl.tensor.matmul(a, a)
                least = pl.tensor.minimums(product, 8.0)
                r = pl.yield_(least)
            s = pl.yield_(r)
        return s
"""


@pytest.mark.parametrize("target", (*ALL, SCRATCHPAD))
def test_roles_of_one_memory_are_one_where_paths_join(target: str) -> None:
    """A tile that a product reads, and a computed one, also on a machine whose Mat and Vec are one scratchpad."""
    program = lower(parse(ROLES), load_target(target))
    for n in (0, 1):
        (found,) = interpret(program, [n, np.full((32, 32), 2, np.float32)])
        np.testing.assert_array_equal(found, np.full((32, 32), 8 if n else 2, np.float32))


def test_dynamic_valid_extents_pass_through() -> None:
    b = Builder()
    n = b.index("n")
    a, w = b.tensor("a", (64, 64), FP16), b.tensor("w", (64, 64), FP16)
    out = b.tensor("out", (64, 64), inout=True)
    rows: Scalar = n
    x = b.load("x", a, (64, 64), valid_shape=(rows, 64))
    y = b.load("y", w)
    program = b.program(b.store(b.let("r", Matmul(x, y)), out))
    for size in (1, 15, 16, 17, 63, 64):
        placed = legalized(program, "ascend910b", (size,))
    kinds = {s.target.name: s.target.type for s in placed.main.walk() if isinstance(s, Let)}
    for name in ("x_left", "r"):
        kind = kinds[name]
        assert isinstance(kind, TileType) and kind.view.compact.name == "NORMAL"


def test_spaces_are_checked() -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (32, 32), FP16))
    b.let("r", Matmul(x, x))
    from tilewright.errors import VerifyError

    with pytest.raises(VerifyError, match="has no memory space"):
        check_spaces(b.program(), load_target("ascend910b"))
