"""Kernels whose operations stand outside of scopes, so that each is a section of its own, with what forwarding should
leave of them. Values are small integers wherever the operations keep them so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from support import exact_ints

import tilewright.language as pl

Array = NDArray[Any]


@pl.jit
def five(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    a = x * 2.0
    b = a + 3.0
    c = pl.relu(b)
    d = pl.maximum(c, x)
    out[:] = d - 1.0
    return out


@pl.jit
def scopes(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="sum"):
        a = x + y
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="twice"):
        b = a * 2.0
        c = pl.relu(b)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="less"):
        out[:] = c - x
    return out


@pl.jit
def softmax(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    m = pl.row_max(x)
    d = pl.row_expand_sub(x, m)
    e = pl.exp(d)
    s = pl.row_sum(e)
    out[:] = pl.row_expand_div(e, s)
    return out


@pl.jit
def layernorm(x: pl.Tensor, gamma: pl.Tensor, beta: pl.Tensor, out: pl.Out[pl.Tensor]):
    s = pl.row_sum(x)
    mean = s * (1.0 / 64.0)
    c = pl.row_expand_sub(x, mean)
    sq = c * c
    v = pl.row_sum(sq)
    w = v * (1.0 / 64.0) + 1.0e-5
    r = pl.rsqrt(w)
    n = pl.row_expand_mul(c, r)
    g = pl.col_expand_mul(n, gamma)
    out[:] = pl.col_expand_add(g, beta)
    return out


@pl.jit
def ffn(x: pl.Tensor, w1: pl.Tensor, b1: pl.Tensor, w2: pl.Tensor, b2: pl.Tensor, out: pl.Out[pl.Tensor]):
    h = pl.matmul(x, w1)
    hb = pl.col_expand_add(h, b1)
    g = pl.relu(hb)
    o = pl.matmul(g, w2)
    out[:] = pl.col_expand_add(o, b2)
    return out


@pl.jit
def two_products(x: pl.Tensor, w1: pl.Tensor, w2: pl.Tensor, out: pl.Out[pl.Tensor]):
    h = pl.matmul(x, w1)
    out[:] = pl.matmul(h, w2)
    return out


@pl.jit
def attention(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor]):
    s = pl.matmul(q, k, b_trans=True)
    m = pl.row_max(s)
    d = pl.row_expand_sub(s, m)
    e = pl.exp(d)
    t = pl.row_sum(e)
    p = pl.row_expand_div(e, t)
    out[:] = pl.matmul(p, v)
    return out


@pl.jit
def transposed_reader(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    a = x + 1.0
    out[:] = pl.matmul(w, a, b_trans=True)
    return out


@pl.jit
def window_reader(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    a = x + 1.0
    b = pl.relu(a[8:24, :])
    out[:] = b
    return out


@pl.jit
def two_readers(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor], other: pl.Out[pl.Tensor]):
    a = x + 1.0
    b = pl.matmul(w, a, b_trans=True)
    other[:] = b
    out[:] = a * 2.0
    return out, other


@pl.jit
def in_a_loop(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    a = x + 1.0
    for i in pl.range(3):
        b = a * 2.0
        c = b + x
        out[i * 32 : i * 32 + 32, 0:32] = c
    return out


@pl.jit
def kept(x: pl.Tensor, out: pl.Out[pl.Tensor], mid: pl.Out[pl.Tensor]):
    mid[:] = x + 1.0
    out[:] = mid * 2.0
    return out, mid


@pl.jit
def gated(x: pl.Tensor, wg: pl.Tensor, wu: pl.Tensor, wd: pl.Tensor, out: pl.Out[pl.Tensor]):
    n = pl.relu(x)
    g = pl.matmul(n, wg)
    u = pl.matmul(n, wu)
    a = pl.relu(g)
    h = a * u
    out[:] = pl.matmul(h, wd)
    return out


@pl.jit
def gelu(x: pl.Tensor, w1: pl.Tensor, b1: pl.Tensor, w2: pl.Tensor, b2: pl.Tensor, out: pl.Out[pl.Tensor]):
    m = pl.matmul(x, w1)
    h = pl.col_expand_add(m, b1)
    scaled = h * -1.702
    powers = pl.exp(scaled)
    ones = powers + 1.0
    g = h / ones
    o = pl.matmul(g, w2)
    out[:] = pl.col_expand_add(o, b2)
    return out


@pl.jit
def heads(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor]):
    for head in pl.unroll(2):
        rows = q.shape[0] // 2
        s = pl.matmul(q[head * rows : head * rows + rows, :], k, b_trans=True)
        m = pl.row_max(s)
        d = pl.row_expand_sub(s, m)
        c = pl.maximum(d, -4.0)
        o = pl.matmul(c, v)
        out[head * rows : head * rows + rows, :] = o
    return out


@pl.jit
def int8_product(x: pl.Tensor, w: pl.Tensor, scale: pl.Tensor, out: pl.Out[pl.Tensor]):
    acc = pl.matmul(x, w)
    f = pl.cast(acc, pl.FP32)
    scaled = pl.col_expand_mul(f, scale)
    h = pl.cast(scaled, pl.FP16)
    out[:] = pl.cast(h, pl.INT8)
    return out


@pl.jit
def rounded_store(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    t = pl.matmul(x, w, out_dtype=pl.BF16)
    f = pl.cast(t, pl.FP32)
    out[:] = f + 1.0
    return out


@pl.jit
def rounded_operand(x: pl.Tensor, w: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor]):
    t = pl.matmul(x, w, out_dtype=pl.BF16)
    out[:] = pl.matmul(t, v, out_dtype=pl.FP32)
    return out


def ints(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Array:
    return exact_ints(shape, dtype, seed)


@dataclass(frozen=True)
class Case:
    """`gone`: per target the tensors that must not be in the final program; those of `stays` must."""

    kernel: Any
    arguments: Callable[[], list[Array]]
    gone: dict[str, set[str]]
    stays: dict[str, set[str]]
    outputs: tuple[int, ...] = (-1,)
    exact: bool = True


TARGETS = ("ascend910b", "ascend950", "host")


def everywhere(*names: str) -> dict[str, set[str]]:
    return {target: set(names) for target in TARGETS}


def large(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    """Integers whose sums of products do not fit BF16, so that a rounding left out shows."""
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(dtype)


NONE = everywhere()
BF16 = np.dtype(ml_dtypes.bfloat16)
CASES: dict[str, Case] = {
    "five": Case(five, lambda: [ints(65, 200), ints(65, 200)], everywhere("a", "b", "c", "d"), NONE),
    "scopes": Case(scopes, lambda: [ints(65, 63), ints(65, 63, seed=1), ints(65, 63)], everywhere("a", "c"), NONE),
    "softmax": Case(
        softmax, lambda: [ints(65, 200), ints(65, 200)], everywhere("m", "d", "e", "s"), NONE, exact=False
    ),
    "layernorm": Case(
        layernorm,
        lambda: [ints(65, 64), ints(1, 64, seed=1), ints(1, 64, seed=2), ints(65, 64)],
        everywhere("s", "mean", "c", "sq", "v", "w", "r", "n", "g"),
        NONE,
        exact=False,
    ),
    "ffn": Case(
        ffn,
        lambda: [ints(64, 32), ints(32, 64, seed=1), ints(1, 64, seed=2), ints(64, 32, seed=3), ints(1, 32, seed=4),
                 ints(64, 32)],
        {"ascend910b": {"hb"}, "ascend950": {"h", "hb", "g", "o"}, "host": {"h", "hb", "g", "o"}},
        {"ascend910b": {"h", "g", "o"}, "ascend950": set(), "host": set()},
    ),
    "two_products_f16": Case(
        two_products,
        lambda: [ints(64, 32, dtype=np.float16) // 2, ints(32, 32, seed=1, dtype=np.float16) // 2,
                 ints(32, 64, seed=2, dtype=np.float16) // 2, ints(64, 64, dtype=np.float16)],
        everywhere("h"),
        NONE,
    ),
    "two_products_f32": Case(
        two_products,
        lambda: [ints(64, 32), ints(32, 32, seed=1), ints(32, 64, seed=2), ints(64, 64)],
        {"ascend910b": set(), "ascend950": {"h"}, "host": {"h"}},
        {"ascend910b": {"h"}, "ascend950": set(), "host": set()},
    ),
    "attention": Case(
        attention,
        lambda: [ints(64, 32), ints(64, 32, seed=1), ints(64, 32, seed=2), ints(64, 32)],
        {"ascend910b": {"m", "d", "e", "t"}, "ascend950": {"s", "m", "d", "e", "t", "p"},
         "host": {"s", "m", "d", "e", "t", "p"}},
        {"ascend910b": {"s", "p"}, "ascend950": set(), "host": set()},
        exact=False,
    ),
    "transposed_reader": Case(
        transposed_reader, lambda: [ints(64, 32), ints(48, 32, seed=1), ints(48, 64)], NONE, everywhere("a")
    ),
    "window_reader": Case(window_reader, lambda: [ints(32, 32), ints(16, 32)], everywhere("b"), everywhere("a")),
    "two_readers": Case(
        two_readers,
        lambda: [ints(64, 32), ints(48, 32, seed=1), ints(64, 32), ints(48, 64)],
        NONE,
        everywhere("a"),
        outputs=(-2, -1),
    ),
    "in_a_loop": Case(in_a_loop, lambda: [ints(32, 32), ints(96, 32)], everywhere("b", "c"), everywhere("a")),
    "kept": Case(kept, lambda: [ints(65, 63), ints(65, 63), ints(65, 63)], NONE, NONE, outputs=(-2, -1)),
    "gated": Case(
        gated,
        lambda: [ints(64, 32), ints(32, 32, seed=1), ints(32, 32, seed=2), ints(32, 64, seed=3), ints(64, 64)],
        {"ascend910b": {"a"}, "ascend950": {"n", "g", "u", "a", "h"}, "host": {"n", "g", "u", "a", "h"}},
        {"ascend910b": {"n", "g", "u", "h"}, "ascend950": set(), "host": set()},
    ),
    "gelu": Case(
        gelu,
        lambda: [ints(64, 32) / 8, ints(32, 64, seed=1) / 8, ints(1, 64, seed=2), ints(64, 32, seed=3),
                 ints(1, 32, seed=4), ints(64, 32)],
        {"ascend910b": {"scaled", "powers", "ones"}, "ascend950": {"m", "h", "scaled", "powers", "ones", "g", "o"},
         "host": {"m", "h", "scaled", "powers", "ones", "g", "o"}},
        {"ascend910b": {"m", "g", "o"}, "ascend950": set(), "host": set()},
        exact=False,
    ),
    "heads": Case(
        heads,
        lambda: [ints(64, 16), ints(64, 16, seed=1), ints(64, 32, seed=2), ints(64, 32)],
        {"ascend910b": {"m", "d"}, "ascend950": {"s", "m", "d", "c", "o"}, "host": {"s", "m", "d", "c", "o"}},
        {"ascend910b": {"s", "c"}, "ascend950": set(), "host": set()},
    ),
    "int8_product": Case(
        int8_product,
        lambda: [ints(32, 32, dtype=np.int8), ints(32, 64, seed=1, dtype=np.int8),
                 np.full((1, 64), 0.125, np.float32), ints(32, 64, dtype=np.int8)],
        {"ascend910b": {"f", "scaled", "h"}, "ascend950": {"acc", "f", "scaled", "h"},
         "host": {"acc", "f", "scaled", "h"}},
        {"ascend910b": {"acc"}, "ascend950": set(), "host": set()},
    ),
    "rounded_store": Case(
        rounded_store,
        lambda: [large(64, 32, dtype=BF16), large(32, 64, dtype=BF16, seed=1), ints(64, 64)],
        {"ascend910b": {"f"}, "ascend950": {"t", "f"}, "host": {"t", "f"}},
        {"ascend910b": {"t"}, "ascend950": set(), "host": set()},
    ),
    "rounded_operand": Case(
        rounded_operand,
        lambda: [large(64, 32, dtype=BF16), large(32, 32, dtype=BF16, seed=1), ints(32, 64, dtype=BF16),
                 ints(64, 64)],
        everywhere("t"),
        NONE,
    ),
}  # fmt: skip
