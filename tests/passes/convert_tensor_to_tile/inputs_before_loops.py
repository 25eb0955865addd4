# target: ascend910b
# An input that every trip wants whole is loaded once, before the loop.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
        for i, (o,) in pl.range(4, init_values=(out,)):
            x = pl.tensor.slice(a, [16, 32], [i * 16, 0])
            y = pl.tensor.matmul(x, b)
            o_1 = pl.tensor.assemble(o, y, [i * 16, 0])
            o_2 = pl.yield_(o_1)
        return o_2

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
        b_1 = pl.tile.load(b, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
        for i, (o,) in pl.range(4, init_values=(out,)):
            x = pl.tile.load(a, [i * 16, 0], [16, 32], target_memory=pl.Mem.Mat)
            y = pl.tile.matmul(x, b_1)
            o_1 = pl.tile.store(y, [i * 16, 0], o)
            o_2 = pl.yield_(o_1)
        return o_2
