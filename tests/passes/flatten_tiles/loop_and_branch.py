# What loops and branches carry is flattened with what flows in.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[3, 8, 8], pl.FP32], out: pl.Out[pl.Tensor[[3, 8, 8], pl.FP32]]):
        x = pl.tile.load(a, [0, 0, 0], [1, 8, 8])
        for i, (s,) in pl.range(1, 3, 1, init_values=(x,)):
            y = pl.tile.load(a, [i, 0, 0], [1, 8, 8])
            s_1 = pl.tile.add(s, y)
            s_2 = pl.yield_(s_1)
        if n > 3:
            z = pl.tile.neg(s_2)
            r = pl.yield_(z)
        else:
            r = pl.yield_(s_2)
        t = pl.tile.transpose(r, 1, 2)
        out_1 = pl.tile.store(t, [0, 0, 0], out)
        out_2 = pl.tile.store(r, [1, 0, 0], out_1)
        out_3 = pl.tile.store(r, [2, 0, 0], out_2)
        return out_3

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[3, 8, 8], pl.FP32], out: pl.Out[pl.Tensor[[3, 8, 8], pl.FP32]]):
        x = pl.tile.load(a, [0, 0, 0], [8, 8])
        for i, (s,) in pl.range(1, 3, init_values=(x,)):
            y = pl.tile.load(a, [i, 0, 0], [8, 8])
            s_1 = pl.tile.add(s, y)
            s_2 = pl.yield_(s_1)
        if n > 3:
            z = pl.tile.neg(s_2)
            r = pl.yield_(z)
        else:
            r = pl.yield_(s_2)
        t = pl.tile.transpose(r)
        out_1 = pl.tile.store(t, [0, 0, 0], out)
        out_2 = pl.tile.store(r, [1, 0, 0], out_1)
        out_3 = pl.tile.store(r, [2, 0, 0], out_2)
        return out_3
