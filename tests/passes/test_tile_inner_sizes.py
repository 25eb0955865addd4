"""A product whose operands mean the same k, but lie in tiles of different extents along K."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.native import compile_native
from tilewright.codegen.pto.emulate import launch
from tilewright.codegen.pto.writer import emit_pto
from tilewright.compiler import UNPLACED, lower
from tilewright.execute.interpreter import interpret
from tilewright.execute.memory import run_placed
from tilewright.targets import load_target

TEXT = """
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(
        self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[5, {size}], pl.FP32], b: pl.Tensor[[{size}, 7], pl.FP32],
        out: pl.Out[pl.Tensor[[5, 7], pl.FP32]]
    ):
        x = pl.tile.load(a, [0, 0], [5, {left}], valid_shape=[5, {k}])
        y = pl.tile.load(b, [0, 0], [{right}, 7], valid_shape=[{k}, 7])
        z = pl.tile.matmul(x, y)
        out_1 = pl.tile.store(z, [0, 0], out)
        return out_1
"""
WHOLE = {"x86_avx2": 0, "x86_avx512": 0, "ascend910b": 2048, "ascend950": 2048}
"""how many k there are besides the tail, so that the product is cut along K"""


def product(k: int, more: tuple[int, int], known: bool) -> tuple[tw.Program, list[np.ndarray]]:
    """A product over `k` elements in tiles that have `more` room along K, and its operands, NaN where nothing is."""
    size = k + max(more)
    text = TEXT.format(size=size, left=k + more[0], right=k + more[1], k=k if known else "n")
    a, b = np.full((5, size), np.nan, np.float32), np.full((size, 7), np.nan, np.float32)
    a[:, :k] = np.arange(5 * k).reshape(5, k) % 5 - 2
    b[:k] = np.arange(7 * k).reshape(k, 7) % 3
    return tw.parse(text), [a, b]


@pytest.mark.parametrize("known", [True, False], ids=["known", "at run time"])
@pytest.mark.parametrize("tail", [1, 15, 16, 17])
@pytest.mark.parametrize("more", [(0, 1), (31, 0)])
@pytest.mark.parametrize("machine", WHOLE)
def test_both_operands_are_cut_by_the_k_they_share(machine: str, more: tuple[int, int], tail: int, known: bool) -> None:
    target, k = load_target(machine), WHOLE[machine] + tail
    program, (a, b) = product(k, more, known)
    placed, wanted = lower(program, target), a[:, :k] @ b[:k]
    assert k == 1 or str(placed).count("matmul") > 1
    out = np.zeros((5, 7), np.float32)
    interpret(placed, [k, a, b, out])
    np.testing.assert_array_equal(out, wanted)
    out = np.zeros((5, 7), np.float32)
    run_placed(placed, target, [k, a, b, out])
    np.testing.assert_array_equal(out, wanted)
    if target.pto_arch is not None:
        module, out = emit_pto(placed, target), np.zeros((5, 7), np.float32)
        launch(module.manifest, module.texts, {"n": k, "a": a, "b": b, "out": out}, sync="auto")
        np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("known", [True, False], ids=["known", "at run time"])
@pytest.mark.parametrize("k", [1, 15, 16, 17, 63, 64, 65, 200])
@pytest.mark.parametrize("more", [(0, 1), (31, 0)])
def test_machine_code_sums_the_k_they_share(more: tuple[int, int], k: int, known: bool) -> None:
    host, (program, (a, b)) = load_target("host"), product(k, more, known)
    out = np.zeros((5, 7), np.float32)
    compile_native(lower(program, host, after=UNPLACED), host).run([k, a, b, out])
    np.testing.assert_array_equal(out, a[:, :k] @ b[:k])
