"""A pinned ring has fewer slots."""

import tilewright.language as pl
from tilewright.ir.dtypes import FP32
from tilewright.ir.types import TensorType

ARGUMENTS = [TensorType((64, 64), FP32), TensorType((64, 64), FP32)]


@pl.jit
def kernel(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        ring = pl.MemRef("ring", addr=0, nbytes=16384, slots=2)
        x: pl.Tile[[64, 64], pl.FP32, ring[2], pl.Mem.Vec] = pl.load(a, [0, 0], [64, 64])
        out = pl.store(x, [0, 0], out)


# pyright: reportIndexIssue=false
