# target: ascend910b
# What a loop carries lives where it costs least; after it one consumer gets it there, one elsewhere.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]], other: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        for i, (x,) in pl.range(3, init_values=(a,)):
            x_1 = pl.tensor.add(x, b)
            x_2 = pl.yield_(x_1)
        y = pl.tensor.mul(x_2, b)
        z = pl.tensor.matmul(x_2, b)
        out_1 = pl.tensor.assemble(out, y, [0, 0])
        other_1 = pl.tensor.assemble(other, z, [0, 0])
        return out_1, other_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]], other: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        b_1 = pl.tile.load(b, [0, 0], [32, 32], target_memory=pl.Mem.Vec)
        a_1 = pl.tile.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Vec)
        for i, (x,) in pl.range(3, init_values=(a_1,)):
            x_1: pl.Tile[[32, 32], pl.FP32, pl.Mem.Vec] = pl.tile.add(x, b_1)
            x_2 = pl.yield_(x_1)
        y = pl.tile.mul(x_2, b_1)
        x_3 = pl.tile.move(x_2, target_memory=pl.Mem.Mat)
        b_2 = pl.tile.load(b, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
        z = pl.tile.matmul(x_3, b_2)
        out_1 = pl.tile.store(y, [0, 0], out)
        other_1 = pl.tile.store(z, [0, 0], other)
        return out_1, other_1
