# target: ascend910b
# idempotent: True
# The accumulator goes from copy to copy; operands have a slot for each. Only slot 0 can be the first trip.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 64], pl.FP32], b: pl.Tensor[[64, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        y = pl.tile.load(b, [0, 0], [64, 16], target_memory=pl.Mem.Mat)
        seed = pl.tile.create([16, 16], pl.FP32, target_memory=pl.Mem.Acc)
        for k, (acc,) in pl.pipeline(0, 64, 16, stage=2, init_values=(seed,)):
            l = pl.tile.extract(x, 0, k, [16, 16], target_memory=pl.Mem.Left)
            r = pl.tile.extract(y, k, 0, [16, 16], target_memory=pl.Mem.Right)
            acc_1 = pl.tile.matmul_acc(acc, l, r, init_cond=k == 0)
            acc_2 = pl.yield_(acc_1)
        out_1 = pl.tile.store(acc_2, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 64], pl.FP32], b: pl.Tensor[[64, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        y = pl.tile.load(b, [0, 0], [64, 16], target_memory=pl.Mem.Mat)
        seed = pl.tile.create([16, 16], pl.FP32, target_memory=pl.Mem.Acc)
        for k, (acc,) in pl.pipeline(0, 64, 32, stage=1, init_values=(seed,)):
            l = pl.tile.extract(x, 0, k, [16, 16], target_memory=pl.Mem.Left)
            r = pl.tile.extract(y, k, 0, [16, 16], target_memory=pl.Mem.Right)
            acc_1 = pl.tile.matmul_acc(acc, l, r, init_cond=k == 0)
            l_1 = pl.tile.extract(x, 0, k + 16, [16, 16], target_memory=pl.Mem.Left)
            r_1 = pl.tile.extract(y, k + 16, 0, [16, 16], target_memory=pl.Mem.Right)
            acc_2 = pl.tile.matmul_acc(acc_1, l_1, r_1, init_cond=False)
            acc_3 = pl.yield_(acc_2)
        out_1 = pl.tile.store(acc_3, [0, 0], out)
        return out_1
