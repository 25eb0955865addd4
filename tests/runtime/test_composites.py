"""Functions written in the language: against float64, at every magnitude, in every float dtype."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright.language as pl
from tilewright.runtime.jit import JitFunction

POINTS = np.concatenate(
    [np.linspace(-12, 12, 481), [0.0, -0.0, 1e-6, -1e-6, 1e-20, 0.2999, 0.3001, 0.4999, 0.5001, 40.0, -40.0]]
)


@pl.jit
def use_sigmoid(a: pl.Tensor):
    return pl.sigmoid(a)


@pl.jit
def use_silu(a: pl.Tensor):
    return pl.silu(a)


@pl.jit
def use_gelu(a: pl.Tensor):
    return pl.gelu(a)


@pl.jit
def use_tanh(a: pl.Tensor):
    return pl.tanh(a)


@pl.jit
def use_erf(a: pl.Tensor):
    return pl.erf(a)


@pl.jit
def use_softmax(a: pl.Tensor):
    return pl.softmax(a)


@pl.jit
def use_pow(a: pl.Tensor):
    return pl.pow(a, 3.0)


@pl.jit
def on_tiles(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.tile.load(a, [0, 0], [8, 8])
        out = pl.tile.store(pl.softmax(pl.gelu(x)), [0, 0], out)


def gelu64(x: Any) -> Any:
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def sigmoid64(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def silu64(x: Any) -> Any:
    return x * sigmoid64(x)


CASES: list[tuple[JitFunction, Any]] = [
    (use_sigmoid, sigmoid64),
    (use_silu, silu64),
    (use_gelu, gelu64),
    (use_tanh, np.tanh),
    (use_erf, np.vectorize(math.erf)),
]


@pytest.mark.parametrize(("kernel", "exact"), CASES, ids=lambda item: getattr(item, "__name__", ""))
@pytest.mark.parametrize(("dtype", "ulps"), [(np.float32, 8), (np.float16, 1), (ml_dtypes.bfloat16, 1)])
def test_activations(kernel: JitFunction, exact: Any, dtype: Any, ulps: int) -> None:
    x = POINTS.astype(dtype).reshape(1, -1)
    expected = exact(x.astype(np.float64))
    for found in (kernel.reference(x), kernel(x)):
        check(kernel, found, expected, dtype, ulps)


@pytest.mark.parametrize(
    ("kernel", "exact"), [(use_sigmoid, sigmoid64), (use_tanh, np.tanh), (use_erf, np.vectorize(math.erf))]
)
def test_single_precision_is_within_two_units(kernel: JitFunction, exact: Any) -> None:
    patterns = np.arange(0, 2**32, 131071, dtype=np.uint64).astype(np.uint32).view(np.float32)
    dense = np.linspace(-104, 104, 1 << 15, dtype=np.float32)
    x = np.concatenate([patterns[~np.isnan(patterns)], dense, dense / 16, dense / 104])[None, :]
    with np.errstate(over="ignore", under="ignore"):
        expected = exact(x.astype(np.float64))
        unit = np.maximum(np.spacing(np.abs(expected).astype(np.float32)).astype(np.float64), 2.0**-149)
    assert np.max(np.abs(kernel(x).astype(np.float64) - expected) / unit) <= 2


def check(kernel: JitFunction, found: Any, expected: Any, dtype: Any, ulps: int) -> None:
    assert found.dtype == np.dtype(dtype)
    epsilon = float(ml_dtypes.finfo(dtype).eps)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    # Against the larger of the value and a thousandth: far out in a tail only the absolute error counts.
    bound = ulps * epsilon * np.maximum(np.abs(expected), 1e-3 if kernel is not use_erf else 0.25)
    assert (np.abs(found.astype(np.float64) - expected) <= bound).all()


@pytest.mark.parametrize("columns", [1, 15, 64, 200])
def test_softmax(columns: int) -> None:
    x = np.random.default_rng(0).normal(0, 4, (7, columns)).astype(np.float32)
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    for found in (use_softmax.reference(x), use_softmax(x)):
        np.testing.assert_allclose(found, e / e.sum(axis=1, keepdims=True), rtol=1e-5)
        np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)


def test_powers() -> None:
    x = np.array([[0.5, 1.0, 2.0, 10.0, -1.0]], np.float32)
    for found in (use_pow.reference(x), use_pow(x)):
        np.testing.assert_allclose(found[0, :4], [0.125, 1, 8, 1000], rtol=2e-6)
        assert np.isnan(found[0, 4])


def test_tiles_take_them_as_tensors_do() -> None:
    x = np.random.default_rng(1).normal(0, 2, (8, 8)).astype(np.float32)
    out = np.zeros((8, 8), np.float32)
    e = np.exp(gelu64(x.astype(np.float64)))
    for call in (on_tiles.reference, on_tiles):
        call(x, out)
        np.testing.assert_allclose(out, e / e.sum(axis=1, keepdims=True), rtol=1e-5)
