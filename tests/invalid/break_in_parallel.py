"""A parallel loop whose trips have no order is to end early."""

import tilewright.language as pl
from tilewright.ir.dtypes import FP32
from tilewright.ir.types import TensorType

ARGUMENTS = [TensorType((64, 64), FP32), TensorType((64, 64), FP32)]


@pl.jit
def kernel(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(4):
        if a[i, 0] > 0.0:
            break
        out[i, 0] = a[i, 0]
