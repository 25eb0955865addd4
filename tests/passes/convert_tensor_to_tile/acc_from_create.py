# target: ascend910b
# The room for the accumulator is made where the sum lives.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 128], pl.FP32], b: pl.Tensor[[128, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        acc = pl.tensor.create([32, 32], pl.FP32)
        for i, (c,) in pl.range(4, init_values=(acc,)):
            x = pl.tensor.slice(a, [32, 32], [0, i * 32])
            y = pl.tensor.slice(b, [32, 32], [i * 32, 0])
            c_1 = pl.tensor.matmul_acc(c, x, y, init_cond=i == 0)
            c_2 = pl.yield_(c_1)
        out_1 = pl.tensor.assemble(out, c_2, [0, 0])
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 128], pl.FP32], b: pl.Tensor[[128, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        acc = pl.tile.create([32, 32], pl.FP32, target_memory=pl.Mem.Acc)
        for i, (c,) in pl.range(4, init_values=(acc,)):
            x = pl.tile.load(a, [0, i * 32], [32, 32], target_memory=pl.Mem.Mat)
            y = pl.tile.load(b, [i * 32, 0], [32, 32], target_memory=pl.Mem.Mat)
            c_1 = pl.tile.matmul_acc(c, x, y, init_cond=i == 0)
            c_2 = pl.yield_(c_1)
        out_1 = pl.tile.store(c_2, [0, 0], out)
        return out_1
