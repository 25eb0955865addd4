# target: ascend910b
# idempotent: True
# One tensor read by add and by matmul: loaded twice, since no edge leads from Vec to Mat.
import tilewright.language as pl


@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 32], pl.FP16], b: pl.Tensor[[32, 32], pl.FP16], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]], other: pl.Out[pl.Tensor[[32, 32], pl.FP16]]):
        x = pl.tile.load(a, [0, 0], [32, 32])
        y = pl.tile.load(b, [0, 0], [32, 32])
        s = pl.tile.add(x, x)
        other_1 = pl.tile.store(s, [0, 0], other)
        r = pl.tile.matmul(x, y)
        out_1 = pl.tile.store(r, [0, 0], out)
        return out_1, other_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 32], pl.FP16], b: pl.Tensor[[32, 32], pl.FP16], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]], other: pl.Out[pl.Tensor[[32, 32], pl.FP16]]):
        x = pl.tile.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
        y = pl.tile.load(b, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
        x_vec = pl.tile.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Vec)
        s: pl.Tile[[32, 32], pl.FP16, pl.Mem.Vec] = pl.tile.add(x_vec, x_vec)
        other_1 = pl.tile.store(s, [0, 0], other)
        x_left = pl.tile.move(x, target_memory=pl.Mem.Left)
        y_right = pl.tile.move(y, target_memory=pl.Mem.Right)
        r: pl.Tile[[32, 32], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(x_left, y_right)
        out_1 = pl.tile.store(r, [0, 0], out)
        return out_1, other_1
