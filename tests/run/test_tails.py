"""Tails, slices of live tiles, and buffers that must survive while others come and go."""

from __future__ import annotations

import numpy as np
import pytest
from run.running import everywhere, incore
from support import TAILS, exact_ints, poison


@pytest.mark.parametrize("rows", TAILS)
def test_rows_known_at_run_time(rows: int) -> None:
    """Blocks of 64 rows, the last one partly valid: elementwise, a row reduction and its expansion."""
    text = incore(
        "n: pl.Scalar[pl.INDEX], a: pl.Tensor[[n, 48], pl.FP32], o: pl.Out[pl.Tensor[[n, 48], pl.FP32]]",
        """
        for b, (out,) in pl.range(0, (n + 63) // 64, 1, init_values=(o,)):
            x = pl.tile.load(a, [b * 64, 0], [64, 48], valid_shape=[pl.min(64, n - b * 64), 48])
            s = pl.tile.row_sum(x)
            y = pl.tile.row_expand_add(x, s)
            out_1 = pl.tile.store(y, [b * 64, 0], out)
            r = pl.yield_(out_1)
        return r
        """,
    )
    a = exact_ints((rows, 48))
    everywhere(text, [rows, a, poison((rows, 48))], [a + a.sum(axis=1, keepdims=True)])


@pytest.mark.parametrize("columns", [15, 17, 65, 200])
def test_columns_that_are_no_whole_box(columns: int) -> None:
    kind = f"pl.Tensor[[5, {columns}], pl.FP32]"
    text = incore(
        f"a: {kind}, o: pl.Out[{kind}], p: pl.Out[pl.Tensor[[1, {columns}], pl.FP32]]",
        f"""
        x = pl.tile.load(a, [0, 0], [5, {columns}])
        m = pl.tile.col_max(x)
        y = pl.tile.col_expand_sub(x, m)
        o_1 = pl.tile.store(y, [0, 0], o)
        p_1 = pl.tile.store(m, [0, 0], p)
        return o_1, p_1
        """,
    )
    a = exact_ints((5, columns))
    m = a.max(axis=0, keepdims=True)
    everywhere(text, [a, poison(a.shape), poison(m.shape)], [a - m, m])


def test_column_slice_of_a_live_tile() -> None:
    """A slice of columns has the pitch of its parent, which is read again afterwards."""
    text = incore(
        "a: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]], "
        "p: pl.Out[pl.Tensor[[16, 64], pl.FP32]]",
        """
        x = pl.tile.load(a, [0, 0], [16, 64])
        s = pl.tile.slice(x, [16, 32], [0, 16])
        d = pl.tile.muls(s, 2.0)
        e = pl.tile.add(d, s)
        o_1 = pl.tile.store(e, [0, 0], o)
        y = pl.tile.adds(x, 1.0)
        p_1 = pl.tile.store(y, [0, 0], p)
        return o_1, p_1
        """,
    )
    a = exact_ints((16, 64))
    everywhere(text, [a, poison((16, 32)), poison((16, 64))], [3 * a[:, 16:48], a + 1])


def test_buffer_filled_before_a_loop() -> None:
    """What every trip reads keeps its bytes while temporaries fill the memory."""
    kind = "pl.Tensor[[64, 64], pl.FP32]"
    text = incore(
        f"a: {kind}, b: {kind}, o: pl.Out[{kind}]",
        """
        x = pl.tile.load(a, [0, 0], [64, 64])
        y = pl.tile.load(b, [0, 0], [64, 64])
        w = pl.tile.muls(x, 3.0)
        for i, (acc,) in pl.range(0, 5, 1, init_values=(y,)):
            t1 = pl.tile.adds(acc, 1.0)
            t2 = pl.tile.muls(t1, 2.0)
            t3 = pl.tile.sub(t2, t1)
            t4 = pl.tile.maximum(t3, t2)
            t5 = pl.tile.minimum(t3, t4)
            t6 = pl.tile.add(t5, w)
            r = pl.yield_(t6)
        z = pl.tile.add(r, w)
        o_1 = pl.tile.store(z, [0, 0], o)
        return o_1
        """,
    )
    a, b = exact_ints((64, 64)), exact_ints((64, 64), seed=1)
    acc = b
    for _ in range(5):
        t1 = acc + 1
        t3 = t1 * 2 - t1
        acc = np.minimum(t3, np.maximum(t3, t1 * 2)) + 3 * a
    everywhere(text, [a, b, poison((64, 64))], [acc + 3 * a])


def test_parts_written_into_a_tile_in_a_loop() -> None:
    text = incore(
        "a: pl.Tensor[[16, 16], pl.FP32], o: pl.Out[pl.Tensor[[64, 16], pl.FP32]]",
        """
        x = pl.tile.load(a, [0, 0], [16, 16])
        z = pl.tile.full([64, 16], pl.FP32, 0.0)
        for i, (whole, part) in pl.range(0, 3, 1, init_values=(z, x)):
            w = pl.tile.assemble(whole, part, [i * 16, 0])
            p = pl.tile.adds(part, 1.0)
            r, s = pl.yield_(w, p)
        o_1 = pl.tile.store(r, [0, 0], o)
        return o_1
        """,
    )
    a = exact_ints((16, 16))
    everywhere(text, [a, poison((64, 16))], [np.concatenate([a, a + 1, a + 2, 0 * a])])


def test_reduction_of_a_slice_and_of_its_parent() -> None:
    text = incore(
        "a: pl.Tensor[[32, 32], pl.FP32], o: pl.Out[pl.Tensor[[16, 1], pl.FP32]], "
        "p: pl.Out[pl.Tensor[[32, 1], pl.FP32]]",
        """
        x = pl.tile.load(a, [0, 0], [32, 32])
        s = pl.tile.slice(x, [16, 32], [8, 0])
        m = pl.tile.row_sum(s)
        o_1 = pl.tile.store(m, [0, 0], o)
        w = pl.tile.row_max(x)
        p_1 = pl.tile.store(w, [0, 0], p)
        return o_1, p_1
        """,
    )
    a = exact_ints((32, 32))
    wanted = [a[8:24].sum(axis=1, keepdims=True), a.max(axis=1, keepdims=True)]
    everywhere(text, [a, poison((16, 1)), poison((32, 1))], wanted)


@pytest.mark.parametrize("n", [1, 9, 16])
def test_store_of_a_valid_part_leaves_the_rest(n: int) -> None:
    """What lies outside the valid part is poison before and after."""
    text = incore(
        "n: pl.Scalar[pl.INDEX], a: pl.Tensor[[16, 32], pl.FP32], o: pl.InOut[pl.Tensor[[16, 32], pl.FP32]]",
        """
        x = pl.tile.load(a, [0, 0], [16, 32], valid_shape=[n, 30])
        y = pl.tile.neg(x)
        o_1 = pl.tile.store(y, [0, 0], o)
        return o_1
        """,
    )
    a, before = exact_ints((16, 32)), exact_ints((16, 32), seed=1)
    wanted = before.copy()
    wanted[:n, :30] = -a[:n, :30]
    everywhere(text, [n, a, before], [wanted])


@pytest.mark.parametrize("made", ["a", "pl.tensor.neg(a)"], ids=["loaded", "computed"])
def test_a_narrowed_tensor_goes_with_one_of_its_shape(made: str) -> None:
    """The valid shape is the tensor's shape from then on, be it in memory or on chip."""
    text = f"""
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[40, 17], pl.FP32], b: pl.Tensor[[39, 17], pl.FP32],
             out: pl.Out[pl.Tensor[[39, 17], pl.FP32]]):
        with pl.at():
            x = {made}
            y = pl.tensor.set_validshape(x, 39, 17)
            z = pl.tensor.add(y, b)
            out_1 = pl.tensor.assemble(out, z, [0, 0])
            s = pl.yield_(out_1)
        return s
"""
    a, b = exact_ints((40, 17)), exact_ints((39, 17), seed=1)
    everywhere(text, [a, b, poison((39, 17))], [(a if made == "a" else -a)[:39] + b])
