# target: ascend910b
# Blocks of the result are work items; each adds up its products along K, and finishes its block.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[500, 1024], pl.FP16], b: pl.Tensor[[1024, 640], pl.FP16], bias: pl.Tensor[[1, 640], pl.FP32], out: pl.Out[pl.Tensor[[500, 640], pl.FP32]]):
        a_1 = pl.tile.load(a, [0, 0], [500, 1024], target_memory=pl.Mem.Mat)
        b_1 = pl.tile.load(b, [0, 0], [1024, 640], target_memory=pl.Mem.Mat)
        c = pl.tile.matmul(a_1, b_1)
        c_1 = pl.tile.move(c, target_memory=pl.Mem.Vec)
        bias_1 = pl.tile.load(bias, [0, 0], [1, 640], target_memory=pl.Mem.Vec)
        y = pl.tile.col_expand_add(c_1, bias_1)
        out_1 = pl.tile.store(y, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[500, 1024], pl.FP16], b: pl.Tensor[[1024, 640], pl.FP16], bias: pl.Tensor[[1, 640], pl.FP32], out: pl.Out[pl.Tensor[[500, 640], pl.FP32]]):
        for item, (out_1,) in pl.parallel(40, init_values=(out,)):
            column = item % 5 * 128
            row = item // 5 * 64
            bias_1 = pl.tile.load(bias, [0, column], [1, 128], target_memory=pl.Mem.Vec)
            a_1 = pl.tile.load(a, [row, 0], [64, 512], valid_shape=[pl.min(64, 500 - row), 512], target_memory=pl.Mem.Mat)
            b_1 = pl.tile.load(b, [0, column], [512, 128], target_memory=pl.Mem.Mat)
            c = pl.tile.matmul(a_1, b_1)
            for column_1, (c_1,) in pl.range(512, 1024, 512, init_values=(c,)):
                a_2 = pl.tile.load(a, [row, column_1], [64, 512], valid_shape=[pl.min(64, 500 - row), 512], target_memory=pl.Mem.Mat)
                b_2 = pl.tile.load(b, [column_1, column], [512, 128], target_memory=pl.Mem.Mat)
                c_2 = pl.tile.matmul_acc(c_1, a_2, b_2)
                c_3 = pl.yield_(c_2)
            c_4 = pl.tile.move(c_3, target_memory=pl.Mem.Vec)
            y = pl.tile.col_expand_add(c_4, bias_1)
            out_2 = pl.tile.store(y, [row, column], out_1)
            out_3 = pl.yield_(out_2)
        return out_3
