# target: ascend910b
# idempotent: True
# Operands are loaded to Mat and moved on; the rounding becomes part of the store.
import tilewright.language as pl


@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 64], pl.FP16], b: pl.Tensor[[64, 64], pl.FP16], out: pl.Out[pl.Tensor[[64, 64], pl.FP16]]):
        x = pl.tile.load(a, [0, 0], [64, 64])
        y = pl.tile.load(b, [0, 0], [64, 64])
        r = pl.tile.matmul(x, y)
        h = pl.tile.cast(r, pl.FP16)
        out_1 = pl.tile.store(h, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 64], pl.FP16], b: pl.Tensor[[64, 64], pl.FP16], out: pl.Out[pl.Tensor[[64, 64], pl.FP16]]):
        x = pl.tile.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
        y = pl.tile.load(b, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
        x_left = pl.tile.move(x, target_memory=pl.Mem.Left)
        y_right = pl.tile.move(y, target_memory=pl.Mem.Right)
        r: pl.Tile[[64, 64], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(x_left, y_right)
        out_1 = pl.tile.store(r, [0, 0], out)
        return out_1
