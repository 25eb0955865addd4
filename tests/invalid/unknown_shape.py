# pyright: reportUnusedVariable=false
"""A shape that is not known when the kernel is compiled."""

import tilewright.language as pl
from tilewright.ir.dtypes import FP32
from tilewright.ir.types import TensorType

ARGUMENTS = [TensorType((64, 64), FP32)]


@pl.jit
def kernel(a: pl.Tensor):
    for n in pl.range(8):
        x: pl.Tile[[n + 0.5, 64], pl.FP32] = pl.load(a, [0, 0], [8, 64])
    return a
