"""An argument that is not what the annotation says."""

import tilewright.language as pl
from tilewright.ir.dtypes import FP32
from tilewright.ir.types import TensorType

ARGUMENTS = [TensorType((64, 32), FP32)]


@pl.jit
def kernel(a: pl.Tensor[[64, 64], pl.FP32]):
    return a + 1.0
