"""A dtype of the language that this compiler has no numbers for."""

import tilewright.language as pl
from tilewright.ir.dtypes import FP32
from tilewright.ir.types import TensorType

ARGUMENTS = [TensorType((64, 64), FP32), TensorType((64, 64), FP32)]


@pl.jit
def kernel(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    out[:] = pl.cast(pl.cast(a, pl.FP4), pl.FP32)
