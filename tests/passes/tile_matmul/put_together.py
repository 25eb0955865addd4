# target: x86_avx512
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[32, 16], pl.FP32], y: pl.Tensor[[16, 48], pl.FP32], out: pl.Out[pl.Tensor[[32, 1], pl.FP32]]):
        x_1 = pl.tile.load(x, [0, 0], [32, 16], target_memory=pl.Mem.Mat)
        y_1 = pl.tile.load(y, [0, 0], [16, 48], target_memory=pl.Mem.Mat)
        s = pl.tile.matmul(x_1, y_1)
        m = pl.tile.row_max(s)
        out_1 = pl.tile.store(m, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[32, 16], pl.FP32], y: pl.Tensor[[16, 48], pl.FP32], out: pl.Out[pl.Tensor[[32, 1], pl.FP32]]):
        x_1 = pl.tile.load(x, [0, 0], [32, 16], target_memory=pl.Mem.Mat)
        y_1 = pl.tile.load(y, [0, 0], [16, 48], target_memory=pl.Mem.Mat)
        s_room = pl.tile.create([32, 48], pl.FP32, target_memory=pl.Mem.Vec)
        for i, (s,) in pl.range(0, 32, 8, init_values=(s_room,)):
            x_1_left = pl.tile.extract(x_1, i, 0, [8, 1], target_memory=pl.Mem.Left, valid_shape=[8, 1])
            y_1_right = pl.tile.extract(y_1, 0, 0, [1, 48], target_memory=pl.Mem.Right, valid_shape=[1, 48])
            s_1 = pl.tile.matmul(x_1_left, y_1_right)
            for i_1, (s_2,) in pl.range(1, 16, init_values=(s_1,)):
                x_1_left_1 = pl.tile.extract(x_1, i, i_1, [8, 1], target_memory=pl.Mem.Left, valid_shape=[8, 1])
                y_1_right_1 = pl.tile.extract(y_1, i_1, 0, [1, 48], target_memory=pl.Mem.Right, valid_shape=[1, 48])
                s_3 = pl.tile.matmul_acc(s_2, x_1_left_1, y_1_right_1)
                s_4 = pl.yield_(s_3)
            s_5 = pl.tile.assemble(s, s_4, [i, 0])
            s_6 = pl.yield_(s_5)
        m = pl.tile.row_max(s_6)
        out_1 = pl.tile.store(m, [0, 0], out)
        return out_1
