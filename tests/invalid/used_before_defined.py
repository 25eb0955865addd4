# pyright: reportUnboundVariable=false
# ruff: noqa: F821
"""A name that nothing was assigned to."""

import tilewright.language as pl
from tilewright.ir.dtypes import FP32
from tilewright.ir.types import TensorType

ARGUMENTS = [TensorType((64, 64), FP32)]


@pl.jit
def kernel(a: pl.Tensor):
    b = a + bias
    bias = b * 2.0
    return bias
