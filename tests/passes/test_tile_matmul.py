"""Matmul tiling: whatever the sizes, the form and the machine, every tile fits and every number is right."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from building import Builder
from passes.checking import emulated, run
from passes.tile_matmul._forms import (
    FORMS,
    SIZES,
    chain,
    layer,
    product,
    runtime_rows,
    shared_panel,
    split_k,
    two_sums,
)

from tilewright.analysis.footprint import footprint
from tilewright.analysis.legality import check_legal
from tilewright.compiler import placed
from tilewright.errors import AccumulatorError, CapacityError
from tilewright.execute.interpreter import interpret
from tilewright.ir.dtypes import BF16, FP16, FP32, INT8, INT32, DType
from tilewright.ir.function import Program
from tilewright.ir.layout import MemorySpace
from tilewright.ir.loops import Contract
from tilewright.ir.nodes import For, Let, LoopKind
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.ir.types import TileType
from tilewright.ir.verify import verify
from tilewright.ops.elementwise import Add, Relu
from tilewright.ops.matmul import Matmul, MatmulBias
from tilewright.ops.movement import Load, Move, Store
from tilewright.passes.tile.tile_matmul import plan_tiles, tile_matmul
from tilewright.targets import Target, load_target

ASCEND = ("ascend910b", "ascend950")
SCRATCHPAD = "examples/targets/scratchpad.toml"
EMULATED = 1_000_000
"""Multiplications up to which a program is also executed on the emulated machine."""


def tiled(program: Program, target: str | Target) -> Program:
    """The final program for `target`: verified, legal, within capacities, of the same meaning after the pass and at
    the end, and changed by the pass once only."""
    machine = load_target(target)
    verify(program)
    wanted = run(program)
    stages = dict(placed(program, machine))
    after, final = stages["tile_matmul"], stages["place_buffers"]
    assert tile_matmul(after, machine) == after
    for stage in (after, final):
        verify(stage)
        for a, b in zip(wanted, run(stage), strict=True):
            np.testing.assert_array_equal(np.asarray(a, np.float64), np.asarray(b, np.float64))
    check_legal(final, machine)
    for kind in tiles_of(final):
        assert kind.space is not None and kind.memref is not None and kind.memref.addr is not None
        assert kind.memref.addr + footprint(kind, machine) <= machine.capacity(kind.space)
    return final


def tiles_of(program: Program, space: MemorySpace | None = None) -> list[TileType]:
    """The types of all tiles (in `space`) of all functions."""
    values = (v for f in program.functions for stmt in f.walk() for v in (*stmt.block_args(), *stmt.defs()))
    return [v.type for v in values if isinstance(v.type, TileType) and (space is None or v.type.space is space)]


def ops_of(program: Program, kind: type[Op]) -> list[Let]:
    lets = (stmt for f in program.functions for stmt in f.walk() if isinstance(stmt, Let))
    return [stmt for stmt in lets if isinstance(stmt.value, kind)]


def products(program: Program) -> list[Let]:
    lets = (stmt for f in program.functions for stmt in f.walk() if isinstance(stmt, Let))
    return [stmt for stmt in lets if isinstance(stmt.value, Op) and isinstance(stmt.value.loops, Contract)]


def hints(program: Program, target: str) -> list[str]:
    return [hint.code for hint in plan_tiles(program, load_target(target)).hints]


# --- a sweep of sizes ---------------------------------------------------------------------------------------------
def sample(count: int, seed: int) -> list[tuple[str, DType, int, int, int, str]]:
    """Combinations of form, element type, sizes and target. Each size appears on each axis before any comes again."""
    drawn = random.Random(seed)
    axes = [drawn.sample(SIZES, len(SIZES)) for _ in range(3 * (count // len(SIZES) + 1))]
    m, n, k = ([size for axis in axes[start::3] for size in axis] for start in range(3))
    return [
        (FORMS[i % 5], (FP32, BF16, FP16, INT8)[i % 4], m[i], n[i], k[i], ASCEND[(i // 20) % 2]) for i in range(count)
    ]


def check_combination(form: str, dtype: DType, m: int, n: int, k: int, target: str) -> None:
    program = product(form, dtype, m, n, k)
    tiled(program, target)
    assert [code for code in hints(program, target) if code != "PH-AT-008"] == []
    if m * n * k <= EMULATED:
        emulated(program, target)


@pytest.mark.parametrize(("form", "dtype", "m", "n", "k", "target"), sample(60, 1))
def test_sweep(form: str, dtype: DType, m: int, n: int, k: int, target: str) -> None:
    check_combination(form, dtype, m, n, k, target)


@pytest.mark.slow
@pytest.mark.parametrize(("form", "dtype", "m", "n", "k", "target"), sample(420, 2))
def test_long_sweep(form: str, dtype: DType, m: int, n: int, k: int, target: str) -> None:
    check_combination(form, dtype, m, n, k, target)


@pytest.mark.parametrize(("form", "dtype", "m", "n", "k"), [c[:5] for c in sample(24, 3) if c[1] is not INT8])
def test_a_machine_of_a_users_own(form: str, dtype: DType, m: int, n: int, k: int) -> None:
    tiled(product(form, dtype, m, n, k), SCRATCHPAD)


# --- what must come out exact -------------------------------------------------------------------------------------
EXACT: dict[str, Callable[[], Program]] = {
    "eight blocks into [16, 1152] int32": lambda: split_k(INT8, 16, 1152, 128, 8),
    "padded edges, [272, 144] int32": lambda: split_k(INT8, 272, 144, 128, 4),
    "a tail of 16 columns in blocks along K": lambda: split_k(INT8, 32, 1168, 128, 8),
    "K stays whole": lambda: product("plain", BF16, 16, 512, 128),
    "a tail of 72 along K": lambda: product("plain", FP16, 64, 128, 200),
    "one weight panel, two sizes": lambda: shared_panel(BF16, 64, 128, 256, 17),
    "32 blocks of a transposed operand": lambda: split_k(BF16, 16, 32, 512, 32, turned=True),
    "K of 16,384 at once": lambda: product("trans_b", BF16, 16, 32, 16384),
    "64 ones": lambda: product("plain", FP16, 64, 16, 64),
    "K of 100 in blocks of 64": lambda: product("plain", BF16, 65, 33, 100),
}


@pytest.mark.parametrize("target", ASCEND)
@pytest.mark.parametrize("name", list(EXACT))
def test_comes_out_exact(name: str, target: str) -> None:
    program = EXACT[name]()
    tiled(program, target)
    emulated(program, target)


def test_the_accumulator_of_1152_columns_on_the_910b() -> None:
    machine = load_target("ascend910b")
    whole = TileType((16, 1152), INT32, MemorySpace.ACC)
    assert footprint(whole, machine) == 147_456
    final = tiled(split_k(INT8, 16, 1152, 128, 8), machine)
    accumulators = tiles_of(final, MemorySpace.ACC)
    assert accumulators and max(footprint(kind, machine) for kind in accumulators) <= 131_072
    assert all(kind.valid[0] == 16 for kind in accumulators)
    # The grid stands outside: each tile of the result meets all eight blocks, the first in front of its loop.
    loops = [s for f in final.functions for s in f.walk() if isinstance(s, For) and any_product(s)]
    assert loops and all(loop.trip_count == 7 for loop in loops if not any(isinstance(s, For) for s in loop.body))


def any_product(loop: For) -> bool:
    return any(
        isinstance(s, Let) and isinstance(s.value, Op) and isinstance(s.value.loops, Contract) for s in loop.body
    )


def test_the_padded_accumulator_of_272_rows_on_the_910b() -> None:
    machine = load_target("ascend910b")
    assert footprint(TileType((288, 160), INT32, MemorySpace.ACC), machine) == 184_320
    final = tiled(split_k(INT8, 272, 144, 128, 4), machine)
    assert max(footprint(kind, machine) for kind in tiles_of(final, MemorySpace.ACC)) <= 131_072


# --- every way to write a sum -------------------------------------------------------------------------------------
@pytest.mark.parametrize("target", ASCEND)
@pytest.mark.parametrize(
    ("start", "step"),
    [
        ("full", "acc"), ("create_zero", "acc"), ("product", "acc"), ("create", "cond"), ("create", "branch"),
        ("create", "shared"), ("full", "cond"),
    ],
)  # fmt: skip
def test_forms_of_a_sum_become_one(start: str, step: str, target: str) -> None:
    program = split_k(INT8, 16, 2304, 64, 4, start, step)
    final = tiled(program, target)
    emulated(program, target)
    assert hints(program, target) == []
    capacity = load_target(target).capacity(MemorySpace.ACC)
    assert all(footprint(kind, load_target(target)) <= capacity for kind in tiles_of(final, MemorySpace.ACC))
    assert all(getattr(let.value, "init_cond", None) is None for let in products(final))


@pytest.mark.parametrize("target", (*ASCEND, SCRATCHPAD))
def test_several_accumulators_in_one_loop(target: str) -> None:
    tiled(two_sums(BF16, 320, 320, 257, 64, 4), target)


@pytest.mark.parametrize("target", (*ASCEND, SCRATCHPAD))
def test_steps_along_k_inside_each_block(target: str) -> None:
    final = tiled(split_k(BF16, 256, 640, 1000, 3), target)
    inner = [let.value for let in products(final)]
    assert len(inner) > 4
    if target in ASCEND:
        assert all(kind.static_shape[-1] < 1000 for kind in tiles_of(final, MemorySpace.LEFT))


def test_an_accumulator_that_nothing_wrote_is_refused() -> None:
    with pytest.raises(AccumulatorError, match="nothing has written yet") as caught:
        tile_matmul(split_k(BF16, 64, 64, 64, 2, "create"), load_target("ascend910b"))
    assert caught.value.span is not None and caught.value.help


def test_a_sum_that_is_read_in_its_loop_stays_and_says_so() -> None:
    program = split_k(FP32, 320, 320, 32, 4, "full", "read")
    plan = plan_tiles(program, load_target("ascend910b"))
    assert [hint.code for hint in plan.hints] == ["PH-AT-006"]
    assert tile_matmul(program, load_target("ascend910b")) is program
    assert "not cut" in str(plan)


# --- results that are read on chip --------------------------------------------------------------------------------
@pytest.mark.parametrize("target", (*ASCEND, SCRATCHPAD))
@pytest.mark.parametrize("sizes", [(64, 64, 64, 64), (320, 64, 320, 33), (1000, 128, 320, 257), (17, 200, 1000, 65)])
def test_chains(sizes: tuple[int, int, int, int], target: str) -> None:
    tiled(chain(BF16, *sizes), target)


@pytest.mark.parametrize("target", (*ASCEND, SCRATCHPAD))
def test_a_chain_in_full_precision(target: str) -> None:
    program = chain(FP32, 320, 64, 200, 72, cast=False)
    tiled(program, target)
    assert "PH-AT-009" in hints(program, "ascend910b")


@pytest.mark.parametrize("target", (*ASCEND, SCRATCHPAD))
@pytest.mark.parametrize("sizes", [(64, 512, 64), (300, 320, 65), (1000, 257, 100)])
def test_what_follows_a_sum_is_cut_with_it(sizes: tuple[int, int, int], target: str) -> None:
    tiled(layer(*sizes), target)


@pytest.mark.parametrize("target", (*ASCEND, SCRATCHPAD))
def test_a_grid_and_what_follows_it_in_a_loop_of_the_users(target: str) -> None:
    """On the 910B the loop is done once by each kind of core; a grid that the other kind needs is none of its own."""
    b = Builder()
    left, right = b.tensor("a", (512, 64), BF16), b.tensor("b", (64, 320), BF16)
    out = b.tensor("out", (512, 320), FP32, out=True)

    def body(k: Value, whole: Value) -> tuple[Value, ...]:
        x, y = b.load("x", left, (128, 64), offsets=(k * 128, 0)), b.load("y", right)
        kept = b.let("kept", Relu(b.let("made", Matmul(x, y))))
        return (b.let("out_1", Store(kept, (k * 128, 0), whole)),)

    (last,) = b.loop(4, (out,), body)
    tiled(b.program(last), target)


def test_a_computed_bias() -> None:
    b = Builder()
    x, y = b.load("x", b.tensor("a", (17, 200), FP16)), b.load("y", b.tensor("b", (200, 1000), FP16))
    row = b.load("row", b.tensor("c", (1, 1000), FP32))
    made = b.let("made", MatmulBias(x, y, b.let("twice", Add(row, row))))
    program = b.program(b.store(made, b.tensor("out", (17, 1000), FP32, out=True)))
    tiled(program, "ascend910b")
    assert hints(program, "ascend910b") == ["PH-AT-011"]


# --- run-time extents, stores, users' own tiles -------------------------------------------------------------------
@pytest.mark.parametrize("target", ASCEND)
@pytest.mark.parametrize("dtype", [FP32, INT8])
def test_rows_that_are_known_only_at_run_time(dtype: DType, target: str) -> None:
    program = runtime_rows(dtype, 64, 1152, 100)
    for rows in (1, 15, 16, 17, 63, 64):
        wanted = run(program, (rows,))
        for _, stage in placed(program, load_target(target)):
            verify(stage)
            for a, b in zip(wanted, run(stage, (rows,)), strict=True):
                np.testing.assert_array_equal(a, b)


def test_stores_keep_offsets_and_attributes() -> None:
    b = Builder()
    x, y = b.load("x", b.tensor("a", (320, 64), BF16)), b.load("y", b.tensor("b", (64, 320), BF16))
    out = b.tensor("out", (400, 500), FP32, inout=True)
    b.let("out_1", Store(b.let("made", Matmul(x, y)), (33, 70), out, None, 1))
    program = b.program(b.blocks[0][-1].defs()[0])
    final = tiled(program, "ascend910b")
    stores = [let.value for let in ops_of(final, Store)]
    assert len(stores) > 1 and all(isinstance(op, Store) and op.atomic == 1 for op in stores)


def test_a_vector_in_ddr_takes_the_columns_of_one_row() -> None:
    b = Builder()
    x, y = b.load("x", b.tensor("a", (1, 64), BF16)), b.load("y", b.tensor("b", (64, 1000), BF16))
    out = b.tensor("out", (1000,), FP32, out=True)
    b.let("out_1", Store(b.let("made", Matmul(x, y)), (0,), out, (1000,)))
    tiled(b.program(b.blocks[0][-1].defs()[0]), "ascend910b")


def by_hand(space: MemorySpace, rows: int, cols: int) -> Program:
    """A right operand that its user moved."""
    b = Builder()
    x, y = b.load("x", b.tensor("a", (64, rows), FP16)), b.load("y", b.tensor("b", (rows, cols), FP16))
    right = b.let("right", Move(y, space))
    return b.program(b.store(b.let("made", Matmul(x, right)), b.tensor("out", (64, cols), FP32, out=True)))


def test_tiles_that_their_user_placed_are_left_alone() -> None:
    program = by_hand(MemorySpace.RIGHT, 64, 256)
    assert tile_matmul(program, load_target("ascend910b")) is program
    tiled(program, "ascend910b")


def test_a_tile_that_its_user_placed_and_that_does_not_fit() -> None:
    with pytest.raises(CapacityError, match="'right' does not fit Right") as caught:
        tile_matmul(by_hand(MemorySpace.RIGHT, 256, 256), load_target("ascend910b"))
    error = caught.value
    assert "131,072" in (error.found or "") and "65,536" in (error.required or "")
    assert error.span is not None and error.span.line == 3
    tiled(by_hand(MemorySpace.MAT, 256, 256), "ascend910b")  # what the help says


def test_not_even_one_box_fits() -> None:
    tiny = load_target("ascend910b").with_capacity(Acc=512)
    with pytest.raises(CapacityError, match="smallest tile"):
        tile_matmul(product("plain", FP32, 16, 16, 16), tiny)


# --- what is decided ----------------------------------------------------------------------------------------------
def test_what_fits_stays() -> None:
    program = product("plain", BF16, 64, 64, 64)
    assert tile_matmul(program, load_target("ascend910b")) is program


def test_operands_larger_than_the_big_memory_are_loaded_in_parts() -> None:
    final = tiled(product("plain", BF16, 1000, 1000, 1000), "ascend910b")
    assert len(ops_of(final, Load)) > 2
    final = tiled(product("plain", BF16, 320, 320, 64), "ascend910b")
    assert len(ops_of(final, Load)) == 2


@pytest.mark.parametrize(
    ("form", "dtype", "sizes", "target"),
    [
        ("trans_a", FP16, (257, 200, 320), "ascend910b"),  # windows of several K steps do not wait for the next tile
        ("trans_a", FP16, (257, 1000, 257), "ascend910b"),
        ("plain", INT8, (1000, 200, 257), "ascend910b"),  # nor does a tail of what moves
        ("bias", FP32, (1000, 16, 127), "ascend950"),  # the bias passes through the big memory, too
        ("bias", FP32, (1000, 200, 100), "ascend910b"),  # K is whole boxes of Left, larger than those of Mat
        ("bias", BF16, (127, 1000, 31), "ascend910b"),  # parts of a bias that do not fit beside each other
    ],
)
def test_what_a_tile_used_makes_room_for_the_next(
    form: str, dtype: DType, sizes: tuple[int, int, int], target: str
) -> None:
    check_combination(form, dtype, *sizes, target)


def test_the_loops_along_k_are_pipelined() -> None:
    after = tile_matmul(product("plain", FP32, 65, 200, 1000), load_target("ascend910b"))
    loops = [stmt for stmt in after.main.walk() if isinstance(stmt, For)]
    assert [(loop.kind, loop.stage) for loop in loops] == [(LoopKind.PIPELINE, 2)]


def test_the_plan_says_what_was_chosen() -> None:
    machine = load_target("ascend910b")
    plan = plan_tiles(product("plain", BF16, 320, 320, 64), machine)
    (found,) = plan.functions["main"].chosen
    assert (found.tile.m, found.tile.n, found.tile.k) == (112, 128, 64)
    text = str(plan)
    assert "tiles of 112 x 128" in text and "limit" in text and "stored to out_1" in text
    assert str(plan_tiles(product("plain", BF16, 320, 320, 64), machine)) == text


def test_many_products_take_time_in_proportion() -> None:
    """Statements of the result grow with those of the program, not faster."""
    sizes: list[int] = []
    for count in (8, 16):
        b = Builder()
        out = b.tensor("out", (320, 320 * count), FP32, out=True)
        for at in range(count):
            x = b.load("x", b.tensor(f"a{at}", (320, 64), BF16))
            y = b.load("y", b.tensor(f"b{at}", (64, 320), BF16))
            out = b.let("out", Store(b.let("made", Matmul(x, y)), (0, 320 * at), out))
        after = tile_matmul(b.program(out), load_target("ascend910b"))
        sizes.append(sum(1 for _ in after.main.walk()))
    assert sizes[1] < 2.1 * sizes[0]


def test_interpreted_with_poison_around() -> None:
    """Arrays with NaN around them: nothing outside is read."""
    program = product("plain", BF16, 65, 33, 100)
    final = tiled(program, "ascend910b")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(BF16.numpy) for shape in ((65, 100), (100, 33)))
    views = [np.full(tuple(s + 2 for s in v.shape), np.nan, BF16.numpy) for v in (a, b)]
    for whole, values in zip(views, (a, b), strict=True):
        whole[1:-1, 1:-1] = values
    out = np.full((65, 33), np.nan, np.float32)
    interpret(final, [views[0][1:-1, 1:-1], views[1][1:-1, 1:-1], out])
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32))


def test_the_page_shows_a_golden_test() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "passes" / "tile_matmul.md").read_text()
    linked = re.search(r"\[the whole test\]\(\.\./\.\./(\S+?)\)", page)
    assert linked is not None
    halves = (root / linked[1]).read_text().split("\n# -----\n")
    shown = re.findall(r"^```python\n(.*?)^```", page, flags=re.S | re.M)
    for half, block in zip(halves, shown, strict=True):
        program = half.split("class Program:\n")[1]
        assert [line.strip() for line in block.splitlines()] == [line.strip() for line in program.strip().splitlines()]
