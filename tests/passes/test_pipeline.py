"""Pipelines (matmul R16): results are those of depth 1 at every depth, and slots are what they are said to be."""

from __future__ import annotations

import numpy as np
import pytest
from meaning import outcome
from properties.judges import judge_pto
from run.running import ASCEND, everywhere, incore
from support import exact_ints, poison

from tilewright import parse
from tilewright.compiler import lower, placed, unplaced
from tilewright.errors import UnsupportedError
from tilewright.ir.function import Program
from tilewright.ir.nodes import For, If, Let, LoopKind, walk
from tilewright.ir.op import Op
from tilewright.ir.types import TileType
from tilewright.passes.memory.fitting import misfit
from tilewright.passes.tile.pipeline import REDUCED, pipeline, plan_pipelines
from tilewright.report import explain
from tilewright.targets import Target, load_target

VECTOR = (
    "n: pl.Scalar[pl.INDEX], a: pl.Tensor[[128, 64], pl.FP32], b: pl.Tensor[[16, 64], pl.FP32], "
    "out: pl.Out[pl.Tensor[[128, 64], pl.FP32]]"
)
ROWS = """
s = pl.tile.load(b, [0, 0], [16, 64])
for i, (o, acc) in pl.pipeline({range}, stage={stage}, init_values=(out, s)):
    x = pl.tile.load(a, [i * 16, 0], [16, 64])
    y = pl.tile.muls(x, 2.0)
    z = pl.tile.add(y, acc)
    o_1 = pl.tile.store(z, [i * 16, 0], o)
    acc_1 = pl.tile.add(acc, x)
    o_2, acc_2 = pl.yield_(o_1, acc_1)
return o_2
"""


def before(program: Program, target: Target) -> Program:
    """What the pass gets."""
    *_, (_, tiles) = unplaced(program, target)
    return next(stage for name, stage in placed(tiles, target) if name == "legalize_layouts")


def loops(program: Program) -> list[For]:
    return [s for f in program.functions for s in f.walk() if isinstance(s, For)]


# --- results ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize("trips", [0, 1, 2, 3, 5, 8])
def test_every_depth_gives_what_depth_one_gives(stage: int, trips: int) -> None:
    a, b = exact_ints((128, 64), seed=1), exact_ints((16, 64), seed=2)
    wanted, state = poison((128, 64)), b.copy()
    for i in range(trips):
        x = a[16 * i : 16 * i + 16]
        wanted[16 * i : 16 * i + 16] = 2 * x + state
        state = state + x
    text = incore(VECTOR, ROWS.format(range="0, n, 1", stage=stage))
    everywhere(text, [trips, a, b, poison((128, 64))], [wanted])


@pytest.mark.parametrize("bounds", [(0, 8, 1), (1, 8, 2), (7, 8, 3), (2, 7, 1), (3, 3, 1)])
@pytest.mark.parametrize("stage", [2, 3, 9])
def test_constant_bounds(bounds: tuple[int, int, int], stage: int) -> None:
    a, b = exact_ints((128, 64), seed=1), exact_ints((16, 64), seed=2)
    wanted, state = poison((128, 64)), b.copy()
    for i in range(*bounds):
        x = a[16 * i : 16 * i + 16]
        wanted[16 * i : 16 * i + 16] = 2 * x + state
        state = state + x
    text = incore(VECTOR, ROWS.format(range=", ".join(map(str, bounds)), stage=stage))
    everywhere(text, [0, a, b, poison((128, 64))], [wanted])


def test_a_loop_that_counts_down() -> None:
    text = incore(VECTOR, ROWS.format(range="6, n, -2", stage=2))
    a, b = exact_ints((128, 64), seed=1), exact_ints((16, 64), seed=2)
    wanted, state = poison((128, 64)), b.copy()
    for i in range(6, -1, -2):
        x = a[16 * i : 16 * i + 16]
        wanted[16 * i : 16 * i + 16] = 2 * x + state
        state = state + x
    everywhere(text, [-1, a, b, poison((128, 64))], [wanted], native=False, emulated=False)


PRODUCT = (
    "n: pl.Scalar[pl.INDEX], a: pl.Tensor[[{m}, 200], pl.FP16], b: pl.Tensor[[200, {c}], pl.FP16], "
    "out: pl.Out[pl.Tensor[[{m}, {c}], pl.FP32]]"
)
SUMS = {
    "condition of the product": """
seed = pl.tile.create([{m}, {c}], pl.FP32, target_memory=pl.Mem.Acc)
for k, (acc,) in pl.pipeline(0, n, 32, stage={stage}, init_values=(seed,)):
    x = pl.tile.load(a, [0, k], [{m}, 32], target_memory=pl.Mem.Mat, clamp=True, pad_value=pl.PadValue.zero)
    y = pl.tile.load(b, [k, 0], [32, {c}], target_memory=pl.Mem.Mat, clamp=True, pad_value=pl.PadValue.zero)
    acc_1 = pl.tile.matmul_acc(acc, x, y, init_cond=k == 0)
    acc_2 = pl.yield_(acc_1)
out_1 = pl.tile.store(acc_2, [0, 0], out)
return out_1
""",
    "a branch": """
seed = pl.tile.create([{m}, {c}], pl.FP32)
for k, (acc,) in pl.pipeline(0, n, 32, stage={stage}, init_values=(seed,)):
    x = pl.tile.load(a, [0, k], [{m}, 32], target_memory=pl.Mem.Mat, clamp=True, pad_value=pl.PadValue.zero)
    y = pl.tile.load(b, [k, 0], [32, {c}], target_memory=pl.Mem.Mat, clamp=True, pad_value=pl.PadValue.zero)
    if k > 0:
        more = pl.tile.matmul_acc(acc, x, y)
        sum = pl.yield_(more)
    else:
        first = pl.tile.matmul(x, y)
        sum = pl.yield_(first)
    acc_2 = pl.yield_(sum)
out_1 = pl.tile.store(acc_2, [0, 0], out)
return out_1
""",
    "zeros": """
seed = pl.tile.full([{m}, {c}], pl.FP32, 0.0)
for k, (acc,) in pl.pipeline(0, 200, 32, stage={stage}, init_values=(seed,)):
    x = pl.tile.load(a, [0, k], [{m}, 32], clamp=True, pad_value=pl.PadValue.zero)
    y = pl.tile.load(b, [k, 0], [32, {c}], clamp=True, pad_value=pl.PadValue.zero)
    acc_1 = pl.tile.matmul_acc(acc, x, y)
    acc_2 = pl.yield_(acc_1)
out_1 = pl.tile.store(acc_2, [0, 0], out)
return out_1
""",
}  # fmt: skip


@pytest.mark.parametrize("form", SUMS)
@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize(("m", "c"), [(16, 64), (33, 17)])
def test_sums_of_products(form: str, stage: int, m: int, c: int) -> None:
    a, b = exact_ints((m, 200), np.float16, seed=1), exact_ints((200, c), np.float16, seed=2)
    wanted = a.astype(np.float32) @ b.astype(np.float32)
    text = incore(PRODUCT.format(m=m, c=c), SUMS[form].format(m=m, c=c, stage=stage))
    everywhere(text, [200, a, b, poison((m, c))], [wanted], ASCEND)


@pytest.mark.parametrize("target", ASCEND)
@pytest.mark.parametrize("stage", [2, 3])
@pytest.mark.parametrize("form", SUMS)
def test_flags_order_the_slots(form: str, stage: int, target: str) -> None:
    """With explicit synchronisation the emulator finds no race between slots."""
    given = [
        200,
        exact_ints((33, 200), np.float16, seed=1),
        exact_ints((200, 17), np.float16, seed=2),
        poison((33, 17)),
    ]
    program = parse(incore(PRODUCT.format(m=33, c=17), SUMS[form].format(m=33, c=17, stage=stage)))
    machine = load_target(target)
    judge_pto(lower(program, machine), machine, given, outcome(program, given), sync="explicit")


# --- slots --------------------------------------------------------------------------------------------------------
def addresses(program: Program, target: Target, op: str) -> list[list[int]]:
    """For each loop: the addresses of the results of `op` in its body, in order."""
    found: list[list[int]] = []
    for loop in loops(lower(program, target)):
        made = [
            s.target.type
            for s in walk(loop.body)
            if isinstance(s, Let) and isinstance(s.value, Op) and s.value.name == op
        ]
        refs = [kind.memref for kind in made if isinstance(kind, TileType)]
        found.append([ref.addr for ref in refs if ref is not None and ref.addr is not None])
    return found


@pytest.mark.parametrize("target", ASCEND)
@pytest.mark.parametrize("stop", ["8", "n"])
@pytest.mark.parametrize("stage", [2, 3])
def test_the_slot_of_a_trip_is_its_number_modulo_the_depth(target: str, stop: str, stage: int) -> None:
    program = parse(incore(VECTOR, ROWS.format(range=f"0, {stop}, 1", stage=stage)))
    main, *rest = addresses(program, load_target(target), "load")
    assert len(set(main)) == stage
    for left in rest:
        assert left == main[: len(left)]
    assert [len(left) for left in rest] == ([stage - 1] if stop == "n" else [8 % stage] if 8 % stage else [])


@pytest.mark.parametrize("target", ASCEND)
def test_the_accumulator_is_there_once(target: str) -> None:
    program = parse(incore(PRODUCT.format(m=16, c=64), SUMS["condition of the product"].format(m=16, c=64, stage=3)))
    assert {a for found in addresses(program, load_target(target), "matmul_acc") for a in found} == {0}


@pytest.mark.parametrize("form", ["condition of the product", "a branch"])
def test_only_the_first_slot_asks_whether_it_is_the_first_trip(form: str) -> None:
    machine = load_target("ascend910b")
    program = parse(incore(PRODUCT.format(m=16, c=64), SUMS[form].format(m=16, c=64, stage=3)))
    first, _ = loops(pipeline(before(program, machine), machine))
    inner = list(walk(first.body))
    asked = sum(isinstance(s, If) for s in inner) + str(pipeline(before(program, machine), machine)).count(
        "init_cond=i"
    )
    assert asked <= 1


# --- what fits ----------------------------------------------------------------------------------------------------
TWO = """
for i, (o,) in pl.pipeline(0, 8, 1, stage=2, init_values=(out,)):
    for j, (p,) in pl.pipeline(0, 4, 1, stage=2, init_values=(o,)):
        x = pl.tile.load(a, [i * 16, j * 16], [16, 16])
        e = pl.tile.neg(x)
        p_1 = pl.tile.store(e, [i * 16, j * 16], p)
        p_2 = pl.yield_(p_1)
    y = pl.tile.load(a, [i * 16, 0], [16, 64])
    z = pl.tile.neg(y)
    q = pl.tile.store(z, [i * 16, 0], p_2)
    o_2 = pl.yield_(q)
return o_2
"""
TWICE = """
for i, (o,) in pl.pipeline(0, 8, 1, stage=2, init_values=(out,)):
    x = pl.tile.load(b, [0, 0], [16, 64])
    y = pl.tile.neg(x)
    p = pl.tile.store(y, [i * 16, 0], o)
    z = pl.tile.load(a, [i * 16, 0], [16, 64])
    w = pl.tile.neg(z)
    q = pl.tile.store(w, [i * 16, 0], p)
    o_2 = pl.yield_(q)
return o_2
"""


def test_a_depth_that_does_not_fit_is_reduced_and_reported() -> None:
    text = incore(VECTOR, ROWS.format(range="0, 8, 1", stage=4))
    for capacity, depth in ((1 << 16, 4), (40_000, 4), (28_000, 2), (16_384, 1)):
        machine = load_target("ascend910b").with_capacity(Vec=capacity)
        given = before(parse(text), machine)
        plan = plan_pipelines(given, machine)
        assert list(plan.depths.values()) == [depth], f"{capacity}: {plan}"
        assert [hint.code for hint in plan.hints] == ([REDUCED] if depth < 4 else [])
        for hint in plan.hints:
            assert f"has depth {depth}, not 4" in str(hint) and f"{capacity:,}" in str(hint)
            assert hint.span.line == loops(given)[0].span.line
        assert misfit(pipeline(given, machine).main, machine) is None


def test_explain_prints_what_was_reduced() -> None:
    program = parse(incore(VECTOR, ROWS.format(range="0, 8, 1", stage=4)))
    machine = load_target("ascend910b")
    assert explain(program, machine).hints == ()
    told = explain(program, machine.with_capacity(Vec=28_000))
    (hint,) = told.hints
    assert hint.startswith(f"{REDUCED} (line ") and "has depth 2, not 4" in hint
    assert hint in str(told)


def test_in_the_end_the_loop_is_a_plain_one() -> None:
    """Two tiles that are never alive together fit where two buffers do not."""
    for capacity, depth, kind in ((8192, 1, LoopKind.PIPELINE), (4096, 0, LoopKind.SEQUENTIAL)):
        machine = load_target("ascend910b").with_capacity(Vec=capacity)
        given = before(parse(incore(VECTOR, TWICE)), machine)
        plan = plan_pipelines(given, machine)
        assert list(plan.depths.values()) == [depth]
        assert "has depth 1, not 2" in str(plan)
        (loop,) = loops(pipeline(given, machine))
        assert loop.kind is kind
        lower(parse(incore(VECTOR, TWICE)), machine)


def test_inner_loops_are_served_first() -> None:
    machine = load_target("ascend910b").with_capacity(Vec=6144)
    plan = plan_pipelines(before(parse(incore(VECTOR, TWO)), machine), machine)
    assert {loop.iv.name: depth for loop, depth in plan.depths.items()} == {"j": 2, "i": 1}
    assert [hint.message.split(":")[0] for hint in plan.hints] == ["the loop over i has depth 1, not 2"]


def test_what_never_fits_is_left_to_the_planner_of_addresses() -> None:
    machine = load_target("ascend910b").with_capacity(Vec=4096)
    given = before(parse(incore(VECTOR, ROWS.format(range="0, 8, 1", stage=2))), machine)
    plan = plan_pipelines(given, machine)
    assert not plan.hints
    assert misfit(pipeline(given, machine).main, machine) is not None


def test_a_step_that_is_not_constant_is_reported() -> None:
    machine = load_target("ascend910b")
    plan = plan_pipelines(before(parse(incore(VECTOR, ROWS.format(range="0, 8, n", stage=2))), machine), machine)
    assert [hint.code for hint in plan.hints] == [REDUCED]
    assert "known only at run time" in str(plan)


def test_too_many_copies_are_refused() -> None:
    text = incore(VECTOR, ROWS.format(range="0, n, 1", stage=20_000))
    machine = load_target("ascend910b")
    with pytest.raises(UnsupportedError, match="too long"):
        pipeline(before(parse(text), machine), machine)


def test_a_program_without_pipelines_stays_itself() -> None:
    machine = load_target("ascend910b")
    given = before(
        parse(
            incore(VECTOR, ROWS.format(range="0, 8, 1", stage=2).replace("pipeline", "range").replace(", stage=2", ""))
        ),
        machine,
    )
    assert pipeline(given, machine) is given
