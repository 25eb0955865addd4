"""A loop over pl.while_ that asks nothing."""

import tilewright.language as pl
from tilewright.ir.dtypes import FP32
from tilewright.ir.types import TensorType

ARGUMENTS = [TensorType((64, 64), FP32), TensorType((64, 64), FP32)]


@pl.jit
def kernel(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    for (n,) in pl.while_(init_values=(0,)):
        m = pl.yield_(n + 1)
    out[:] = a + m


# pyright: reportPossiblyUnboundVariable=false
