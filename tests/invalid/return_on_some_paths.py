"""One path returns more than the other."""

import tilewright.language as pl
from tilewright.ir.dtypes import FP32
from tilewright.ir.types import TensorType

ARGUMENTS = [TensorType((64, 64), FP32)]


@pl.jit
def kernel(a: pl.Tensor):
    if a[0, 0] > 0.0:
        return a + 1.0, a
    return a + 2.0
