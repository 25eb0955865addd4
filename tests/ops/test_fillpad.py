"""`fillpad` of a tensor: a window's valid part, filled to the extents that the window was cut as."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.native import compile_native
from tilewright.codegen.pto.emulate import launch
from tilewright.codegen.pto.writer import emit_pto
from tilewright.compiler import UNPLACED, lower
from tilewright.errors import TilewrightError
from tilewright.targets import load_target

TEXT = """
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[21, 16], pl.FP32], out: pl.Out[pl.Tensor[[24, 16], pl.FP32]]):
        for i, (o,) in pl.range(3, init_values=(out,)):
            {cut}
            padded = {fill}
            (o_1,) = pl.yield_(pl.assemble(o, padded, [i * 8, 0]))
        return o_1
"""
CUT = "window = pl.slice(x, [8, 16], [i * 8, 0], valid_shape=[pl.min(8, 21 - i * 8), 16])"


@pytest.mark.parametrize("fill", ["pl.fillpad(window, pl.PadValue.min)", "pl.tensor.fillpad(window)"])
@pytest.mark.parametrize("machine", ["host", "ascend910b", "ascend950"])
def test_a_window_is_filled(fill: str, machine: str) -> None:
    x = np.random.default_rng(3).integers(-9, 9, (21, 16)).astype(np.float32)
    wanted = np.full((24, 16), -np.inf if "min" in fill else 0, np.float32)
    wanted[:21] = x
    out, target, program = np.zeros_like(wanted), load_target(machine), tw.parse(TEXT.format(cut=CUT, fill=fill))
    if machine == "host":
        compile_native(lower(program, target, after=UNPLACED), target).run([x, out])
    else:
        module = emit_pto(lower(program, target), target)
        launch(module.manifest, module.texts, {"x": x, "out": out}, sync="auto")
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("fill", ["pl.fillpad(window)", "pl.tensor.fillpad(window)"])
def test_what_is_no_window_has_no_extents_to_fill(fill: str) -> None:
    with pytest.raises(TilewrightError, match=r"takes a tile|lacks 'shape'"):
        tw.parse(TEXT.format(cut="window = pl.add(x, 1.0)", fill=fill))
