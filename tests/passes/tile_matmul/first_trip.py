# target: ascend910b
# The first trip defines the sum: it stands in front of the loop afterwards.
import tilewright.language as pl


@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 512], pl.INT8], b: pl.Tensor[[512, 1280], pl.INT8], out: pl.Out[pl.Tensor[[16, 1280], pl.INT32]]):
        new = pl.tile.create([16, 1280], pl.INT32)
        for k, (acc,) in pl.range(4, init_values=(new,)):
            x = pl.tile.load(a, [0, k * 128], [16, 128])
            y = pl.tile.load(b, [k * 128, 0], [128, 1280])
            if k == 0:
                one = pl.tile.matmul(x, y)
                phi = pl.yield_(one)
            else:
                more = pl.tile.matmul_acc(acc, x, y)
                phi = pl.yield_(more)
            acc_1 = pl.yield_(phi)
        out_1 = pl.tile.store(acc_1, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 512], pl.INT8], b: pl.Tensor[[512, 1280], pl.INT8], out: pl.Out[pl.Tensor[[16, 1280], pl.INT32]]):
        for i, (acc_1,) in pl.range(0, 1280, 256, init_values=(out,)):
            x = pl.tile.load(a, [0, 0], [16, 128])
            x_left = pl.tile.move(x, target_memory=pl.Mem.Left)
            y = pl.tile.load(b, [0, i], [128, 256])
            y_right = pl.tile.move(y, target_memory=pl.Mem.Right)
            one = pl.tile.matmul(x_left, y_right)
            for k, (acc,) in pl.range(1, 4, init_values=(one,)):
                x_1 = pl.tile.load(a, [0, k * 128], [16, 128])
                x_left_1 = pl.tile.move(x_1, target_memory=pl.Mem.Left)
                y_1 = pl.tile.load(b, [k * 128, i], [128, 256])
                y_right_1 = pl.tile.move(y_1, target_memory=pl.Mem.Right)
                more = pl.tile.matmul_acc(acc, x_left_1, y_right_1)
                acc_2 = pl.yield_(more)
            out_1 = pl.tile.store(acc_2, [0, i], acc_1)
            acc_3 = pl.yield_(out_1)
        return acc_3
