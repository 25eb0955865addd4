"""`while`, `break` and `continue` mean on every target what they mean in Python."""

from __future__ import annotations

import numpy as np
import pytest
from run.running import everywhere, incore
from support import exact_ints, poison

from tilewright.codegen.pto.writer import emit_pto
from tilewright.compiler import lower
from tilewright.errors import UnsupportedError
from tilewright.execute.simulator import simulate
from tilewright.frontend import parse
from tilewright.ir.function import Program
from tilewright.ir.nodes import For, LoopKind
from tilewright.targets import load_target

R, C = 16, 32
TENSOR = f"pl.Tensor[[{R}, {C}], pl.FP32]"
PARAMETERS = f"n: pl.Scalar[pl.INDEX], a: {TENSOR}, out: pl.Out[{TENSOR}]"
COUNTS = pytest.mark.parametrize("count", [0, 5])

WHILE = f"""
x = pl.load(a, [0, 0], [{R}, {C}])
i = 0
while i < n:
    x = x + 1.0
    i = i + 1
out = pl.store(x, [0, 0], out)
return out
"""
ROWS = f"""
whole = pl.load(a, [0, 0], [{R}, {C}])
out = pl.store(whole, [0, 0], out)
for i in pl.range({R}):
    if i == 3:
        continue
    if i >= n:
        break
    row = pl.load(a, [i, 0], [1, {C}])
    out = pl.store(row * 2.0, [i, 0], out)
return out
"""


def run(body: str, count: int, wanted: np.ndarray, a: np.ndarray | None = None) -> None:
    given = exact_ints((R, C)) if a is None else a
    everywhere(incore(PARAMETERS, body), [count, given, poison((R, C))], [wanted])


@COUNTS
def test_while_carries_a_tile_and_its_counter(count: int) -> None:
    run(WHILE, count, exact_ints((R, C)) + count)


@COUNTS
def test_explicit_form(count: int) -> None:
    body = f"""
x = pl.load(a, [0, 0], [{R}, {C}])
for (y, i) in pl.while_(init_values=(x, 0)):
    pl.cond(i < n)
    z, j = pl.yield_(pl.tile.adds(y, 1.0), i + 1)
out = pl.store(z, [0, 0], out)
return out
"""
    run(body, count, exact_ints((R, C)) + count)


@COUNTS
def test_break_and_continue_in_a_counted_loop(count: int) -> None:
    wanted = exact_ints((R, C))
    wanted[[i for i in range(count) if i != 3]] *= 2
    run(ROWS, count, wanted)


@pytest.mark.parametrize("start", [3, 9])
def test_condition_read_from_memory(start: int) -> None:
    """The first element is raised until it is 9; the loop reads what it wrote."""
    a = exact_ints((R, C))
    a[0, 0] = start
    body = f"""
x = pl.load(a, [0, 0], [{R}, {C}])
out = pl.store(x + 0.0, [0, 0], out)
while pl.read(out, [0, 0]) < 9.0:
    y = pl.load(out, [0, 0], [{R}, {C}])
    out = pl.store(y + 1.0, [0, 0], out)
return out
"""
    run(body, 0, a + (9 - start), a)


@COUNTS
def test_loops_inside_each_other(count: int) -> None:
    """The inner loop is left by two ways, the outer one by a flag that it sets."""
    body = f"""
x = pl.load(a, [0, 0], [{R}, {C}])
total = 0
i = 0
while True:
    for j in pl.range(4):
        if j > i:
            break
        if total == n:
            continue
        total = total + 1
        x = x + 1.0
    i = i + 1
    if i > 3 or total == n:
        break
out = pl.store(x, [0, 0], out)
return out
"""
    total = i = 0
    while True:
        for j in range(4):
            if j > i:
                break
            if total == count:
                continue
            total += 1
        i += 1
        if i > 3 or total == count:
            break
    run(body, count, exact_ints((R, C)) + total)


@COUNTS
def test_break_out_of_an_unrolled_loop(count: int) -> None:
    body = f"""
x = pl.load(a, [0, 0], [{R}, {C}])
for i in pl.unroll(4):
    if i >= n:
        break
    x = x + 1.0
out = pl.store(x, [0, 0], out)
return out
"""
    run(body, count, exact_ints((R, C)) + min(count, 4))


@pytest.mark.parametrize("count", [0, 2])
def test_product_in_a_while_loop(count: int) -> None:
    """An accumulator is carried by a loop that may not run."""
    a = exact_ints((R, R))
    tensor = f"pl.Tensor[[{R}, {R}], pl.FP32]"
    body = f"""
x = pl.load(a, [0, 0], [{R}, {R}])
acc = pl.matmul(x, x)
i = 0
while i < n:
    acc = pl.matmul_acc(acc, x, x)
    i = i + 1
out = pl.store(acc, [0, 0], out)
return out
"""
    text = incore(f"n: pl.Scalar[pl.INDEX], a: {tensor}, out: pl.Out[{tensor}]", body)
    everywhere(text, [count, a, poison((R, R))], [(a @ a) * (count + 1)])


SQUARE = f"n: pl.Scalar[pl.INDEX], a: pl.Tensor[[{R}, {R}], pl.FP32], out: pl.Out[pl.Tensor[[{R}, {R}], pl.FP32]]"
MIXED = f"""
x = pl.load(a, [0, 0], [{R}, {R}])
i = 0
while i < n:
    x = pl.minimum(pl.matmul(x, x), 2.0)
    i = i + 1
out = pl.store(x, [0, 0], out)
return out
"""


@pytest.mark.parametrize("count", [0, 2])
def test_both_kinds_of_core_in_a_while_loop(count: int) -> None:
    a = wanted = exact_ints((R, R)) % 3
    for _ in range(count):
        wanted = np.minimum(wanted @ wanted, 2)
    everywhere(incore(SQUARE, MIXED), [count, a, poison((R, R))], [wanted])


def test_a_condition_that_one_kind_of_core_alone_knows_is_refused() -> None:
    program = parse(incore(SQUARE, MIXED.replace("i < n", "pl.read(x, [0, 0]) < 9.0")))
    target = load_target("ascend910b")
    with pytest.raises(UnsupportedError, match="made on another core"):
        emit_pto(lower(program, target), target)


def test_simulation_says_what_it_assumes() -> None:
    target = load_target("ascend910b")
    program = lower(parse(incore(PARAMETERS, WHILE)), target)
    known, unknown = simulate(program, target, {"n": 4}), simulate(program, target, {})
    assert known.cycles > unknown.cycles
    assert not any("condition" in each for each in known.assumptions)
    assert any("condition" in each and "one trip" in each for each in unknown.assumptions)


def loops(program: Program) -> list[For]:
    return [stmt for function in program.functions for stmt in function.walk() if isinstance(stmt, For)]


def test_a_condition_is_the_first_value_that_a_loop_carries() -> None:
    program = parse(incore(PARAMETERS, ROWS))
    (loop,) = loops(program)
    assert loop.conditional and not loop.is_while and loop.trip_count is None
    (loop,) = loops(parse(incore(PARAMETERS, WHILE)))
    assert loop.is_while
    assert parse(str(program)) == program


def test_a_pipelined_loop_that_may_end_runs_its_trips_in_order() -> None:
    program = parse(incore(PARAMETERS, ROWS.replace(f"pl.range({R})", f"pl.pipeline({R}, stage=2)")))
    (loop,) = loops(program)
    assert loop.kind is LoopKind.SEQUENTIAL and loop.conditional and loop.stage == 1
