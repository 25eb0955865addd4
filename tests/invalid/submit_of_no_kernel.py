"""What is submitted is no kernel."""

import tilewright.language as pl
from tilewright.ir.dtypes import FP32
from tilewright.ir.types import TensorType

ARGUMENTS = [TensorType((64, 64), FP32), TensorType((64, 64), FP32)]


@pl.jit
def kernel(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    result, _ = pl.submit(a, out)
    out[:] = result
