"""Products: every operand type and orientation, tails of each size, chains, accumulators."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from run.running import everywhere, incore
from support import exact_ints, poison

TYPES: dict[str, Any] = {"FP32": np.float32, "BF16": ml_dtypes.bfloat16, "FP16": np.float16, "INT8": np.int8}


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    wide = np.int32 if a.dtype == np.int8 else np.float32
    return a.astype(wide) @ b.astype(wide)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("a_trans", [False, True])
@pytest.mark.parametrize("b_trans", [False, True])
def test_operands(dtype: str, a_trans: bool, b_trans: bool) -> None:
    m, k, n = 32, 64, 48
    a, b = (
        exact_ints((k, m) if a_trans else (m, k), TYPES[dtype]),
        exact_ints((n, k) if b_trans else (k, n), TYPES[dtype]),
    )
    acc = "INT32" if dtype == "INT8" else "FP32"
    text = incore(
        f"a: pl.Tensor[{list(a.shape)}, pl.{dtype}], b: pl.Tensor[{list(b.shape)}, pl.{dtype}], "
        f"o: pl.Out[pl.Tensor[[{m}, {n}], pl.{acc}]]",
        f"""
        c = pl.tensor.matmul(a, b, out_dtype=pl.{acc}, a_trans={a_trans}, b_trans={b_trans})
        o_1 = pl.tensor.assemble(o, c, [0, 0])
        return o_1
        """,
    )
    wanted = product(a.T if a_trans else a, b.T if b_trans else b)
    everywhere(text, [a, b, poison((m, n), wanted.dtype)], [wanted])


@pytest.mark.parametrize("rows", [1, 15, 16, 17, 63, 64])
def test_rows_known_at_run_time(rows: int) -> None:
    """Every column is exact, however many of the 64 rows of the box are valid."""
    text = incore(
        "n: pl.Scalar[pl.INDEX], a: pl.Tensor[[64, 64], pl.FP16], b: pl.Tensor[[64, 80], pl.FP16], "
        "o: pl.Out[pl.Tensor[[64, 80], pl.FP32]]",
        """
        x = pl.tile.load(a, [0, 0], [64, 64], valid_shape=[n, 64])
        y = pl.tile.load(b, [0, 0], [64, 80])
        c = pl.tile.matmul(x, y)
        o_1 = pl.tile.store(c, [0, 0], o)
        return o_1
        """,
    )
    a, b = exact_ints((64, 64), np.float16), exact_ints((64, 80), np.float16)
    wanted = poison((64, 80))
    wanted[:rows] = product(a, b)[:rows]
    everywhere(text, [rows, a, b, poison((64, 80))], [wanted])


def test_inner_size_100_in_blocks_with_nan_around() -> None:
    """K = 64 + 36; what lies behind the last column of a and the last row of b is NaN."""
    text = incore(
        "a: pl.Tensor[[32, 128], pl.FP32], b: pl.Tensor[[128, 16], pl.FP32], o: pl.Out[pl.Tensor[[32, 16], pl.FP32]]",
        """
        x = pl.tile.load(a, [0, 0], [32, 64])
        y = pl.tile.load(b, [0, 0], [64, 16])
        first = pl.tile.matmul(x, y)
        x2 = pl.tile.load(a, [0, 64], [32, 64], valid_shape=[32, 36])
        y2 = pl.tile.load(b, [64, 0], [64, 16], valid_shape=[36, 16])
        c = pl.tile.matmul_acc(first, x2, y2)
        o_1 = pl.tile.store(c, [0, 0], o)
        return o_1
        """,
    )
    a, b = poison((32, 128)), poison((128, 16))
    a[:, :100], b[:100] = exact_ints((32, 100)), exact_ints((100, 16), seed=1)
    everywhere(text, [a, b, poison((32, 16))], [a[:, :100] @ b[:100]])


def test_ones() -> None:
    text = incore(
        "a: pl.Tensor[[64, 64], pl.FP32], b: pl.Tensor[[64, 16], pl.FP32], o: pl.Out[pl.Tensor[[64, 16], pl.FP32]]",
        """
        x = pl.tile.load(a, [0, 0], [64, 64])
        y = pl.tile.load(b, [0, 0], [64, 16])
        o_1 = pl.tile.store(pl.tile.matmul(x, y), [0, 0], o)
        return o_1
        """,
    )
    ones = [np.ones((64, 64), np.float32), np.ones((64, 16), np.float32), poison((64, 16))]
    everywhere(text, ones, [np.full((64, 16), 64, np.float32)])


@pytest.mark.parametrize(("m", "k", "n"), [(1, 16, 16), (15, 17, 33), (65, 63, 17), (16, 1, 16)])
def test_sizes_that_are_no_whole_box(m: int, k: int, n: int) -> None:
    text = incore(
        f"a: pl.Tensor[[{m}, {k}], pl.FP32], b: pl.Tensor[[{k}, {n}], pl.FP32], "
        f"o: pl.Out[pl.Tensor[[{m}, {n}], pl.FP32]]",
        f"""
        x = pl.tile.load(a, [0, 0], [{m}, {k}])
        y = pl.tile.load(b, [0, 0], [{k}, {n}])
        o_1 = pl.tile.store(pl.tile.matmul(x, y), [0, 0], o)
        return o_1
        """,
    )
    a, b = exact_ints((m, k)), exact_ints((k, n), seed=1)
    everywhere(text, [a, b, poison((m, n))], [a @ b])


def test_chain_scaled_between() -> None:
    text = incore(
        "a: pl.Tensor[[32, 48], pl.FP32], b: pl.Tensor[[48, 64], pl.FP32], c: pl.Tensor[[64, 16], pl.FP32], "
        "o: pl.Out[pl.Tensor[[32, 16], pl.FP32]]",
        """
        p = pl.tile.matmul(pl.tile.load(a, [0, 0], [32, 48]), pl.tile.load(b, [0, 0], [48, 64]))
        q = pl.tile.muls(p, 2.0)
        r = pl.tile.matmul(q, pl.tile.load(c, [0, 0], [64, 16]))
        o_1 = pl.tile.store(r, [0, 0], o)
        return o_1
        """,
    )
    a, b, c = (exact_ints(shape, seed=i) for i, shape in enumerate([(32, 48), (48, 64), (64, 16)]))
    a, b, c = a % 3, b % 3, c % 3
    everywhere(text, [a, b, c, poison((32, 16))], [(a @ b * 2) @ c])


@pytest.mark.parametrize("trips", [1, 2, 3])
def test_accumulator_of_zeros_before_the_loop(trips: int) -> None:
    text = incore(
        "a: pl.Tensor[[16, 48], pl.FP32], b: pl.Tensor[[48, 32], pl.FP32], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]]",
        f"""
        zero = pl.tile.full([16, 32], pl.FP32, 0.0)
        for i, (acc,) in pl.range(0, {trips}, 1, init_values=(zero,)):
            x = pl.tile.load(a, [0, i * 16], [16, 16])
            y = pl.tile.load(b, [i * 16, 0], [16, 32])
            acc_1 = pl.tile.matmul_acc(acc, x, y)
            r = pl.yield_(acc_1)
        o_1 = pl.tile.store(r, [0, 0], o)
        return o_1
        """,
    )
    a, b = exact_ints((16, 48)), exact_ints((48, 32), seed=1)
    everywhere(text, [a, b, poison((16, 32))], [a[:, : 16 * trips] @ b[: 16 * trips]])


@pytest.mark.parametrize("n", [1, 3])
def test_accumulator_that_the_first_trip_defines(n: int) -> None:
    text = incore(
        "n: pl.Scalar[pl.INDEX], a: pl.Tensor[[16, 48], pl.FP32], b: pl.Tensor[[48, 32], pl.FP32], "
        "o: pl.Out[pl.Tensor[[16, 32], pl.FP32]]",
        """
        start = pl.tile.create([16, 32], pl.FP32)
        for i, (acc,) in pl.range(0, n, 1, init_values=(start,)):
            x = pl.tile.load(a, [0, i * 16], [16, 16])
            y = pl.tile.load(b, [i * 16, 0], [16, 32])
            acc_1 = pl.tile.matmul_acc(acc, x, y, init_cond=(i == 0))
            r = pl.yield_(acc_1)
        o_1 = pl.tile.store(r, [0, 0], o)
        return o_1
        """,
    )
    a, b = exact_ints((16, 48)), exact_ints((48, 32), seed=1)
    everywhere(text, [n, a, b, poison((16, 32))], [a[:, : 16 * n] @ b[: 16 * n]])


@pytest.mark.parametrize("n", [0, 1])
def test_product_in_both_arms(n: int) -> None:
    text = incore(
        "n: pl.Scalar[pl.INDEX], a: pl.Tensor[[16, 16], pl.FP32], b: pl.Tensor[[16, 16], pl.FP32], "
        "o: pl.Out[pl.Tensor[[16, 16], pl.FP32]]",
        """
        x = pl.tile.load(a, [0, 0], [16, 16])
        y = pl.tile.load(b, [0, 0], [16, 16])
        if n == 0:
            p = pl.tile.matmul(x, y)
            r = pl.yield_(p)
        else:
            q = pl.tile.matmul(y, x)
            r = pl.yield_(q)
        o_1 = pl.tile.store(r, [0, 0], o)
        return o_1
        """,
    )
    a, b = exact_ints((16, 16)), exact_ints((16, 16), seed=1)
    everywhere(text, [n, a, b, poison((16, 16))], [b @ a if n else a @ b])


@pytest.mark.parametrize("dtype", ["FP16", "BF16"])
@pytest.mark.parametrize("other", ["matmul(b, a)", "add(a, b)"])
@pytest.mark.parametrize("n", [2, 5])
def test_rounded_products_where_paths_join(dtype: str, other: str, n: int) -> None:
    """A product that is rounded to half precision does not come out of the accumulator as such."""
    kind = f"pl.Tensor[[32, 32], pl.{dtype}]"
    text = incore(
        f"n: pl.Scalar[pl.INDEX], a: {kind}, b: {kind}, o: pl.Out[{kind}]",
        f"""
        if n > 3:
            x = pl.tensor.matmul(a, b)
            z = pl.yield_(x)
        else:
            y = pl.tensor.{other}
            z = pl.yield_(y)
        o_1 = pl.tensor.assemble(o, z, [0, 0])
        return o_1
        """,
    )
    a, b = exact_ints((32, 32), TYPES[dtype]), exact_ints((32, 32), TYPES[dtype], seed=1)
    wanted = product(a, b) if n > 3 else product(b, a) if other.startswith("matmul") else a + b
    everywhere(text, [n, a, b, poison((32, 32), TYPES[dtype])], [wanted.astype(TYPES[dtype])])
