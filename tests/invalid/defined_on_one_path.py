# pyright: reportPossiblyUnboundVariable=false
"""A name assigned in one branch only."""

import tilewright.language as pl
from tilewright.ir.dtypes import FP32
from tilewright.ir.types import TensorType

ARGUMENTS = [TensorType((64, 64), FP32)]


@pl.jit
def kernel(a: pl.Tensor):
    if a[0, 0] > 0.0:
        b = a + 1.0
    return b
