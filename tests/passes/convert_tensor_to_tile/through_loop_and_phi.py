# target: ascend910b
# What matmul wants reaches loads through a loop carry and a branch.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[32, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        if n > 3:
            x = pl.tensor.slice(a, [16, 32], [0, 0])
            z = pl.yield_(x)
        else:
            y = pl.tensor.slice(a, [16, 32], [16, 0])
            z = pl.yield_(y)
        for i, (c, o) in pl.range(2, init_values=(z, out)):
            m = pl.tensor.matmul(c, b)
            o_1 = pl.tensor.assemble(o, m, [i * 16, 0])
            d = pl.tensor.slice(b, [16, 32], [i, 0])
            c_1, o_2 = pl.yield_(d, o_1)
        return o_2

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[32, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        if n > 3:
            x = pl.tile.load(a, [0, 0], [16, 32], target_memory=pl.Mem.Mat)
            z = pl.yield_(x)
        else:
            y = pl.tile.load(a, [16, 0], [16, 32], target_memory=pl.Mem.Mat)
            z = pl.yield_(y)
        b_1 = pl.tile.load(b, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
        for i, (c, o) in pl.range(2, init_values=(z, out)):
            m = pl.tile.matmul(c, b_1)
            o_1 = pl.tile.store(m, [i * 16, 0], o)
            d = pl.tile.load(b, [i, 0], [16, 32], target_memory=pl.Mem.Mat)
            c_1, o_2 = pl.yield_(d, o_1)
        return o_2
