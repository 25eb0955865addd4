"""Products that are cut along K where they stand keep their physical shape: what they add to, and what reads them, has
it too."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.native import compile_native
from tilewright.compiler import UNPLACED, lower
from tilewright.execute.interpreter import interpret
from tilewright.targets import load_target

TEXT = """
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(
        self, a: pl.Tensor[[8, 40], pl.FP32], b: pl.Tensor[[40, 5], pl.FP32], out: pl.Out[pl.Tensor[[5, 5], pl.FP32]]
    ):
        x = pl.tile.load(a, [4, 0], [5, 40], valid_shape=[4, 40])
        y = pl.tile.load(b, [0, 0], [40, 5], valid_shape=[40, 3])
        other = pl.tile.full([5, 5], pl.FP32, {number}.0)
        z = {product}
        out_1 = pl.tile.store({read}, [0, 0], out)
        return out_1
"""
PRODUCTS = {
    "added to a tile": ("pl.tile.matmul_acc(other, x, y)", "z", 0),
    "added by a reader": ("pl.tile.matmul(x, y)", "pl.tile.add(z, other)", 1),
}


@pytest.mark.parametrize("form", PRODUCTS)
@pytest.mark.parametrize("machine", ["x86_avx512", "x86_avx2"])
def test_a_tail_is_cut_along_k(machine: str, form: str) -> None:
    product, read, number = PRODUCTS[form]
    program, target = tw.parse(TEXT.format(product=product, read=read, number=number)), load_target(machine)
    a = np.arange(320, dtype=np.float32).reshape(8, 40) % 5
    b = np.arange(200, dtype=np.float32).reshape(40, 5) % 3
    wanted = a[4:8] @ b[:, :3] + number
    placed = lower(program, target)
    assert str(placed).count("matmul") > 1
    out = np.zeros((5, 5), np.float32)
    interpret(placed, [a, b, out])
    np.testing.assert_array_equal(out[:4, :3], wanted)
    host, out = load_target("host"), np.zeros((5, 5), np.float32)
    compile_native(lower(program, host, after=UNPLACED), host).run([a, b, out])
    np.testing.assert_array_equal(out[:4, :3], wanted)
