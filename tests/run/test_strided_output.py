"""A product stored to an output whose rows are not dense."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.language as pl


@pl.jit
def product(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = a @ b
    return out


@pytest.mark.parametrize("kind", ["column by column", "every second", "a window"])
def test_product_into_a_strided_output(kind: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((17, 9), (9, 15)))
    whole = np.full((40, 40), 7, np.float32, order="F" if kind == "column by column" else "C")
    out = whole[:34:2, :30:2] if kind == "every second" else whole[3:20, 2:17]
    product(a, b, out)
    np.testing.assert_array_equal(out, a @ b)
    assert (whole == 7).sum() >= whole.size - out.size
