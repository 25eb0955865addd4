# target: ascend910b
# Bits of integers have no instruction at all: each element is read, computed and written.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.Scalar[pl.INDEX], x: pl.Tensor[[4, 32], pl.INT32], out: pl.Out[pl.Tensor[[4, 32], pl.INT32]]):
        a = pl.tile.load(x, [0, 0], [4, 32], valid_shape=[4, pl.min(n, 32)])
        c = pl.tile.ands(a, 7)
        out_1 = pl.tile.store(c, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.Scalar[pl.INDEX], x: pl.Tensor[[4, 32], pl.INT32], out: pl.Out[pl.Tensor[[4, 32], pl.INT32]]):
        a = pl.tile.load(x, [0, 0], [4, 32], valid_shape=[4, pl.min(n, 32)])
        c = pl.tile.create([4, 32], pl.INT32, valid_shape=[4, pl.min(n, 32)])
        for i, (c_1,) in pl.range(4, init_values=(c,)):
            for j, (c_2,) in pl.range(pl.min(n, 32), init_values=(c_1,)):
                element = pl.tile.read(a, [i, j])
                c_3 = pl.tile.write(c_2, [i, j], element & 7)
                c_4 = pl.yield_(c_3)
            c_5 = pl.yield_(c_4)
        out_1 = pl.tile.store(c_5, [0, 0], out)
        return out_1
