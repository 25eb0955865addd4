# target: ascend910b
# idempotent: True
# The result does not fit the accumulator: tiles of it are completed and stored one by one. The right operand is held.
import tilewright.language as pl


@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[320, 64], pl.BF16], b: pl.Tensor[[64, 256], pl.BF16], out: pl.Out[pl.Tensor[[320, 256], pl.BF16]]):
        x = pl.tile.load(a, [0, 0], [320, 64])
        y = pl.tile.load(b, [0, 0], [64, 256])
        c = pl.tile.matmul(x, y)
        h = pl.tile.cast(c, pl.BF16)
        out_1 = pl.tile.store(h, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[320, 64], pl.BF16], b: pl.Tensor[[64, 256], pl.BF16], out: pl.Out[pl.Tensor[[320, 256], pl.BF16]]):
        x = pl.tile.load(a, [0, 0], [320, 64])
        y = pl.tile.load(b, [0, 0], [64, 256])
        y_right = pl.tile.move(y, target_memory=pl.Mem.Right)
        for i, (c,) in pl.pipeline(0, 320, 64, stage=2, init_values=(out,)):
            x_left = pl.tile.extract(x, i, 0, [64, 64], target_memory=pl.Mem.Left, valid_shape=[64, 64])
            c_1 = pl.tile.matmul(x_left, y_right)
            h = pl.tile.cast(c_1, pl.BF16)
            out_1 = pl.tile.store(h, [i, 0], c)
            c_2 = pl.yield_(out_1)
        return c_2
