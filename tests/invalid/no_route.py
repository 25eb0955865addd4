"""A move between two memories that the machine has no path for."""

import tilewright.language as pl
from tilewright.ir.dtypes import FP32
from tilewright.ir.types import TensorType

TARGET = "ascend950"
ARGUMENTS = [TensorType((64, 64), FP32), TensorType((64, 64), FP32)]


@pl.jit.incore
def kernel(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    x = pl.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Left)
    y = pl.move(x, target_memory=pl.Mem.Vec)
    pl.store(y, [0, 0], out)
