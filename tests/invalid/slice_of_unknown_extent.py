# pyright: reportUnusedVariable=false
"""A slice whose extent is known only when the kernel runs."""

import tilewright.language as pl
from tilewright.ir.dtypes import FP32
from tilewright.ir.types import TensorType

ARGUMENTS = [TensorType((64, 64), FP32), TensorType((8,), FP32)]


@pl.jit
def kernel(a: pl.Tensor, lengths: pl.Tensor):
    for i in pl.range(8):
        b = a[0:i, :]
    return a
