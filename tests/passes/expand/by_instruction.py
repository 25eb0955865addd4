# target: ascend910b
# Where the text has no instruction, the formula's steps are instructions on whole tiles.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[4, 8], pl.FP16], y: pl.Tensor[[4, 8], pl.FP16], out: pl.Out[pl.Tensor[[4, 8], pl.FP16]]):
        a = pl.tile.load(x, [0, 0], [4, 8])
        b = pl.tile.load(y, [0, 0], [4, 8])
        c = pl.tile.prelu(a, b)
        out_1 = pl.tile.store(c, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[4, 8], pl.FP16], y: pl.Tensor[[4, 8], pl.FP16], out: pl.Out[pl.Tensor[[4, 8], pl.FP16]]):
        a = pl.tile.load(x, [0, 0], [4, 8])
        b = pl.tile.load(y, [0, 0], [4, 8])
        a_1 = pl.tile.cast(a, pl.FP32)
        b_1 = pl.tile.cast(b, pl.FP32)
        c = pl.tile.cmps(a_1, 0.0, cmp_type=4)
        c_1 = pl.tile.mul(a_1, b_1)
        c_2 = pl.tile.sel(c, a_1, c_1)
        c_3 = pl.tile.cast(c_2, pl.FP16)
        out_1 = pl.tile.store(c_3, [0, 0], out)
        return out_1
