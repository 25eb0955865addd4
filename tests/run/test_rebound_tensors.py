"""Tensors in DDR that a loop re-binds: each trip reads what the trips before it made, not what this one is making."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.execute import interpret


@pl.jit
def powers(x: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    for _ in pl.range(3):
        x = x @ b
    out[:] = x
    return out


@pl.jit
def recurrence(x: pl.Tensor, y: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Two carries, one of which takes the other's value before that is overwritten."""
    for _ in pl.range(5):
        z = x @ b + y
        x = y
        y = z
    out[:] = y - x
    return out


@pl.jit
def rotation(x: pl.Tensor, y: pl.Tensor, z: pl.Tensor, out: pl.Out[pl.Tensor]):
    for _ in pl.range(4):
        x, y, z = y + z, z, x
    out[:] = x * 100.0 + y * 10.0 + z
    return out


@pl.jit
def written_and_handed_on(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    """What a trip writes is the other name's tensor in the next one, and its own name gets a new tensor."""
    p, q = x + 1.0, x + 2.0
    for _ in pl.range(3):
        q[:] = p * 2.0
        p, q = q, q + 3.0
    out[:] = p * 100.0 + q
    return out


@pl.jit
def swapped(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Two tensors change places, and the one that comes to the front is written."""
    p, q = x + 1.0, x + 2.0
    for _ in pl.range(3):
        p[:] = p * 2.0
        p, q = q, p
    out[:] = p * 100.0 + q
    return out


@pl.jit
def new_on_one_path(x: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    """What one path hands on is what it got, and what the other one does is made in the trip."""
    p, q = b + 1.0, x
    n = 0
    for i in pl.range(3):
        if i == 2:
            n = 3
        else:
            for _ in pl.range(3):
                out[:] = p + 1.0
                q = pl.minimum(q - x, b)
            p = pl.minimum(q, 2.0)
    out[:] = out + p * 100.0 + q * 10.0
    return out, n


def ints(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-2, 3, (16, 16)).astype(np.float32)


def cases() -> dict[str, tuple[object, tuple[np.ndarray, ...], np.ndarray]]:
    x, y, b = ints(0), ints(1), ints(2)
    power = x
    for _ in range(3):
        power = power @ b
    p, q = x, y
    for _ in range(5):
        p, q = q, p @ b + q
    r, s, t = x, y, b
    for _ in range(4):
        r, s, t = s + t, t, r
    u, v = x + 1, x + 2
    for _ in range(3):
        u, v = u * 2, u * 2 + 3
    f, g = x + 1, x + 2
    for _ in range(3):
        f, g = g, f * 2
    c, d = b + 1, x
    for _ in range(2):
        e = c + 1
        for _ in range(3):
            d = np.minimum(d - x, b)
        c = np.minimum(d, 2)
    return {
        "new_on_one_path": (new_on_one_path, (x, b), e + c * 100 + d * 10),
        "swapped": (swapped, (x,), f * 100 + g),
        "written_and_handed_on": (written_and_handed_on, (x,), u * 100 + v),
        "powers": (powers, (x, b), power),
        "recurrence": (recurrence, (x, y, b), q - p),
        "rotation": (rotation, (x, y, b), r * 100 + s * 10 + t),
    }


@pytest.mark.parametrize("name", cases())
def test_natively(name: str) -> None:
    kernel, inputs, expected = cases()[name]
    out = np.zeros_like(expected)
    call: Any = kernel
    call(*inputs, out)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("target", ["ascend910b", "ascend950", "x86_avx512"])
@pytest.mark.parametrize("name", cases())
def test_after_every_pass(name: str, target: str) -> None:
    kernel, inputs, expected = cases()[name]
    out = np.zeros_like(expected)
    lowered: Any = kernel
    interpret(lowered.lower(*inputs, out, target=target), [*inputs, out])
    np.testing.assert_array_equal(out, expected)


# pyright: reportPossiblyUnboundVariable=false
