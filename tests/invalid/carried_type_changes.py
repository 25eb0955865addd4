"""A value whose type changes from trip to trip."""

import tilewright.language as pl
from tilewright.ir.dtypes import FP32
from tilewright.ir.types import TensorType

ARGUMENTS = [TensorType((64, 64), FP32)]


@pl.jit
def kernel(a: pl.Tensor):
    total = 0
    for i in pl.range(8):
        total = total + a[i, 0]
    return a * total
