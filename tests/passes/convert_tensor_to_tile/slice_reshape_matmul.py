# target: ascend910b
# What matmul wants reaches the slice through the reshape: one load, straight to Mat.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[4, 32, 64], pl.FP32], b: pl.Tensor[[64, 48], pl.FP32], out: pl.Out[pl.Tensor[[32, 48], pl.FP32]]):
        x = pl.tensor.slice(a, [1, 32, 64], [2, 0, 0])
        y = pl.tensor.reshape(x, [32, 64])
        z = pl.tensor.matmul(y, b)
        out_1 = pl.tensor.assemble(out, z, [0, 0])
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[4, 32, 64], pl.FP32], b: pl.Tensor[[64, 48], pl.FP32], out: pl.Out[pl.Tensor[[32, 48], pl.FP32]]):
        x = pl.tile.load(a, [2, 0, 0], [1, 32, 64], target_memory=pl.Mem.Mat)
        y = pl.tile.reshape(x, [32, 64])
        b_1 = pl.tile.load(b, [0, 0], [64, 48], target_memory=pl.Mem.Mat)
        z = pl.tile.matmul(y, b_1)
        out_1 = pl.tile.store(z, [0, 0], out)
        return out_1
