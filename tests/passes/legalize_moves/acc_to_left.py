# target: ascend910b
# idempotent: True
# Loads and moves become the hops that the machine has.
import tilewright.language as pl


@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 64], pl.BF16], b: pl.Tensor[[64, 64], pl.BF16], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Left)
        y = pl.tile.load(b, [0, 0], [64, 64], target_memory=pl.Mem.Right)
        r: pl.Tile[[64, 64], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(x, y)
        h = pl.tile.move(r, target_memory=pl.Mem.Left, target_type=pl.BF16)
        s: pl.Tile[[64, 64], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(h, y)
        out_1 = pl.tile.store(s, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 64], pl.BF16], b: pl.Tensor[[64, 64], pl.BF16], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        x_mat = pl.tile.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
        x = pl.tile.move(x_mat, target_memory=pl.Mem.Left)
        y_mat = pl.tile.load(b, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
        y = pl.tile.move(y_mat, target_memory=pl.Mem.Right)
        r: pl.Tile[[64, 64], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(x, y)
        r_mat = pl.tile.move(r, target_memory=pl.Mem.Mat, target_type=pl.BF16)
        h = pl.tile.move(r_mat, target_memory=pl.Mem.Left)
        s: pl.Tile[[64, 64], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(h, y)
        out_1 = pl.tile.store(s, [0, 0], out)
        return out_1
