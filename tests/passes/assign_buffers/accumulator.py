# target: ascend910b
# Init, carry, and result of an accumulation are one buffer, and nothing is copied.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 64], pl.FP16], b: pl.Tensor[[64, 16], pl.FP16], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        l = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        r = pl.tile.load(b, [0, 0], [64, 16], target_memory=pl.Mem.Mat)
        left = pl.tile.move(l, target_memory=pl.Mem.Left)
        right = pl.tile.move(r, target_memory=pl.Mem.Right)
        first: pl.Tile[[16, 16], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(left, right)
        for i, (acc,) in pl.range(0, 3, 1, init_values=(first,)):
            acc_1: pl.Tile[[16, 16], pl.FP32, pl.Mem.Acc] = pl.tile.matmul_acc(acc, left, right)
            acc_2 = pl.yield_(acc_1)
        out_1 = pl.tile.store(acc_2, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 64], pl.FP16], b: pl.Tensor[[64, 16], pl.FP16], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        l: pl.Tile[[16, 64], pl.FP16, pl.MemRef("mat0", nbytes=2048), pl.Mem.Mat] = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        r: pl.Tile[[64, 16], pl.FP16, pl.MemRef("mat1", nbytes=2048), pl.Mem.Mat] = pl.tile.load(b, [0, 0], [64, 16], target_memory=pl.Mem.Mat)
        left: pl.Tile[[16, 64], pl.FP16, pl.MemRef("left0", nbytes=2048), pl.Mem.Left] = pl.tile.move(l, target_memory=pl.Mem.Left)
        right: pl.Tile[[64, 16], pl.FP16, pl.MemRef("right0", nbytes=2048), pl.Mem.Right] = pl.tile.move(r, target_memory=pl.Mem.Right)
        first: pl.Tile[[16, 16], pl.FP32, pl.MemRef("acc0", nbytes=1024), pl.Mem.Acc] = pl.tile.matmul(left, right)
        for i, (acc,) in pl.range(3, init_values=(first,)):
            acc_1: pl.Tile[[16, 16], pl.FP32, pl.MemRef("acc0", nbytes=1024), pl.Mem.Acc] = pl.tile.matmul_acc(acc, left, right)
            acc_2 = pl.yield_(acc_1)
        out_1 = pl.tile.store(acc_2, [0, 0], out)
        return out_1
