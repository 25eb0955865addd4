# target: ascend910b
# idempotent: True
# The accumulator of a loop along K does not fit: the grid goes around the loop, and loads are narrowed to the tile.
import tilewright.language as pl


@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 1024], pl.INT8], b: pl.Tensor[[1024, 1152], pl.INT8], out: pl.Out[pl.Tensor[[16, 1152], pl.INT32]]):
        zero = pl.tile.full([16, 1152], pl.INT32, pl.const(0, pl.INT32))
        for k, (acc,) in pl.range(8, init_values=(zero,)):
            x = pl.tile.load(a, [0, k * 128], [16, 128])
            y = pl.tile.load(b, [k * 128, 0], [128, 1152])
            acc_1 = pl.tile.matmul_acc(acc, x, y)
            acc_2 = pl.yield_(acc_1)
        out_1 = pl.tile.store(acc_2, [0, 0], out, atomic=1)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 1024], pl.INT8], b: pl.Tensor[[1024, 1152], pl.INT8], out: pl.Out[pl.Tensor[[16, 1152], pl.INT32]]):
        for i, (acc_2,) in pl.range(0, 1024, 256, init_values=(out,)):
            x = pl.tile.load(a, [0, 0], [16, 128])
            x_left = pl.tile.move(x, target_memory=pl.Mem.Left)
            y = pl.tile.load(b, [0, i], [128, 256])
            y_right = pl.tile.move(y, target_memory=pl.Mem.Right)
            acc_1 = pl.tile.matmul(x_left, y_right)
            for k, (acc,) in pl.range(1, 8, init_values=(acc_1,)):
                x_1 = pl.tile.load(a, [0, k * 128], [16, 128])
                x_left_1 = pl.tile.move(x_1, target_memory=pl.Mem.Left)
                y_1 = pl.tile.load(b, [k * 128, i], [128, 256])
                y_right_1 = pl.tile.move(y_1, target_memory=pl.Mem.Right)
                acc_3 = pl.tile.matmul_acc(acc, x_left_1, y_right_1)
                acc_4 = pl.yield_(acc_3)
            out_1 = pl.tile.store(acc_4, [0, i], acc_2, atomic=1)
            acc_5 = pl.yield_(out_1)
        x_2 = pl.tile.load(a, [0, 0], [16, 128])
        x_left_2 = pl.tile.move(x_2, target_memory=pl.Mem.Left)
        y_2 = pl.tile.load(b, [0, 1024], [128, 128])
        y_right_2 = pl.tile.move(y_2, target_memory=pl.Mem.Right)
        acc_6 = pl.tile.matmul(x_left_2, y_right_2)
        for k_1, (acc_7,) in pl.range(1, 8, init_values=(acc_6,)):
            x_3 = pl.tile.load(a, [0, k_1 * 128], [16, 128])
            x_left_3 = pl.tile.move(x_3, target_memory=pl.Mem.Left)
            y_3 = pl.tile.load(b, [k_1 * 128, 1024], [128, 128])
            y_right_3 = pl.tile.move(y_3, target_memory=pl.Mem.Right)
            acc_8 = pl.tile.matmul_acc(acc_7, x_left_3, y_right_3)
            acc_9 = pl.yield_(acc_8)
        out_2 = pl.tile.store(acc_9, [0, 1024], acc_5, atomic=1)
        return out_2
