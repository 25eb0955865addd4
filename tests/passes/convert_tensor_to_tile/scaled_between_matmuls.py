# target: ascend910b
# Acc to Vec for the product with s, Vec to Mat for the next matmul.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 48], pl.FP32], s: pl.Tensor[[32, 48], pl.FP32], c: pl.Tensor[[48, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        x = pl.tensor.matmul(a, b)
        y = pl.tensor.mul(x, s)
        z = pl.tensor.matmul(y, c)
        out_1 = pl.tensor.assemble(out, z, [0, 0])
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 48], pl.FP32], s: pl.Tensor[[32, 48], pl.FP32], c: pl.Tensor[[48, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        a_1 = pl.tile.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
        b_1 = pl.tile.load(b, [0, 0], [64, 48], target_memory=pl.Mem.Mat)
        x = pl.tile.matmul(a_1, b_1)
        x_1 = pl.tile.move(x, target_memory=pl.Mem.Vec)
        s_1 = pl.tile.load(s, [0, 0], [32, 48], target_memory=pl.Mem.Vec)
        y = pl.tile.mul(x_1, s_1)
        y_1 = pl.tile.move(y, target_memory=pl.Mem.Mat)
        c_1 = pl.tile.load(c, [0, 0], [48, 32], target_memory=pl.Mem.Mat)
        z = pl.tile.matmul(y_1, c_1)
        out_1 = pl.tile.store(z, [0, 0], out)
        return out_1
