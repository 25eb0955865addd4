"""`&`, `|`, `^`, `<<` and `>>` of scalars: what they give, by every way of executing; floats are refused."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.native import compile_native
from tilewright.codegen.pto.emulate import launch
from tilewright.codegen.pto.writer import emit_pto
from tilewright.compiler import UNPLACED, lower
from tilewright.errors import DTypeError
from tilewright.execute import interpret
from tilewright.targets import load_target

N = 16
TEXT = """
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[16, 8], pl.FP32], out: pl.Out[pl.Tensor[[16, 8], pl.FP32]]):
        for i, (o,) in pl.range(16, init_values=(out,)):
            row = pl.load(x, [{index}, 0], [1, 8])
            (o_1,) = pl.yield_(pl.store(row, [i, 0], o))
        return o_1
"""
CASES = {
    "i ^ 5": [i ^ 5 for i in range(N)],
    "i & 6": [i & 6 for i in range(N)],
    "(i | 8)": [i | 8 for i in range(N)],
    "i >> 2": [i >> 2 for i in range(N)],
    "(i & 3) << 2": [(i & 3) << 2 for i in range(N)],
    "((i << 1) | (i >> 3)) & 15": [((i << 1) | (i >> 3)) & 15 for i in range(N)],
}


@pytest.mark.parametrize("index", CASES)
def test_natively_and_on_a_chip(index: str) -> None:
    x = np.arange(N * 8, dtype=np.float32).reshape(N, 8)
    wanted = x[CASES[index]]
    host, chip = load_target("host"), load_target("ascend910b")
    out = np.zeros_like(x)
    compile_native(lower(tw.parse(TEXT.format(index=index)), host, after=UNPLACED), host).run([x, out])
    np.testing.assert_array_equal(out, wanted)
    out = np.zeros_like(x)
    module = emit_pto(lower(tw.parse(TEXT.format(index=index)), chip), chip)
    launch(module.manifest, module.texts, {"x": x, "out": out}, sync="auto")
    np.testing.assert_array_equal(out, wanted)


def test_the_bits_of_floats_are_refused() -> None:
    text = TEXT.replace(
        "            row =", "            f = pl.read(x, [i, 0])\n            g = f & f\n            row ="
    )
    with pytest.raises(DTypeError, match="works on the bits of integers"):
        tw.parse(text.format(index="i"))


LIMITS = """
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[1, 8], pl.FP32], out: pl.Out[pl.Tensor[[1, 8], pl.{dtype}]]):
        row = pl.load(x, [0, 0], [1, 8])
        for i, (o,) in pl.range(8, init_values=(out,)):
            (o_1,) = pl.yield_(pl.tensor.write(o, [0, i], pl.cast(pl.read(row, [0, i]), pl.{dtype})))
        return o_1
"""


@pytest.mark.parametrize("dtype", ["INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"])
def test_a_float_scalar_stops_at_the_limits(dtype: str) -> None:
    """As an integer it is truncated, stops at what the type holds, and is 0 for NaN; natively and interpreted."""
    host = load_target("host")
    x = np.array([[2.75, -2.75, 300.0, 3e38, -3e38, np.inf, -np.inf, np.nan]], np.float32)
    kind = np.dtype(dtype.lower())
    low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    exact = [2, -2, 300, 10**30, -(10**30), 10**30, -(10**30), 0]
    wanted = np.array([[max(low, min(high, number)) for number in exact]], kind)
    program = tw.parse(LIMITS.format(dtype=dtype))
    out = np.zeros((1, 8), kind)
    compile_native(lower(program, host, after=UNPLACED), host).run([x, out])
    np.testing.assert_array_equal(out, wanted)
    out = np.zeros((1, 8), kind)
    interpret(program, [x, out])
    np.testing.assert_array_equal(out, wanted)
