"""Five programs in which a careless plan gives wrong numbers: executed at their addresses, with memories so small that
every byte is shared that may be; the peak is exactly what the program needs."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from properties.addresses import check_addresses
from properties.judges import same
from run.running import ASCEND, everywhere, incore
from support import exact_ints, poison

from tilewright import parse
from tilewright.compiler import lower
from tilewright.errors import CapacityError
from tilewright.execute.memory import run_placed
from tilewright.ir.function import Program
from tilewright.passes.memory.place_buffers import place_buffers, plan_addresses
from tilewright.targets import Target, load_target

Box = tuple[int, int]


def tensors(**shapes: Box) -> str:
    """Parameters; what is called `out…` is an output."""
    named = [(name, f"pl.Tensor[{list(shape)}, pl.FP32]") for name, shape in shapes.items()]
    return ", ".join(f"{name}: pl.Out[{kind}]" if name.startswith("out") else f"{name}: {kind}" for name, kind in named)


def assigned(text: str, target: Target) -> Program:
    return lower(parse(text), target, after="assign_buffers")


def executed(
    text: str, target: Target, arguments: Sequence[Any], wanted: Sequence[Any], memory: str, peak: int
) -> None:
    """The program runs in `peak` bytes of `memory` and not in less, and at its addresses the numbers are right."""
    main = assigned(text, target).main
    tight = target.with_capacity(**{memory: peak})
    for machine, engines in ((target, True), (target, False), (tight, True), (tight, False)):
        placed = place_buffers(assigned(text, machine), machine, engines=engines)
        check_addresses(placed, machine)
        for seed in range(2):
            own: list[Any] = deepcopy(list(arguments))
            run_placed(placed, machine, own, seed=seed)
            same(wanted, own[len(own) - len(wanted) :], f"{machine.name}, seed {seed}")
    name = target.memory(next(space for space in target.spaces if space.value == memory)).name
    plan = plan_addresses(main, target, engines=False).memories[name]
    assert plan.optimal and plan.peak == peak
    granule = target.memory(next(space for space in target.spaces if space.value == memory)).alignment
    with pytest.raises(CapacityError):
        plan_addresses(main, target.with_capacity(**{memory: peak - granule}))


ACCUMULATORS = incore(
    tensors(a=(16, 64), b=(64, 16), out0=(16, 16), out1=(16, 16)),
    """
    x = pl.tile.load(a, [0, 0], [16, 64])
    y = pl.tile.load(b, [0, 0], [64, 16])
    p0 = pl.tile.matmul(x, y)
    q0 = pl.tile.matmul(x, y)
    for i, (p, q) in pl.range(0, 3, 1, init_values=(p0, q0)):
        p1 = pl.tile.matmul_acc(p, x, y)
        q1 = pl.tile.matmul_acc(q, x, y)
        q2 = pl.tile.matmul_acc(q1, x, y)
        p3, q3 = pl.yield_(p1, q2)
    s0 = pl.tile.store(p3, [0, 0], out0)
    s1 = pl.tile.store(q3, [0, 0], out1)
    return s0, s1
    """,
)


@pytest.mark.parametrize("name", ASCEND)
def test_two_independent_accumulators(name: str) -> None:
    a, b = exact_ints((16, 64), seed=1), exact_ints((64, 16), seed=2)
    product = a @ b
    arguments, wanted = [a, b, poison((16, 16)), poison((16, 16))], [4 * product, 7 * product]
    executed(ACCUMULATORS, load_target(name), arguments, wanted, "Acc", 2 * 1024)
    everywhere(ACCUMULATORS, arguments, wanted, (name,))


COLUMN = incore(
    tensors(a=(64, 64), out=(64, 64), out1=(64, 8)),
    """
    x = pl.tile.load(a, [0, 0], [64, 64])
    column = pl.tile.slice(x, [64, 8], [0, 24])
    big = pl.tile.exp(pl.tile.muls(x, 0.0))
    s0 = pl.tile.store(big, [0, 0], out)
    y = pl.tile.adds(column, 1.0)
    s1 = pl.tile.store(y, [0, 0], out1)
    return s0, s1
    """,
)


@pytest.mark.parametrize("name", ASCEND)
def test_a_column_slice_of_a_tile_that_lives_on(name: str) -> None:
    """The slice is read after its tile was read for the last time: the whole tile has to stay where it is."""
    a = exact_ints((64, 64), seed=3)
    wanted = [np.ones((64, 64), np.float32), a[:, 24:32] + 1]
    arguments = [a, poison((64, 64)), poison((64, 8))]
    executed(COLUMN, load_target(name), arguments, wanted, "Vec", 2 * 64 * 64 * 4)
    everywhere(COLUMN, arguments, wanted, (name,), native=False)


FILLED = incore(
    tensors(a=(64, 64), b=(16, 64), out=(64, 64)),
    """
    kept = pl.tile.load(b, [0, 0], [16, 64])
    for i, (o,) in pl.range(0, 64, 16, init_values=(out,)):
        x = pl.tile.load(a, [i, 0], [16, 64])
        y = pl.tile.muls(x, 2.0)
        z = pl.tile.load(a, [i, 0], [16, 64])
        w = pl.tile.add(y, z)
        v = pl.tile.add(w, kept)
        o1 = pl.tile.store(v, [i, 0], o)
        o2 = pl.yield_(o1)
    return o2
    """,
)


@pytest.mark.parametrize("name", ASCEND)
def test_a_buffer_filled_before_a_loop_and_read_in_every_trip(name: str) -> None:
    a, b = exact_ints((64, 64), seed=4), exact_ints((16, 64), seed=5)
    wanted = [3 * a + np.tile(b, (4, 1))]
    arguments = [a, b, poison((64, 64))]
    executed(FILLED, load_target(name), arguments, wanted, "Vec", 3 * 16 * 64 * 4)
    everywhere(FILLED, arguments, wanted, (name,))


SCRATCH = incore(
    tensors(a=(16, 64), b=(16, 64), out=(16, 64), out1=(16, 1)),
    """
    x = pl.tile.load(a, [0, 0], [16, 64])
    y = pl.tile.muls(x, 3.0)
    s0 = pl.tile.store(y, [0, 0], out)
    z = pl.tile.load(b, [0, 0], [16, 64])
    w = pl.tile.row_sum(z)
    s1 = pl.tile.store(w, [0, 0], out1)
    return s0, s1
    """,
)


@pytest.mark.parametrize("name", ASCEND)
def test_a_store_whose_buffer_becomes_scratch_of_a_reduction(name: str) -> None:
    """The store runs beside the vector engine: the scratch is written only when it has read everything."""
    a, b = exact_ints((16, 64), seed=6), exact_ints((16, 64), seed=7)
    wanted = [3 * a, b.sum(axis=1, keepdims=True)]
    arguments = [a, b, poison((16, 64)), poison((16, 1))]
    executed(SCRATCH, load_target(name), arguments, wanted, "Vec", 2 * 16 * 64 * 4 + 64)
    everywhere(SCRATCH, arguments, wanted, (name,))


ARMS = incore(
    "n: pl.Scalar[pl.INDEX], " + tensors(a=(16, 64), b=(16, 64), out=(16, 64)),
    """
    x = pl.tile.load(a, [0, 0], [16, 64])
    if n > 2:
        y = pl.tile.load(b, [0, 0], [16, 64])
        r = pl.yield_(pl.tile.add(x, y))
    else:
        r = pl.yield_(x)
    return pl.tile.store(r, [0, 0], out)
    """,
)


@pytest.mark.parametrize("n", [0, 3])
@pytest.mark.parametrize("name", ASCEND)
def test_an_arm_that_allocates_and_one_that_does_not(name: str, n: int) -> None:
    a, b = exact_ints((16, 64), seed=8), exact_ints((16, 64), seed=9)
    wanted = [a + b if n > 2 else a]
    arguments = [n, a, b, poison((16, 64))]
    executed(ARMS, load_target(name), arguments, wanted, "Vec", 2 * 16 * 64 * 4)
    everywhere(ARMS, arguments, wanted, (name,))
