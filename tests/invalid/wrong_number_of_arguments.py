"""An operation that lacks an argument."""

import tilewright.language as pl
from tilewright.ir.dtypes import FP32
from tilewright.ir.types import TensorType

ARGUMENTS = [TensorType((64, 64), FP32)]


@pl.jit
def kernel(a: pl.Tensor):
    x = pl.load(a, [0, 0])
    return x
