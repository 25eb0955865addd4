"""Loop carries are parallel copies: swaps, rotations and lags give what Python would."""

from __future__ import annotations

import numpy as np
import pytest
from run.running import TARGETS, everywhere, incore
from support import exact_ints, poison

R, C = 16, 32
DEPTHS = pytest.mark.parametrize("depth", [1, 2, 3])
TILE = f"pl.Tensor[[{R}, {C}], pl.FP32]"


def parameters(inputs: int, outputs: int) -> str:
    given = [f"a{i}: {TILE}" for i in range(inputs)]
    return ", ".join(["n: pl.Scalar[pl.INDEX]", *given, *(f"o{i}: pl.Out[{TILE}]" for i in range(outputs))])


def loads(count: int) -> str:
    return "\n".join(f"x{i} = pl.tile.load(a{i}, [0, 0], [{R}, {C}])" for i in range(count))


def stores(names: str) -> str:
    kept = names.split()
    lines = [f"s{i} = pl.tile.store({name}, [0, 0], o{i})" for i, name in enumerate(kept)]
    return "\n".join([*lines, "return " + ", ".join(f"s{i}" for i in range(len(kept)))])


def run(body: str, inputs: int, names: str, trips: int, wanted: list[np.ndarray], depth: int = 1) -> None:
    arrays = [exact_ints((R, C), seed=i) for i in range(inputs)]
    text = incore(parameters(inputs, len(wanted)), f"{loads(inputs)}\n{at_depth(body, depth)}\n{stores(names)}")
    everywhere(text, [trips, *arrays, *(poison((R, C)) for _ in wanted)], wanted)


def at_depth(body: str, depth: int) -> str:
    """The body with its loop multi-buffered `depth` times, which must change nothing."""
    return body if depth == 1 else body.replace("pl.range(0, n, 1, ", f"pl.pipeline(0, n, 1, stage={depth}, ")


@DEPTHS
@pytest.mark.parametrize("trips", [0, 1, 4, 5])
def test_swap(trips: int, depth: int) -> None:
    a, b = (exact_ints((R, C), seed=i) for i in range(2))
    body = """
for i, (p, q) in pl.range(0, n, 1, init_values=(x0, x1)):
    r, s = pl.yield_(q, p)
"""
    run(body, 2, "r s", trips, [b, a] if trips % 2 else [a, b], depth)


@DEPTHS
@pytest.mark.parametrize("trips", [1, 3, 4])
def test_rotate(trips: int, depth: int) -> None:
    arrays = [exact_ints((R, C), seed=i) for i in range(3)]
    body = """
for i, (p, q, w) in pl.range(0, n, 1, init_values=(x0, x1, x2)):
    r, s, t = pl.yield_(q, w, p)
"""
    run(body, 3, "r s t", trips, [arrays[(k + trips) % 3] for k in range(3)], depth)


@DEPTHS
@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_shift_register(trips: int, depth: int) -> None:
    """Each trip feeds a new value in front: after three trips nothing of the start is left."""
    a, b, c = (exact_ints((R, C), seed=i) for i in range(3))
    body = """
for i, (p, q, w) in pl.range(0, n, 1, init_values=(x0, x1, x2)):
    fresh = pl.tile.adds(p, 1.0)
    r, s, t = pl.yield_(fresh, p, q)
"""
    state = [a, b, c]
    for _ in range(trips):
        state = [state[0] + 1, state[0], state[1]]
    run(body, 3, "r s t", trips, state, depth)


def test_fibonacci() -> None:
    a, b = (exact_ints((R, C), seed=i) for i in range(2))
    body = """
for i, (p, q) in pl.range(0, n, 1, init_values=(x0, x1)):
    z = pl.tile.add(p, q)
    r, s = pl.yield_(q, z)
"""
    p, q = a, b
    for _ in range(6):
        p, q = q, p + q
    run(body, 2, "r s", 6, [p, q])


@DEPTHS
def test_lagged_carry(depth: int) -> None:
    """v = 2, 3, 4; acc is multiplied by what was read one trip before: 17."""
    body = """
acc0 = pl.tile.muls(x3, 0.0)
lag0 = pl.tile.adds(acc0, 1.0)
for i, (acc, lag) in pl.range(0, n, 1, init_values=(acc0, lag0)):
    if i == 0:
        nv = pl.yield_(x0)
    else:
        if i == 1:
            m = pl.yield_(x1)
        else:
            if i == 2:
                m2 = pl.yield_(x2)
            else:
                m2 = pl.yield_(lag0)
            m = pl.yield_(m2)
        nv = pl.yield_(m)
    if i >= 1:
        scaled = pl.tile.mul(acc, lag)
        acc1 = pl.tile.adds(scaled, 1.0)
        acc2 = pl.yield_(acc1)
    else:
        acc2 = pl.yield_(acc)
    r, s = pl.yield_(acc2, nv)
"""
    arrays = [np.full((R, C), value, np.float32) for value in (2, 3, 4, 9)]
    text = incore(parameters(4, 2), f"{loads(4)}\n{at_depth(body, depth)}\n{stores('r s')}")
    wanted = [np.full((R, C), value, np.float32) for value in (17, 1)]
    everywhere(text, [4, *arrays, poison((R, C)), poison((R, C))], wanted)


@DEPTHS
def test_conditional_accumulate(depth: int) -> None:
    """The sum over even i of 1, 2, 3, 4 is 4."""
    body = """
zero = pl.tile.muls(x0, 0.0)
one = pl.tile.adds(zero, 1.0)
for i, (acc, v) in pl.range(0, n, 1, init_values=(zero, one)):
    if i % 2 == 0:
        sum = pl.tile.add(acc, v)
        acc1 = pl.yield_(sum)
    else:
        acc1 = pl.yield_(acc)
    v1 = pl.tile.adds(v, 1.0)
    r, s = pl.yield_(acc1, v1)
"""
    run(body, 1, "r s", 4, [np.full((R, C), value, np.float32) for value in (4, 5)], depth)


@DEPTHS
def test_read_then_refill(depth: int) -> None:
    """s = 100; eight times: acc += s; s = k + 1. The old s is read before it is filled anew: 128."""
    body = """
zero = pl.tile.muls(x0, 0.0)
start = pl.tile.adds(zero, 100.0)
for i, (acc, s, k) in pl.range(0, n, 1, init_values=(zero, start, zero)):
    sum = pl.tile.add(acc, s)
    k1 = pl.tile.adds(k, 1.0)
    refilled = pl.tile.muls(k1, 1.0)
    r, t, u = pl.yield_(sum, refilled, k1)
"""
    run(body, 1, "r t", 8, [np.full((R, C), value, np.float32) for value in (128, 8)], depth)


def test_one_value_carried_twice() -> None:
    (a,) = (exact_ints((R, C), seed=0),)
    body = """
for i, (p, q) in pl.range(0, n, 1, init_values=(x0, x0)):
    d = pl.tile.muls(p, 2.0)
    r, s = pl.yield_(d, d)
z = pl.tile.add(x0, r)
"""
    run(body, 1, "z s", 3, [a * 9, a * 8])


@pytest.mark.parametrize("n", [0, 1, 17])
def test_arms_of_which_one_allocates(n: int) -> None:
    a, b = (exact_ints((R, C), seed=i) for i in range(2))
    body = """
if n == 1:
    d = pl.tile.add(x0, x1)
    e = pl.tile.mul(d, d)
    r, s = pl.yield_(e, x1)
else:
    r, s = pl.yield_(x1, x0)
z = pl.tile.add(r, x0)
"""
    wanted = [(a + b) ** 2, b, (a + b) ** 2 + a] if n == 1 else [b, a, a + b]
    run(body, 2, "r s z", n, wanted)


def test_every_target_is_asked() -> None:
    assert len(TARGETS) == 4
