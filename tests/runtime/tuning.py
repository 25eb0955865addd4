"""Kernels to tune, and a file of them as a user would have it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from support import exact_ints

import tilewright.language as pl
from tilewright.ir.function import Program

BF = np.dtype(ml_dtypes.bfloat16)


@pl.jit
def product(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.matmul(a, b, out_dtype=pl.FP32)
    return out


@pl.jit
def rows(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.maximum(x * 2.0, x)
    return out


@pl.jit
def piped(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.pipeline(0, x.shape[0], 16, stage=1):
        tile = pl.load(x, [i, 0], [16, 128])
        out = pl.store(tile + tile, [i, 0], out)
    return out


@pl.jit
def whole(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    tile = pl.load(x, [0, 0], [16, x.shape[1]])
    return pl.store(tile + tile, [0, 0], out)


def too_large() -> Program:
    """One that fits no memory."""
    wide = np.zeros((16, 100_000), np.float32)
    return whole.program(wide, wide.copy())


def arguments(kernel: Any, m: int = 384, n: int = 320, k: int = 512) -> dict[str, Any]:
    """Arrays by name, on which every order of summation is exact."""
    if kernel is product:
        a, b = exact_ints((m, k), np.float32).astype(BF), exact_ints((k, n), np.float32).astype(BF)
        return {"a": a, "b": b, "out": np.zeros((m, n), np.float32)}
    columns = 128 if kernel is piped else 4096
    x = exact_ints((192, columns), np.float32)
    return {"x": x, "out": np.zeros_like(x)}


def program_of(kernel: Any, **sizes: int) -> Program:
    return kernel.program(*arguments(kernel, **sizes).values())


KERNEL = """
import numpy as np
import ml_dtypes

import tilewright.language as pl


@pl.jit
def product(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.matmul(a, b, out_dtype=pl.FP32)
    return out


@pl.jit
def piped(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.pipeline(0, x.shape[0], 16, stage=1):
        tile = pl.load(x, [i, 0], [16, 128])
        out = pl.store(tile + tile, [i, 0], out)
    return out
"""
