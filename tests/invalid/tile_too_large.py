"""A tile that does not fit the memory that it is loaded into."""

import tilewright.language as pl
from tilewright.ir.dtypes import FP32
from tilewright.ir.types import TensorType

TARGET = "ascend910b"
ARGUMENTS = [TensorType((512, 512), FP32), TensorType((512, 512), FP32)]


@pl.jit.incore
def kernel(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    x = pl.load(a, [0, 0], [512, 512])
    pl.store(pl.exp(x), [0, 0], out)
