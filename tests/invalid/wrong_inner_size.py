"""A product whose inner sizes differ."""

import tilewright.language as pl
from tilewright.ir.dtypes import FP32
from tilewright.ir.types import TensorType

ARGUMENTS = [TensorType((64, 32), FP32), TensorType((64, 16), FP32)]


@pl.jit
def kernel(a: pl.Tensor, b: pl.Tensor):
    c = pl.matmul(a, b)
    return c
