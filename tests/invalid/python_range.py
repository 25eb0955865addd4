# pyright: reportUnusedVariable=false
# ruff: noqa: B007
"""Python's range instead of the language's."""

import tilewright.language as pl
from tilewright.ir.dtypes import FP32
from tilewright.ir.types import TensorType

ARGUMENTS = [TensorType((64, 64), FP32)]


@pl.jit
def kernel(a: pl.Tensor):
    b = a
    for i in range(4):
        b = b + 1.0
    return b
