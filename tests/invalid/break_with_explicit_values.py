"""A jump out of a loop whose values are carried by pl.yield_."""

import tilewright.language as pl
from tilewright.ir.dtypes import FP32
from tilewright.ir.types import TensorType

ARGUMENTS = [TensorType((64, 64), FP32), TensorType((64, 64), FP32)]


@pl.jit
def kernel(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i, (x,) in pl.range(4, init_values=(a,)):
        if x[i, 0] > 0.0:
            break
        y = pl.yield_(x + 1.0)
    out[:] = y


# pyright: reportPossiblyUnboundVariable=false
