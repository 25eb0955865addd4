"""A kernel that is given too many arguments."""

import tilewright.language as pl
from tilewright.ir.dtypes import FP32
from tilewright.ir.types import TensorType

ARGUMENTS = [TensorType((64, 64), FP32), TensorType((64, 64), FP32)]


@pl.jit.inline
def scaled(x: pl.Tensor, factor: float):
    return x * factor


@pl.jit
def kernel(a: pl.Tensor, b: pl.Tensor):
    return scaled(a, 2.0, b)
