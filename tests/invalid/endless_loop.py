"""A loop without a condition that nothing ends."""

import tilewright.language as pl
from tilewright.ir.dtypes import FP32
from tilewright.ir.types import TensorType

ARGUMENTS = [TensorType((64, 64), FP32)]


@pl.jit
def kernel(a: pl.Tensor):
    while True:
        a = a - 1.0
    return a
