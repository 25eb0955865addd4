# target: ascend910b
# The result is read by another product: it is collected, rounded on its way, and loaded by whoever wants it.
import tilewright.language as pl


@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[320, 64], pl.BF16], b: pl.Tensor[[64, 320], pl.BF16], c: pl.Tensor[[320, 16], pl.BF16], out: pl.Out[pl.Tensor[[320, 16], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [320, 64])
        y = pl.tile.load(b, [0, 0], [64, 320])
        z = pl.tile.load(c, [0, 0], [320, 16])
        xy = pl.tile.matmul(x, y)
        h = pl.tile.cast(xy, pl.BF16)
        r = pl.tile.matmul(h, z)
        out_1 = pl.tile.store(r, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[320, 64], pl.BF16], b: pl.Tensor[[64, 320], pl.BF16], c: pl.Tensor[[320, 16], pl.BF16], out: pl.Out[pl.Tensor[[320, 16], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [320, 64])
        y = pl.tile.load(b, [0, 0], [64, 320])
        z = pl.tile.load(c, [0, 0], [320, 16])
        h_space = pl.tensor.create([320, 320], pl.BF16)
        for i, (xy,) in pl.range(0, 256, 128, init_values=(h_space,)):
            y_right = pl.tile.extract(y, 0, i, [64, 128], target_memory=pl.Mem.Right, valid_shape=[64, 128])
            for i_1, (xy_1,) in pl.pipeline(0, 224, 112, stage=2, init_values=(xy,)):
                x_left = pl.tile.extract(x, i_1, 0, [112, 64], target_memory=pl.Mem.Left, valid_shape=[112, 64])
                xy_2 = pl.tile.matmul(x_left, y_right)
                h = pl.tile.cast(xy_2, pl.BF16)
                h_ddr = pl.tile.store(h, [i_1, i], xy_1)
                xy_3 = pl.yield_(h_ddr)
            x_left_1 = pl.tile.extract(x, 224, 0, [96, 64], target_memory=pl.Mem.Left, valid_shape=[96, 64])
            xy_4 = pl.tile.matmul(x_left_1, y_right)
            h_1 = pl.tile.cast(xy_4, pl.BF16)
            h_ddr_1 = pl.tile.store(h_1, [224, i], xy_3)
            xy_5 = pl.yield_(h_ddr_1)
        y_right_1 = pl.tile.extract(y, 0, 256, [64, 64], target_memory=pl.Mem.Right, valid_shape=[64, 64])
        for i_2, (xy_6,) in pl.pipeline(0, 224, 112, stage=2, init_values=(xy_5,)):
            x_left_2 = pl.tile.extract(x, i_2, 0, [112, 64], target_memory=pl.Mem.Left, valid_shape=[112, 64])
            xy_7 = pl.tile.matmul(x_left_2, y_right_1)
            h_2 = pl.tile.cast(xy_7, pl.BF16)
            h_ddr_2 = pl.tile.store(h_2, [i_2, 256], xy_6)
            xy_8 = pl.yield_(h_ddr_2)
        x_left_3 = pl.tile.extract(x, 224, 0, [96, 64], target_memory=pl.Mem.Left, valid_shape=[96, 64])
        xy_9 = pl.tile.matmul(x_left_3, y_right_1)
        h_3 = pl.tile.cast(xy_9, pl.BF16)
        h_ddr_3 = pl.tile.store(h_3, [224, 256], xy_8)
        h_4 = pl.tile.load(h_ddr_3, [0, 0], [320, 320])
        z_right = pl.tile.move(z, target_memory=pl.Mem.Right)
        for i_3, (r,) in pl.pipeline(0, 288, 48, stage=2, init_values=(out,)):
            h_left = pl.tile.extract(h_4, i_3, 0, [48, 320], target_memory=pl.Mem.Left, valid_shape=[48, 320])
            r_1 = pl.tile.matmul(h_left, z_right)
            out_1 = pl.tile.store(r_1, [i_3, 0], r)
            r_2 = pl.yield_(out_1)
        h_left_1 = pl.tile.extract(h_4, 288, 0, [32, 320], target_memory=pl.Mem.Left, valid_shape=[32, 320])
        r_3 = pl.tile.matmul(h_left_1, z_right)
        out_2 = pl.tile.store(r_3, [288, 0], r_2)
        return out_2
