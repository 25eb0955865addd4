# target: ascend910b
# The phi is an accumulator, and is stored from there.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[32, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        if n > 3:
            x = pl.tensor.matmul(a, b)
            z = pl.yield_(x)
        else:
            y = pl.tensor.matmul(b, a)
            z = pl.yield_(y)
        out_1 = pl.tensor.assemble(out, z, [0, 0])
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[32, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        if n > 3:
            a_1 = pl.tile.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
            b_1 = pl.tile.load(b, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
            x: pl.Tile[[32, 32], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(a_1, b_1)
            z = pl.yield_(x)
        else:
            b_2 = pl.tile.load(b, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
            a_2 = pl.tile.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
            y: pl.Tile[[32, 32], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(b_2, a_2)
            z = pl.yield_(y)
        out_1 = pl.tile.store(z, [0, 0], out)
        return out_1
