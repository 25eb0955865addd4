# target: ascend910b
# Each tile has its part of the bias, and of the transposed operand.
import tilewright.language as pl


@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[17, 200], pl.FP16], b: pl.Tensor[[1000, 200], pl.FP16], c: pl.Tensor[[1, 1000], pl.FP32], out: pl.Out[pl.Tensor[[17, 1000], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [17, 200])
        y = pl.tile.load(b, [0, 0], [1000, 200], transpose=True)
        row = pl.tile.load(c, [0, 0], [1, 1000])
        r = pl.tile.matmul_bias(x, y, row)
        out_1 = pl.tile.store(r, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[17, 200], pl.FP16], b: pl.Tensor[[1000, 200], pl.FP16], c: pl.Tensor[[1, 1000], pl.FP32], out: pl.Out[pl.Tensor[[17, 1000], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [17, 200])
        y = pl.tile.load(b, [0, 0], [1000, 200], transpose=True)
        x_left = pl.tile.move(x, target_memory=pl.Mem.Left)
        for i, (r,) in pl.pipeline(0, 960, 64, stage=2, init_values=(out,)):
            y_right = pl.tile.extract(y, 0, i, [200, 64], target_memory=pl.Mem.Right, valid_shape=[200, 64])
            row = pl.tile.load(c, [0, i], [1, 64])
            r_1 = pl.tile.matmul_bias(x_left, y_right, row)
            out_1 = pl.tile.store(r_1, [0, i], r)
            r_2 = pl.yield_(out_1)
        y_right_1 = pl.tile.extract(y, 0, 960, [200, 40], target_memory=pl.Mem.Right, valid_shape=[200, 40])
        row_1 = pl.tile.load(c, [0, 960], [1, 40])
        r_3 = pl.tile.matmul_bias(x_left, y_right_1, row_1)
        out_2 = pl.tile.store(r_3, [0, 960], r_2)
        return out_2
