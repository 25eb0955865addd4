"""A kernel is left from inside a loop whose trips have no order."""

import tilewright.language as pl
from tilewright.ir.dtypes import FP32
from tilewright.ir.types import TensorType

ARGUMENTS = [TensorType((64, 64), FP32)]


@pl.jit
def kernel(a: pl.Tensor):
    for i in pl.parallel(4):
        if a[i, 0] > 0.0:
            return a + 1.0
    return a
