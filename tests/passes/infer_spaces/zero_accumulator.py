# target: ascend910b
# idempotent: True
# The first product overwrites; the operand that the loop leaves alone is moved before it.
import tilewright.language as pl


@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 128], pl.FP16], b: pl.Tensor[[128, 32], pl.FP16], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        zero = pl.tile.full([32, 32], pl.FP32, 0.0)
        w = pl.tile.load(b, [0, 0], [32, 32])
        for k, (acc,) in pl.range(4, init_values=(zero,)):
            x = pl.tile.load(a, [0, k * 32], [32, 32])
            acc_1 = pl.tile.matmul_acc(acc, x, w)
            total = pl.yield_(acc_1)
        out_1 = pl.tile.store(total, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 128], pl.FP16], b: pl.Tensor[[128, 32], pl.FP16], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        zero_acc = pl.tile.create([32, 32], pl.FP32, target_memory=pl.Mem.Acc)
        w = pl.tile.load(b, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
        w_right = pl.tile.move(w, target_memory=pl.Mem.Right)
        for k, (acc,) in pl.range(4, init_values=(zero_acc,)):
            x = pl.tile.load(a, [0, k * 32], [32, 32], target_memory=pl.Mem.Mat)
            x_left = pl.tile.move(x, target_memory=pl.Mem.Left)
            acc_1 = pl.tile.matmul_acc(acc, x_left, w_right, init_cond=k == 0)
            total = pl.yield_(acc_1)
        out_1 = pl.tile.store(total, [0, 0], out)
        return out_1
