"""matmul R2-R4: the tile chooser."""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from exhaustive_tiles import MACHINES, Case, Machine, best
from exhaustive_tiles import SCRATCHPAD as SCRATCHPAD_MACHINE

from tilewright.analysis.footprint import footprint
from tilewright.analysis.tile_chooser import (
    L0,
    PANELS,
    L0Tile,
    Level,
    Problem,
    Stationary,
    alignment,
    choose_l0_tile,
    roofline,
)
from tilewright.errors import CapacityError, NoRouteError, ShapeError, TargetError
from tilewright.ir.dtypes import BF16, FP16, FP32, INT4, INT8, INT32, DType
from tilewright.ir.layout import MemorySpace
from tilewright.ir.types import TileType
from tilewright.targets import Target, load_target

ASCEND = ("ascend910b", "ascend950")
SCRATCHPAD = "examples/targets/scratchpad.toml"
DTYPES = {"f16": FP16, "bf16": BF16, "f32": FP32, "i8": INT8}
EXTENTS = (1, 15, 16, 17, 31, 33, 63, 64, 65, 72, 100, 127, 128, 200, 257, 320, 512, 1000)


def problem_of(case: Case) -> Problem:
    dtype = DTYPES[case.kind]
    acc = INT32 if dtype is INT8 else FP32
    return Problem(case.m, case.n, case.k, dtype, acc, case.bias, accumulators=case.accumulators)


# --- against an exhaustive search -------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("seed", range(2))
def test_equals_exhaustive_search(name: str, seed: int) -> None:
    """500 problems in all, half of them with less memory, so that every constraint binds."""
    draw = random.Random(f"{name} {seed}")
    for _ in range(50):
        machine, target = MACHINES[name], load_target(name)
        case = random_case(draw, machine)
        if draw.random() < 0.5:
            machine, target = less_memory(draw, machine, target)
        compare(machine, target, case)


@pytest.mark.parametrize("drains", [True, False])
def test_ties_go_in_the_stated_order(drains: bool) -> None:
    """A machine on which neither starting nor latency costs anything (nor draining, perhaps) has many equal tiles."""
    draw = random.Random(f"ties {drains}")
    rate = 32 if drains else float("inf")

    def drain(m: int, n: int) -> float:
        return m * n * 4 / rate

    free = replace(SCRATCHPAD_MACHINE, head=0, drain=drain, accumulators=2)
    target = load_target(SCRATCHPAD)
    edges = tuple(
        replace(edge, latency=0, bytes_per_cycle=rate if edge.src == "ACC" else edge.bytes_per_cycle)
        for edge in target.edges
    )
    price = replace(target.matmul, head=0, max_accumulators=2)
    for _ in range(40):
        machine, tight = less_memory(draw, free, replace(target, edges=edges, matmul=price))
        m, n, k = (8 * draw.choice((1, 2, 3, 4, 6, 8, 12, 16)) for _ in range(3))
        compare(machine, tight, Case(m, n, k, draw.choice(("bf16", "f32", "i8"))))


def test_a_larger_k_that_fills_the_boxes_better_may_win() -> None:
    """80 int8 in steps of 40 take 2 + 2 boxes of 32; in steps of 48 they take 2 + 1."""
    machine, target = replace(SCRATCHPAD_MACHINE, left=3072), load_target(SCRATCHPAD).with_capacity(Left=3072)
    case = Case(16, 16, 80, "i8")
    compare(replace(machine, head=0), replace(target, matmul=replace(target.matmul, head=0)), case)


def random_case(draw: random.Random, machine: Machine) -> Case:
    """Small extents, with one large one now and then."""
    step = max(1, machine.boxes[2][0])
    extents = [draw.choice((draw.randint(1, 9 * step), draw.randint(1, 200 if step > 1 else 40))) for _ in range(3)]
    if draw.random() < 0.3:
        extents[draw.randrange(3)] = draw.choice((257, 320, 512, 1000, 4095, 4096))
    kind = draw.choice(sorted(machine.kinds))
    m, n, k = extents
    return Case(m, n, k, kind, bias=draw.random() < 0.3, accumulators=draw.choice((1, 2)))


def less_memory(draw: random.Random, machine: Machine, target: Target) -> tuple[Machine, Target]:
    """Both with the same smaller capacities, from one box of each part upwards."""
    unit = 1024 if machine.boxes[2][0] > 1 else 64
    if machine.one_memory:
        left, acc = (unit * draw.choice((1, 2, 3, 8, 24)) for _ in range(2))
        return replace(machine, left=left, acc=acc), target.with_capacity(Left=left, Acc=acc)
    left, right, acc = (unit * draw.choice((1, 2, 3, 8, 24)) for _ in range(3))
    return replace(machine, left=left, right=right, acc=acc), target.with_capacity(Left=left, Right=right, Acc=acc)


def compare(machine: Machine, target: Target, case: Case) -> None:
    expected = best(machine, case)
    if expected is None:
        with pytest.raises(CapacityError):
            choose_l0_tile(problem_of(case), target)
        return
    found = choose_l0_tile(problem_of(case), target)
    extents, held, accumulators, wall = expected
    assert ((found.m, found.n, found.k), found.stationary.value, found.accumulators) == (
        extents,
        held,
        accumulators,
    ), f"{case} on {target}: {found} against {wall}"
    assert found.cycles.wall == pytest.approx(wall, rel=1e-9)


# --- known answers ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("extents", "dtype", "accumulators", "tile"),
    [
        ((320, 320, 64), BF16, 1, (160, 128, 64)),
        ((320, 320, 64), BF16, None, (112, 128, 64)),
        ((16, 512, 128), BF16, None, (16, 128, 128)),
        ((320, 320, 64), FP32, None, (64, 128, 64)),
    ],
)
def test_known_answers_on_the_910b(
    extents: tuple[int, int, int], dtype: DType, accumulators: int | None, tile: tuple[int, int, int]
) -> None:
    problem = Problem(*extents, dtype, FP32, accumulators=accumulators)
    found = choose_l0_tile(problem, load_target("ascend910b"))
    assert (found.m, found.n, found.k) == tile
    assert found.accumulators == (accumulators or 2)
    assert found.grid(problem)[2] == 1


@pytest.mark.parametrize("name", ASCEND)
@pytest.mark.parametrize(
    ("dtype", "acc", "aligned"),
    [(FP16, FP32, (16, 16, 16)), (BF16, FP32, (16, 16, 16)), (FP32, FP32, (16, 16, 16)), (INT8, INT32, (16, 32, 32))],
)
def test_alignment_of_ascend(name: str, dtype: DType, acc: DType, aligned: tuple[int, int, int]) -> None:
    assert alignment(Problem(100, 100, 100, dtype, acc), load_target(name)) == aligned


def test_alignment_follows_the_boxes_of_a_transposed_operand() -> None:
    target = load_target("ascend910b")
    assert alignment(Problem(64, 64, 64, INT8, INT32, a_trans=True), target) == (32, 32, 32)
    assert alignment(Problem(64, 64, 64, INT8, INT32, b_trans=True), target) == (16, 32, 32)
    assert alignment(Problem(64, 64, 64, FP16, FP32, a_trans=True, b_trans=True), target) == (16, 16, 16)


def test_registers_of_a_cpu() -> None:
    """AMX: 2 x 2 accumulators of 16 x 16. AVX-512: enough accumulators that loads do not limit, k one by one."""
    amx = choose_l0_tile(Problem(512, 512, 512, BF16, FP32), load_target("x86_amx"))
    assert (amx.m, amx.n, amx.k, amx.stationary) == (32, 32, 32, Stationary.OUTPUT)
    avx = choose_l0_tile(Problem(512, 512, 512, FP32, FP32), load_target("x86_avx512"))
    assert (avx.k, avx.stationary) == (1, Stationary.OUTPUT)
    assert 16 <= avx.m * avx.n // 16 <= 28
    assert avx.limit == "multiply"


def test_multiples_of_a_memory_on_the_way_give_way_to_registers() -> None:
    """AMX, int8: packed columns come by 64, of which the registers of the right operand hold no 64 x 64."""
    target = load_target("x86_amx")
    assert alignment(Problem(512, 512, 512, BF16, FP32), target) == (16, 32, 32)
    assert alignment(Problem(512, 512, 512, INT8, INT32), target) == (16, 16, 64)
    tile = choose_l0_tile(Problem(512, 512, 512, INT8, INT32), target)
    assert (tile.m, tile.n, tile.k) == (32, 32, 64)


def test_panels_of_a_cache() -> None:
    """The same search one level further out: panels of A and B share the cache."""
    target = load_target("x86_avx512")
    problem = Problem(1000, 1000, 1000, FP32, FP32)
    tile = choose_l0_tile(problem, target, PANELS)
    assert_legal(tile, problem, target, PANELS)
    smaller = choose_l0_tile(problem, target.with_capacity(Mat=65536), PANELS)
    assert smaller.k * (smaller.m + smaller.n) * 4 <= 65536 < tile.k * (tile.m + tile.n) * 4


# --- constraints ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [*ASCEND, "x86_amx", "x86_avx512", "x86_avx2", "generic", SCRATCHPAD])
@pytest.mark.parametrize("kind", DTYPES)
def test_every_tile_is_legal(name: str, kind: str) -> None:
    target = load_target(name)
    draw = random.Random(f"{name} {kind}")
    for m, n, k in draw.sample(list(itertools.product(EXTENTS, repeat=3)), 25):
        problem = problem_of(Case(m, n, k, kind, bias=draw.random() < 0.4))
        tile = choose_l0_tile(problem, target)
        assert_legal(tile, problem, target)
        assert not tile.fallback
        assert tile.cycles.wall >= roofline(problem, target).wall * (1 - 1e-9)


def assert_legal(tile: L0Tile, problem: Problem, target: Target, level: Level = L0) -> None:
    """R3: fits with its buffers (roles of one memory together), aligned, one issue, no larger than it need be."""
    buffers = [
        (TileType((tile.m, tile.k), problem.dtype, level.lhs), tile.lhs_buffers),
        (TileType((tile.k, tile.n), problem.rhs, level.rhs), tile.rhs_buffers),
        (TileType((tile.m, tile.n), problem.acc_dtype, level.acc), tile.accumulators),
    ]
    if problem.bias:
        buffers.append((TileType((1, tile.n), problem.acc_dtype, level.bias), 1))
    taken: dict[str, int] = {}
    for part, count in buffers:
        assert part.space is not None
        memory = target.memory(part.space).name
        taken[memory] = taken.get(memory, 0) + footprint(part, target) * count
    for memory, nbytes in taken.items():
        assert nbytes <= target.capacity(target.roles_of(memory)[0]), f"{memory}: {nbytes} bytes for {tile}"
    aligned = alignment(problem, target, level)
    for extent, whole, step in zip((tile.m, tile.n, tile.k), (problem.m, problem.n, problem.k), aligned, strict=True):
        assert extent % step == 0
        assert extent < whole + step
        assert not level.one_issue or extent <= target.matmul.max_extent
    assert tile.stationary is Stationary.OUTPUT or tile.k >= problem.k
    assert tile.accumulators <= target.matmul.max_accumulators


def test_int32_accumulator_rows_count_by_32_on_the_910b() -> None:
    """16 rows take the room of 32, so that half as many columns fit."""
    for name, n in (("ascend910b", 1024), ("ascend950", 2048)):
        problem = Problem(16, 4000, 32, INT8, INT32, accumulators=1)
        tile = choose_l0_tile(problem, load_target(name))
        assert_legal(tile, problem, load_target(name))
        assert tile.n <= n


def test_operands_that_share_a_memory_fit_it_together() -> None:
    target = load_target(SCRATCHPAD).with_capacity(Left=8192)
    problem = Problem(128, 128, 128, FP32, FP32, bias=True)
    tile = choose_l0_tile(problem, target)
    assert_legal(tile, problem, target)
    operands = (tile.m * tile.k * tile.lhs_buffers + tile.k * tile.n * tile.rhs_buffers + tile.n) * 4
    assert 4096 < operands <= 8192


def test_bias_bounds_the_width() -> None:
    target = load_target("ascend910b")
    assert choose_l0_tile(Problem(16, 2000, 16, BF16, FP32, accumulators=1), target).n > 256
    assert choose_l0_tile(Problem(16, 2000, 16, BF16, FP32, True, accumulators=1), target).n <= 256


def test_one_issue_is_at_most_4095() -> None:
    target = load_target("ascend910b").with_capacity(Left=1 << 24, Right=1 << 24, Acc=1 << 26)
    problem = Problem(16, 16, 4090, BF16, FP32)
    tile = choose_l0_tile(problem, target)
    assert (tile.k, tile.grid(problem)) == (2048, (1, 1, 2))


# --- what it says -----------------------------------------------------------------------------------------------------
def test_answer_depends_on_its_arguments_alone() -> None:
    problems = [Problem(m, n, k, BF16, FP32) for m, n, k in itertools.product((17, 200, 1000), repeat=3)]
    targets = [load_target(name) for name in ASCEND]
    first = {(problem, target.name): choose_l0_tile(problem, target) for problem in problems for target in targets}
    choose_l0_tile.cache_clear()
    for target in reversed(targets):
        twin = target.with_capacity(Acc=target.capacity(MemorySpace.ACC))
        for problem in reversed(problems):
            assert choose_l0_tile(problem, target) == first[problem, target.name]
            assert choose_l0_tile(problem, twin) == first[problem, target.name]


def test_it_is_cached_by_problem() -> None:
    target = load_target("ascend910b")
    problem = Problem(321, 320, 64, BF16, FP32)
    assert choose_l0_tile(problem, target) is choose_l0_tile(Problem(321, 320, 64, BF16, FP32), target)


def test_description(capsys: pytest.CaptureFixture[str]) -> None:
    """The page's example prints what the page shows."""
    page = (Path(__file__).parents[2] / "docs/tiling.md").read_text()
    blocks = re.findall(r"```(python|text)\n(.*?)```", page, re.DOTALL)
    scope: dict[str, object] = {}
    for language, block in blocks:
        if language == "python":
            exec(block, scope)
    assert [block for language, block in blocks if language == "text"] == [capsys.readouterr().out]
    panels = scope["panels"]
    assert isinstance(panels, L0Tile)
    assert_legal(panels, Problem(1000, 1000, 1000, FP32, FP32), load_target("x86_avx512"), PANELS)


def test_a_problem_of_one_tile_has_no_runner_up() -> None:
    problem = Problem(16, 16, 16, BF16, FP32)
    tile = choose_l0_tile(problem, load_target("ascend910b"))
    assert tile.runner_up is None
    assert "runner-up" not in tile.describe(problem)
    assert tile.grid(problem) == (1, 1, 1)
    assert tile.stationary is Stationary.A


def test_moving_operands_without_room_for_two_buffers_have_one() -> None:
    """It always finds a tile when the smallest box fits; loads then wait for multiplications."""
    target = load_target("ascend910b").with_capacity(Left=512, Right=512, Acc=1024)
    problem = Problem(64, 64, 64, BF16, FP32)
    tile = choose_l0_tile(problem, target)
    assert (tile.m, tile.n, tile.k, tile.lhs_buffers, tile.rhs_buffers) == (16, 16, 16, 1, 1)
    assert tile.fallback
    assert tile.cycles.wall == pytest.approx(tile.cycles.load + tile.cycles.multiply + tile.cycles.drain)
    assert "single buffers" in str(tile)


def test_capacity_error_names_the_logical_and_the_physical_minimum() -> None:
    target = load_target("ascend910b").with_capacity(Acc=2048)
    with pytest.raises(CapacityError) as raised:
        choose_l0_tile(Problem(5, 1000, 1000, INT8, INT32), target)
    assert raised.value.required == "m=5, n=32, k=32: Acc [5, 32], 4096 bytes physical"
    assert raised.value.found == "Acc holds 2048 bytes"
    assert "5 x 1000 x 1000 INT8 -> INT32" in raised.value.message
    assert raised.value.help


def test_capacity_error_adds_up_a_shared_memory() -> None:
    target = load_target(SCRATCHPAD).with_capacity(Left=500)
    with pytest.raises(CapacityError) as raised:
        choose_l0_tile(Problem(8, 8, 3, FP32, FP32, bias=True), target)
    assert raised.value.required == ("m=8, n=8, k=3: Left [8, 3] and Right [3, 8] and Bias [1, 8], 544 bytes physical")
    assert raised.value.found == "Left, Right, Bias together hold 500 bytes"


def test_mistakes_have_their_own_errors() -> None:
    target = load_target("ascend910b")
    with pytest.raises(ShapeError, match="at least one row"):
        Problem(0, 16, 16, BF16, FP32)
    with pytest.raises(NoRouteError):
        choose_l0_tile(Problem(16, 16, 16, INT4, INT32), target)
    without = Level(MemorySpace.LEFT_SCALE, MemorySpace.RIGHT, MemorySpace.ACC, MemorySpace.BIAS, MemorySpace.MAT)
    with pytest.raises(TargetError, match="LeftScale"):
        choose_l0_tile(Problem(16, 16, 16, BF16, FP32), target, without)
