"""Parallel loops: independent work items pass, items that meet are refused, and both are decided exactly."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.analysis.parallel import check_parallel
from tilewright.errors import VerifyError

HEADER = """
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.Scalar[pl.INDEX], m: pl.Scalar[pl.INDEX], a: pl.Tensor[[64, 64], pl.FP32],
             k: pl.Tensor[[64, 1], pl.INT32], p: pl.InOut[pl.Tensor[[n, 64], pl.FP32]]):
"""


def kernel(bounds: str, *body: str, carried: str = "p") -> tw.Program:
    """A parallel loop over `i`; the body's last line makes `x_1` from `x`."""
    lines = [f"        for i, (x,) in pl.parallel({bounds}, init_values=({carried},)):"]
    lines += [f"            {line}" for line in body]
    lines += ["            x_9 = pl.yield_(x_1)", "        return x_9", ""]
    return tw.parse(HEADER + "\n".join(lines))


TILE = "t = pl.tile.load(a, [0, 0], [16, 64])"
APART = {
    "rows in steps": ("0, n, 16", TILE, "x_1 = pl.tile.store(t, [i, 0], x)"),
    "further apart than long": ("0, n, 16", TILE, "x_1 = pl.tile.store(t, [i * 2 + 5, 0], x)"),
    "tail": (
        "0, n, 16",
        "t = pl.tile.load(a, [0, 0], [16, 64], valid_shape=[pl.min(16, n - i), 64])",
        "x_1 = pl.tile.store(t, [i, 0], x)",
    ),
    "rounded down": ("0, 64, 16", TILE, "x_1 = pl.tile.store(t, [i // 16 * 16, 0], x)"),
    "interleaved by an inner loop": (
        "0, 4",
        TILE,
        "for j, (y,) in pl.range(0, 3, 1, init_values=(x,)):",
        "    y_1 = pl.tile.store(t, [(j * 4 + i) * 16, 0], y)",
        "    x_1 = pl.yield_(y_1)",
    ),
    "columns": (
        "0, 64, 16",
        "t = pl.tile.load(a, [0, 0], [16, 16])",
        "x_1 = pl.tile.store(t, [m, i], x)",
    ),
    "reads what it writes itself": (
        "0, n, 16",
        "t = pl.tile.load(x, [i, 0], [16, 64])",
        "x_1 = pl.tile.store(t, [i, 0], x)",
    ),
    "atomic": ("0, n, 16", TILE, "x_1 = pl.tile.store(t, [0, 0], x, atomic=1)"),
    "one trip": ("0, 16, 16", TILE, "x_1 = pl.tile.store(t, [0, 0], x)"),
    "odd and even": (
        "0, 2",
        "t = pl.tile.load(a, [0, 0], [1, 64])",
        "for j, (y,) in pl.range(0, n, 2, init_values=(x,)):",
        "    y_1 = pl.tile.store(t, [j + i, 0], y)",
        "    x_1 = pl.yield_(y_1)",
    ),
}
MEET = {
    "same place": ("0, n, 16", TILE, "x_1 = pl.tile.store(t, [0, 0], x)"),
    "longer than the step": ("0, n, 15", TILE, "x_1 = pl.tile.store(t, [i, 0], x)"),
    "halved": ("0, n, 16", TILE, "x_1 = pl.tile.store(t, [i // 2, 0], x)"),
    "reads its neighbour": (
        "0, n - 16, 16",
        "t = pl.tile.load(x, [i + 16, 0], [16, 64])",
        "x_1 = pl.tile.store(t, [i, 0], x)",
    ),
    "read at run time": (
        "0, 4",
        TILE,
        "r = pl.tensor.read(k, [i, 0])",
        "x_1 = pl.tile.store(t, [pl.cast(r, pl.INDEX), 0], x)",
    ),
    "an inner loop runs into the next item": (
        "0, 4",
        TILE,
        "for j, (y,) in pl.range(0, 3, 1, init_values=(x,)):",
        "    y_1 = pl.tile.store(t, [(i + j) * 16, 0], y)",
        "    x_1 = pl.yield_(y_1)",
    ),
}


@pytest.mark.parametrize("name", APART)
def test_independent(name: str) -> None:
    bounds, *body = APART[name]
    check_parallel(kernel(bounds, *body))


@pytest.mark.parametrize("name", MEET)
def test_refused(name: str) -> None:
    bounds, *body = MEET[name]
    with pytest.raises(VerifyError, match="may meet in 'p'"):
        check_parallel(kernel(bounds, *body))
