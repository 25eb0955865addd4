"""The kernels that `bench/native.py` measures: written as a user writes them, most of them files of `examples/`.

A case has the kernel, its arguments (the last one is the output), the result in FP64, what the work is (floating-point
operations where arithmetic limits it, else bytes), and what its ratio to the best peer should be on one thread.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import tilewright.language as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
from ffn_gelu import ffn
from gelu import gelu
from layernorm import layernorm
from rmsnorm import rmsnorm
from softmax import softmax
from swiglu import swiglu

Array = np.ndarray[Any, Any]
ROWS, COLUMNS = 4096, 1024
PRODUCTS = ((512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (384, 3072, 768), (16, 4096, 4096))
"""(m, n, k)."""
HEADS, LENGTH, DEPTH = 12, 512, 64
QUERIES, KEYS = 64, 128
TOLERANCE = {"float32": 1e-5, "bfloat16": 1e-2}
"""Largest error, as a share of the largest magnitude of the result. bfloat16 has 8 bits: half a unit is 4e-3."""


@dataclass(frozen=True)
class Case:
    """One kernel on one size. `kind` names the peers' function, see `peers.py`."""

    name: str
    kind: str
    kernel: Callable[..., Any]
    make: Callable[[], tuple[Array, ...]]
    exact: Callable[..., Array]
    wanted: float
    """ratio to the best peer on one thread"""
    wanted_threads: float
    """two threads against one, both ours"""
    flops: int = 0
    nbytes: int = 0
    static: dict[str, Any] = field(default_factory=dict[str, Any])

    def wrong(self, found: Array, expected: Array) -> str | None:
        """What is wrong with a result, or None."""
        if found.shape != expected.shape:
            return f"shape {found.shape} for {expected.shape}"
        error = float(np.abs(found.astype(np.float64) - expected).max() / np.abs(expected).max())
        limit = TOLERANCE[self.make()[-1].dtype.name]
        return None if error <= limit else f"error {error:.1e}, at most {limit:.0e} is right"


# --- kernels that no example has in this form -------------------------------------------------------------------------
@pl.jit
def gemm(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out = a @ b``; float32."""
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = a @ b
    return out


@pl.jit
def gemm_bf16(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out = a @ b``; bfloat16, summed in float32."""
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = a @ b
    return out


@pl.jit
def attention(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out = softmax(q @ k.T / sqrt(d)) @ v`` for each head; all are [heads * length, d], float32."""
    d = q.shape[1]
    for head in pl.parallel(0, HEADS):
        first = head * LENGTH
        for start in pl.range(0, LENGTH, QUERIES):
            query = pl.load(q, [first + start, 0], [QUERIES, d])
            key = pl.load(k, [first, 0], [LENGTH, d])
            scores = pl.matmul(query, key.T) * (1.0 / d**0.5)
            powers = pl.exp(pl.row_expand_sub(scores, pl.row_max(scores)))
            weighted = pl.matmul(powers, pl.load(v, [first, 0], [LENGTH, d]))
            out = pl.store(pl.row_expand_div(weighted, pl.row_sum(powers)), [first + start, 0], out)
    return out


# --- arguments and results in FP64 ------------------------------------------------------------------------------------
def normal(*shapes: tuple[int, ...], dtype: Any = np.float32, scale: float = 1.0) -> tuple[Array, ...]:
    rng = np.random.default_rng(0)
    return tuple((rng.standard_normal(shape, np.float32) * np.float32(scale)).astype(dtype) for shape in shapes)


def row_arguments(*extra: tuple[int, ...]) -> tuple[Array, ...]:
    return (*normal((ROWS, COLUMNS), *extra), np.zeros((ROWS, COLUMNS), np.float32))


def product_arguments(m: int, n: int, k: int, dtype: Any) -> tuple[Array, ...]:
    return (*normal((m, k), (k, n), dtype=dtype), np.zeros((m, n), dtype))


def ffn_arguments() -> tuple[Array, ...]:
    m, n, hidden = 512, 768, 3072
    shapes = ((m, n), (n, hidden), (1, hidden), (hidden, n), (1, n))
    return (*normal(*shapes, scale=0.2), np.zeros((m, n), np.float32))


def attention_arguments() -> tuple[Array, ...]:
    rows = HEADS * LENGTH
    return (*normal(*[(rows, DEPTH)] * 3), np.zeros((rows, DEPTH), np.float32))


def exact_softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def exact_layernorm(x: Array, gamma: Array, beta: Array) -> Array:
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5) * gamma + beta


def exact_gelu(x: Array) -> Array:
    return x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def exact_attention(q: Array, k: Array, v: Array) -> Array:
    q, k, v = (x.reshape(HEADS, LENGTH, DEPTH) for x in (q, k, v))
    return (exact_softmax(q @ k.swapaxes(1, 2) / np.sqrt(DEPTH)) @ v).reshape(HEADS * LENGTH, DEPTH)


def cases() -> list[Case]:
    """All of them, in the order in which they are measured."""
    row = {"wanted": 1.4, "wanted_threads": 1.7}
    size, weight = ROWS * COLUMNS * 4, (1, COLUMNS)
    found = [
        Case("softmax", "softmax", softmax, row_arguments, exact_softmax, nbytes=2 * size, **row),
        Case(
            "rmsnorm", "rmsnorm", rmsnorm, partial(row_arguments, weight),
            lambda x, w: x * w / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6), nbytes=2 * size, **row,
        ),
        Case(
            "layernorm", "layernorm", layernorm, partial(row_arguments, weight, weight), exact_layernorm,
            nbytes=2 * size, **row,
        ),
        Case("gelu", "gelu", gelu, row_arguments, exact_gelu, nbytes=2 * size, **row),
        Case(
            "silu_up", "silu_up", swiglu, partial(row_arguments, (ROWS, COLUMNS)),
            lambda gate, up: gate / (1 + np.exp(-gate)) * up, nbytes=3 * size, **row,
        ),
    ]  # fmt: skip
    for kernel, dtype in ((gemm, np.float32), (gemm_bf16, ml_dtypes.bfloat16)):
        short = "f32" if dtype is np.float32 else "bf16"
        found += [
            Case(
                f"gemm_{short}_{m}x{n}x{k}", "gemm", kernel, partial(product_arguments, m, n, k, dtype),
                lambda a, b: a @ b, wanted=0.9, wanted_threads=1.4, flops=2 * m * n * k,
            )
            for m, n, k in PRODUCTS
        ]  # fmt: skip
    heavy = {"wanted": 1.2, "wanted_threads": 1.4}
    found.append(
        Case(
            "ffn", "ffn", ffn, ffn_arguments, lambda x, w1, b1, w2, b2: exact_gelu(x @ w1 + b1) @ w2 + b2,
            flops=4 * 512 * 768 * 3072, **heavy,
        )
    )  # fmt: skip
    flops = 4 * HEADS * LENGTH * LENGTH * DEPTH
    found.append(Case("attention", "attention", attention, attention_arguments, exact_attention, flops=flops, **heavy))
    return found
