"""Timelines against schedules worked out by hand, against a second schedule of random programs, and against what must
hold for every program."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from analysis.test_hazards import TARGET, Drawing, Unrolled, applies
from execute.toy import pair, program, tile, toy
from properties.judges import ASCEND, load_example

import tilewright.language as pl
from tilewright.analysis.hazards import hazards
from tilewright.errors import UnsupportedError
from tilewright.execute import unfold
from tilewright.execute.instructions import Price, price_of
from tilewright.execute.schedule import Lane, schedule
from tilewright.execute.simulation import SimulationResult
from tilewright.execute.simulator import simulate
from tilewright.execute.unfold import Stream
from tilewright.ir.function import Program
from tilewright.ir.op import Op

EXAMPLES = {
    "softmax": "softmax.py",
    "rmsnorm": "rmsnorm.py",
    "chain": "elementwise.py",
    "matmul": "matmul.py",
    "chained": "chained_matmul.py",
    "classify": "digits/kernel.py",
}
DIGITS = ((1797, 64), (64, 128), (1, 128), (128, 10), (1, 10), (1797, 10))


def simulated(kernel: str, target: str) -> SimulationResult:
    """An example on the arguments of its file."""
    module = load_example(EXAMPLES[kernel])
    digits = [np.zeros(shape, np.float32) for shape in DIGITS]
    arguments: Any = digits if kernel == "classify" else module.arguments()
    return getattr(module, kernel).simulate(*arguments, target=target)


@pl.jit
def single(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows = x.shape[0]
    for i in pl.pipeline(0, rows, 16, stage=1):
        valid = pl.min(16, rows - i)
        tile = pl.load(x, [i, 0], [16, 128], valid_shape=[valid, 128])
        out = pl.store(pl.exp(tile), [i, 0], out)
    return out


@pl.jit
def double(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows = x.shape[0]
    for i in pl.pipeline(0, rows, 16, stage=2):
        valid = pl.min(16, rows - i)
        tile = pl.load(x, [i, 0], [16, 128], valid_shape=[valid, 128])
        out = pl.store(pl.exp(tile), [i, 0], out)
    return out


@pl.jit
def triple(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows = x.shape[0]
    for i in pl.pipeline(0, rows, 16, stage=3):
        valid = pl.min(16, rows - i)
        tile = pl.load(x, [i, 0], [16, 128], valid_shape=[valid, 128])
        out = pl.store(pl.exp(tile), [i, 0], out)
    return out


def times(found: SimulationResult) -> list[tuple[str, float, float]]:
    """Engine, start and end of every instruction of the one block."""
    (item,) = found.played
    (lane,) = item.lanes
    return [
        (item.code.listed[step].engine, start, end)
        for step, start, end in zip(lane.stream.steps, lane.starts, lane.ends, strict=True)
    ]


# --- worked out by hand -------------------------------------------------------------------------------------------
def test_a_serial_chain(tmp_path: Path) -> None:
    """IN   x  0-18
    ALU  y 18-31     after x
    OUT    31-49     after y"""
    chain = program(f"""
x: {tile(0)} = pl.tile.load(a, [0, 0], [8, 8], target_memory=pl.Mem.Vec)
y: {tile(1)} = pl.tile.exp(x)
last = pl.tile.store(y, [0, 0], out)
""")
    found = simulate(chain, toy(tmp_path))
    assert times(found) == [("IN", 0, 18), ("ALU", 18, 31), ("OUT", 31, 49)]
    assert found.cycles == 49
    assert [(step.line, step.engine, step.cycles) for step in found.critical_path] == [
        (8, "IN", 18), (9, "ALU", 13), (10, "OUT", 18),
    ]  # fmt: skip
    # At full rate, 256 bytes take 8 cycles over either edge and in the ALU.
    assert (found.limit, found.ratio) == (8, 49 / 8)


def test_two_engines_overlap(tmp_path: Path) -> None:
    """IN   x  0-18    y 18-36
    ALU             e 18-31    f 36-49      f waits for y, not for the engine
    OUT                        e 31-49   f 49-67"""
    overlap = program(f"""
x: {tile(0)} = pl.tile.load(a, [0, 0], [8, 8], target_memory=pl.Mem.Vec)
y: {tile(1)} = pl.tile.load(b, [0, 0], [8, 8], target_memory=pl.Mem.Vec)
e: {tile(2)} = pl.tile.exp(x)
f: {tile(3)} = pl.tile.exp(y)
o = pl.tile.store(e, [0, 0], out)
last = pl.tile.store(f, [8, 0], o)
""")
    found = simulate(overlap, toy(tmp_path))
    assert [(start, end) for _, start, end in times(found)] == [
        (0, 18), (18, 36), (18, 31), (36, 49), (31, 49), (49, 67),
    ]  # fmt: skip
    assert found.cycles == 67
    (alu,) = (use for use in found.engines if use.engine == "ALU")
    assert (alu.busy, alu.stalls, alu.idle) == (26, {"IN": 18 + 5}, 67 - 49)


MATMUL_STEP = """
    a{n}: {left} = pl.tile.load(a, [0, (k + {n}) * 8], [8, 8], target_memory=pl.Mem.Left)
    b{n}: {right} = pl.tile.load(b, [(k + {n}) * 8, 0], [8, 8], target_memory=pl.Mem.Right)
    acc{n}: {acc} = pl.tile.matmul_acc({before}, a{n}, b{n})"""


def matmul(slots: int) -> str:
    """Four steps of a matmul in a loop, whose operands have so many buffers each."""
    acc = tile(0, space="Acc")
    steps = [
        MATMUL_STEP.format(
            n=n, left=tile(2 * n, space="Left"), right=tile(2 * n + 1, space="Right"), acc=acc,
            before="acc" if n == 0 else f"acc{n - 1}",
        )
        for n in range(slots)
    ]  # fmt: skip
    return f"""
zero: {acc} = pl.tile.create([8, 8], pl.FP32, target_memory=pl.Mem.Acc)
for k, (acc,) in pl.range(0, 4, {slots}, init_values=(zero,)):{"".join(steps)}
    done = pl.yield_(acc{slots - 1})
last = pl.tile.store(done, [0, 0], out)
"""


def test_a_double_buffered_matmul(tmp_path: Path) -> None:
    """Step     0              1              2                 3
    IN   a  0-18,  b -36 | 36-54, -72 | 96-114, -132      | 156-174, -192
    MAC          36-96   |    96-156  |       156-216     |       216-276
    OUT                                                              276-294

    The loads of step 2 write the buffers that step 0 reads until 96, those of step 3 the ones of step 1, until 156:
    hazards from the trip before. With one buffer for each operand, loads wait for the step before: 4 x 96 + 18."""
    found = simulate(program(matmul(2)), toy(tmp_path))
    starts = [start for engine, start, _ in times(found) if engine == "IN"]
    assert starts == [0, 18, 36, 54, 96, 114, 156, 174]
    assert [start for engine, start, _ in times(found) if engine == "MAC"] == [36, 96, 156, 216]
    assert found.cycles == 294
    assert simulate(program(matmul(1)), toy(tmp_path)).cycles == 402


@pytest.mark.parametrize(("columns", "starts", "cycles"), [(8, 49, 80), (32, 60, 139)])
def test_two_hazards(tmp_path: Path, columns: int, starts: int, cycles: int) -> None:
    """IN   x0  0-18   x1 18-36
    ALU  y0 18-31                     y1 49-62     x1 is there at 36, but its buffer is stored from until 49
    OUT            y0 31-49                 y1 62-80

    Where x1 has 32 columns, its load takes 18-60, which is later than 49; then y1 takes 37 cycles and its store 42."""
    two = program(f"""
x0: {tile(0)} = pl.tile.load(a, [0, 0], [8, 8], target_memory=pl.Mem.Vec)
y0: {tile(1)} = pl.tile.exp(x0)
o = pl.tile.store(y0, [0, 0], out)
x1: {tile(2, columns=columns)} = pl.tile.load(b, [0, 0], [8, {columns}], target_memory=pl.Mem.Vec)
y1: {tile(1, columns=columns)} = pl.tile.exp(x1)
last = pl.tile.store(y1, [8, 0], o)
""")
    found = simulate(two, toy(tmp_path))
    assert times(found)[4][1] == starts
    assert found.cycles == cycles


ITEMS = f"""
for i, (o,) in pl.parallel(0, 2, 1, init_values=(out,)):
    x: {tile(0)} = pl.tile.load(a, [i * 8, 0], [8, 8], target_memory=pl.Mem.Vec)
    y: {tile(1)} = pl.tile.exp(x)
    o_1 = pl.tile.store(y, [i * 8, 0], o)
    last = pl.yield_(o_1)
"""


def test_two_cores_share_ddr(tmp_path: Path) -> None:
    """Both cores do the same: load 10 of latency, then 256 bytes at half of 32 a cycle: 26; exp 13; store 10 + 16.

    With a DDR that serves both, 18 + 13 + 18. On one core, the second load waits for the first exp (31), the second
    exp for the first store (49): 31-49, 49-62, 62-80."""
    found = simulate(program(ITEMS), toy(tmp_path, cores=2, shared=32))
    assert found.cycles == 26 + 13 + 26
    assert found.launches[0].blocks == 2
    assert {use.engine: use.slowed for use in found.engines} == {"IN": 16, "ALU": 0, "OUT": 16}
    # 1024 bytes at 32 a cycle for both cores
    assert (found.bound_by, found.limit) == ("DDR, all cores", 32)
    assert simulate(program(ITEMS), toy(tmp_path, cores=2, shared=64)).cycles == 49
    assert simulate(program(ITEMS), toy(tmp_path, cores=2)).cycles == 49
    assert simulate(program(ITEMS), toy(tmp_path)).cycles == 80


def test_a_transfer_that_comes_later_slows_down_the_one_that_flows() -> None:
    """A flows alone for 4 cycles; with B at half speed, its other 6 take 12: 16. B has 6 of 10 by then: 16 + 4."""
    prices = [Price(10, 0, 32), Price(14, 4, 32)]
    lanes = [Lane(Stream([0], [number], [-1], [()]), [number]) for number in (0, 1)]
    schedule(lanes, prices, 32)
    assert [(lane.starts, lane.ends) for lane in lanes] == [([0], [16]), ([0], [20])]
    # One that stands for three cores weighs three times: A alone for 4, then a quarter of the speed each.
    lanes = [Lane(Stream([0], [0], [-1], [()]), [0]), Lane(Stream([0], [1], [-1], [()]), [1, 2, 3])]
    schedule(lanes, prices, 32)
    assert [lane.ends for lane in lanes] == [[4 + 6 * 4], [28 + 4 * 3]]


# --- control flow -------------------------------------------------------------------------------------------------
TAIL = f"""
for i, (o,) in pl.range(0, n, 8, init_values=(out,)):
    rows = pl.min(8, n - i)
    x: {tile(0, valid="[rows, 8]")} = pl.tile.load(a, [i, 0], [8, 8], valid_shape=[rows, 8], target_memory=pl.Mem.Vec)
    y: {tile(1, valid="[rows, 8]")} = pl.tile.exp(x)
    o_1 = pl.tile.store(y, [i, 0], o)
    last = pl.yield_(o_1)
"""


@pytest.mark.parametrize(("n", "alu"), [(8, 13), (12, 13 + 9), (1, 6), (17, 13 + 13 + 6)])
def test_trips_and_tails_have_their_values(tmp_path: Path, n: int, alu: int) -> None:
    """5 cycles and one for each row of 32 bytes that is valid; `n` is known."""
    found = simulate(program(TAIL, params="n: pl.Scalar[pl.INDEX], "), toy(tmp_path), {"n": n})
    assert {use.engine: use.busy for use in found.engines}["ALU"] == alu
    assert {edge.src: edge.nbytes for edge in found.edges}["DDR"] == 32 * n
    assert not any("not known" in line for line in found.assumptions)


def test_what_is_not_known_is_assumed_and_said(tmp_path: Path) -> None:
    found = simulate(program(TAIL, params="n: pl.Scalar[pl.INDEX], "), toy(tmp_path))
    assert "line 8: how often the loop over i runs is not known: one trip" in found.assumptions
    assert {use.engine: use.instructions for use in found.engines}["ALU"] == 1
    branch = program(
        f"""
x: {tile(0)} = pl.tile.load(a, [0, 0], [8, 8], target_memory=pl.Mem.Vec)
if n > 3:
    o_1 = pl.tile.store(x, [0, 0], out)
    last = pl.yield_(o_1)
else:
    y: {tile(1)} = pl.tile.exp(x)
    o_2 = pl.tile.store(y, [0, 0], out)
    last = pl.yield_(o_2)
""",
        params="n: pl.Scalar[pl.INDEX], ",
    )
    machine = toy(tmp_path)
    assert [simulate(branch, machine, {"n": n}).cycles for n in (4, 3)] == [36, 49]
    found = simulate(branch, machine)
    assert found.cycles == 49
    assert "line 9: which arm the branch takes is not known: the one that costs more" in found.assumptions


def test_a_hazard_within_a_trip_orders_nothing_across_trips(tmp_path: Path) -> None:
    """Were both in one trip, the load would read what the store writes. Trip 0 stores rows 0-8, trip 1 loads rows 8-16:

    IN   z 0-42   x 42-60
    OUT           o 42-84"""
    arms = program(f"""
z: {tile(0, columns=32)} = pl.tile.load(a, [0, 0], [8, 32], target_memory=pl.Mem.Vec)
for i, (o,) in pl.range(0, 2, 1, init_values=(out,)):
    if i == 0:
        o_1 = pl.tile.store(z, [i * 8, 0], o)
        o_3 = pl.yield_(o_1)
    else:
        o_3 = pl.yield_(o)
    if i == 1:
        x: {tile(1)} = pl.tile.load(o_3, [i * 8, 0], [8, 8], target_memory=pl.Mem.Vec)
    else:
        pass
    last = pl.yield_(o_3)
""")
    assert times(simulate(arms, toy(tmp_path))) == [("IN", 0, 42), ("OUT", 42, 84), ("IN", 42, 60)]


def test_a_hazard_from_the_trip_before_waits_for_that_trip_alone(tmp_path: Path) -> None:
    """Each trip stores 8 rows and loads those that the trip before stored: the load of trip 2 waits for the store of
    trip 1, and not for the one of its own trip, which was issued before it.

    IN   z 0-42   x1 42-60      x2 84-102
    OUT           o1 42-84      o2 84-126"""
    before = program(f"""
z: {tile(0, columns=32)} = pl.tile.load(a, [0, 0], [8, 32], target_memory=pl.Mem.Vec)
for i, (o,) in pl.range(1, 3, 1, init_values=(out,)):
    o_1 = pl.tile.store(z, [i * 8, 0], o)
    x: {tile(1)} = pl.tile.load(o_1, [(i - 1) * 8, 0], [8, 8], target_memory=pl.Mem.Vec)
    last = pl.yield_(o_1)
""")
    assert times(simulate(before, toy(tmp_path))) == [
        ("IN", 0, 42), ("OUT", 42, 84), ("IN", 42, 60), ("OUT", 84, 126), ("IN", 84, 102),
    ]  # fmt: skip


def test_launches_follow_each_other_and_items_go_over_the_cores() -> None:
    """The blocks of a batch of images need several rounds of the 24 clusters; the second sum needs all of the first."""
    module = load_example("ffn_gelu.py")
    found = module.ffn.simulate(*module.arguments(256, 256, 1024), target="ascend910b")
    assert [(launch.core, launch.blocks) for launch in found.launches] == [("cluster", 24), ("cluster", 16)]
    for before, after in zip(found.launches, found.launches[1:], strict=False):
        assert after.start == before.start + before.cycles
    assert found.cycles == sum(launch.cycles for launch in found.launches)
    assert sum(len(lane.blocks) for lane in found.played[0].lanes) == 24
    assert len(found.played[0].lanes) < 24, "cores that do the same are simulated once"


# --- a second opinion ---------------------------------------------------------------------------------------------
class Always(random.Random):
    """Takes the first arm of every branch, or the second."""

    def __init__(self, first: bool) -> None:
        super().__init__(0)
        self.first = first

    def random(self) -> float:
        return 0.0 if self.first else 1.0


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("first", [True, False])
def test_random_programs_against_every_pair(seed: int, first: bool) -> None:
    """Each execution starts when its engine is free and all those are done that a hazard orders before it: found here
    by asking every pair of executions."""
    function = Drawing(seed).function(TARGET)
    listed = hazards(function, TARGET)
    events = Unrolled(function, TARGET, Always(first)).events
    ends: list[float] = []
    for index, event in enumerate(events):
        assert isinstance(event.stmt.value, Op)
        start = 0.0
        for before, end in zip(events[:index], ends, strict=True):
            if before.engine == event.engine or any(applies(hazard, before, event) for hazard in listed):
                start = max(start, end)
        ends.append(start + price_of(event.stmt.value, event.stmt.target.type, TARGET).cycles)
    found = simulate(Program((function,), function.name), TARGET, {"n": 1 if first else 0})
    assert found.played[0].lanes[0].ends == pytest.approx(ends)
    assert found.cycles == pytest.approx(max(ends))


# --- what holds for every program ---------------------------------------------------------------------------------
@pytest.mark.parametrize("target", ASCEND)
@pytest.mark.parametrize("kernel", EXAMPLES)
def test_every_example_lies_between_its_busiest_engine_and_all_of_them(kernel: str, target: str) -> None:
    found = simulated(kernel, target)
    assert max(use.busiest for use in found.engines) <= found.cycles * (1 + 1e-9)
    for launch in found.launches:
        assert launch.cycles <= launch.serial * (1 + 1e-9)
    assert 0 < found.limit <= found.cycles * (1 + 1e-9)
    assert sum(step.cycles for step in found.critical_path) == pytest.approx(found.cycles)
    assert all(step.line for step in found.critical_path)
    for use in found.engines:
        assert use.busy + sum(use.stalls.values()) + use.idle == pytest.approx(found.cycles * use.cores)
    assert f"{found.cycles:,.0f} cycles" in str(found)
    assert found.bound_by in str(found)


@pytest.mark.parametrize("target", ASCEND)
@pytest.mark.parametrize("rows", [16, 65, 200])
def test_a_deeper_pipeline_is_never_slower(target: str, rows: int) -> None:
    x = np.zeros((rows, 128), np.float32)
    cycles = [kernel.simulate(x, x.copy(), target=target).cycles for kernel in (single, double, triple)]
    assert cycles == sorted(cycles, reverse=True)
    if rows == 200:
        assert cycles[1] < 0.6 * cycles[0], "loads, work and stores overlap"


@pytest.mark.slow
def test_a_hundred_thousand_instructions(tmp_path: Path) -> None:
    for trips in (8_000, 32_000):
        long = program(f"""
for i, (o,) in pl.range(0, {trips}, 1, init_values=(out,)):
    x: {tile(0)} = pl.tile.load(a, [i * 8, 0], [8, 8], target_memory=pl.Mem.Vec)
    y: {tile(1)} = pl.tile.exp(x)
    z: {tile(1)} = pl.tile.neg(y)
    o_1 = pl.tile.store(z, [i * 8, 0], o)
    last = pl.yield_(o_1)
""", shape=f"[{8 * trips}, 8]")  # fmt: skip
        found = simulate(long, toy(tmp_path, cores=1, shared=32))
        assert found.instructions == 4 * trips
        # In a steady state: exp and neg, 13 each, and the store of 18 whose buffer the next exp writes.
        assert found.cycles == pytest.approx(18 + trips * (13 + 13 + 18))


def test_each_core_of_a_cluster_has_engines_of_its_own(tmp_path: Path) -> None:
    """IN of the cube     x 0-18
    IN of the vector   y 0-18
    ALU                       e 18-31
    OUT of the vector                o 31-49      last 49-67: its engine is the vector's, too

    One queue for both INs would load y from 18 to 36."""
    both = program(f"""
x: {tile(0, space="Left")} = pl.tile.load(a, [0, 0], [8, 8], target_memory=pl.Mem.Left)
y: {tile(0)} = pl.tile.load(b, [0, 0], [8, 8], target_memory=pl.Mem.Vec)
e: {tile(1)} = pl.tile.exp(y)
o = pl.tile.store(e, [0, 0], out)
last = pl.tile.store(y, [8, 0], o)
""")
    found = simulate(both, pair(tmp_path))
    assert times(found) == [
        ("IN cube", 0, 18), ("IN vector", 0, 18), ("ALU", 18, 31), ("OUT", 31, 49), ("OUT", 49, 67),
    ]  # fmt: skip
    assert {use.core for use in found.engines} == {"cluster"}
    assert any("engines of its own" in line for line in found.assumptions)


def test_nothing_to_do_takes_no_time(tmp_path: Path) -> None:
    found = simulate(program(TAIL, params="n: pl.Scalar[pl.INDEX], "), toy(tmp_path), {"n": 0})
    assert (found.cycles, found.instructions, found.limits, found.ratio) == (0, 0, (), 1.0)
    assert str(found).startswith("main on toy: 0 cycles")


def test_too_many_instructions_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfold, "MOST_INSTRUCTIONS", 10)
    many = program(TAIL, params="n: pl.Scalar[pl.INDEX], ")
    assert simulate(many, toy(tmp_path), {"n": 24}).instructions == 9
    with pytest.raises(UnsupportedError, match="more than 10 instructions"):
        simulate(many, toy(tmp_path), {"n": 40})
