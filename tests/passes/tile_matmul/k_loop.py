# target: ascend910b
# idempotent: True
# K does not fit Left and Right: steps along K add to one accumulator, the last one shorter. The left operand fits Mat
# and is loaded once, the right one comes block by block.
import tilewright.language as pl


@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[65, 1000], pl.FP32], b: pl.Tensor[[1000, 200], pl.FP32], out: pl.Out[pl.Tensor[[65, 200], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [65, 1000])
        y = pl.tile.load(b, [0, 0], [1000, 200])
        c = pl.tile.matmul(x, y)
        out_1 = pl.tile.store(c, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[65, 1000], pl.FP32], b: pl.Tensor[[1000, 200], pl.FP32], out: pl.Out[pl.Tensor[[65, 200], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [65, 1000])
        x_left = pl.tile.extract(x, 0, 0, [65, 32], target_memory=pl.Mem.Left, valid_shape=[65, 32])
        y = pl.tile.load(b, [0, 0], [32, 200])
        y_right = pl.tile.move(y, target_memory=pl.Mem.Right)
        c = pl.tile.matmul(x_left, y_right)
        for i, (c_1,) in pl.pipeline(32, 992, 32, stage=2, init_values=(c,)):
            x_left_1 = pl.tile.extract(x, 0, i, [65, 32], target_memory=pl.Mem.Left, valid_shape=[65, 32])
            y_1 = pl.tile.load(b, [i, 0], [32, 200])
            y_right_1 = pl.tile.move(y_1, target_memory=pl.Mem.Right)
            c_2 = pl.tile.matmul_acc(c_1, x_left_1, y_right_1)
            c_3 = pl.yield_(c_2)
        x_left_2 = pl.tile.extract(x, 0, 992, [65, 8], target_memory=pl.Mem.Left, valid_shape=[65, 8])
        y_2 = pl.tile.load(b, [992, 0], [8, 200])
        y_right_2 = pl.tile.move(y_2, target_memory=pl.Mem.Right)
        c_4 = pl.tile.matmul_acc(c_3, x_left_2, y_right_2)
        out_1 = pl.tile.store(c_4, [0, 0], out)
        return out_1
