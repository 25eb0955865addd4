# A vector is one row.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[200], pl.FP32], out: pl.Out[pl.Tensor[[200], pl.FP32]]):
        x = pl.tile.load(a, [0], [128], target_memory=pl.Mem.Vec)
        y = pl.tile.adds(x, 1.0)
        out_1 = pl.tile.store(y, [3], out)
        z = pl.tile.load(a, [128], [128], valid_shape=[65])
        w = pl.tile.neg(z)
        out_2 = pl.tile.store(w, [131], out_1)
        return out_2

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[200], pl.FP32], out: pl.Out[pl.Tensor[[200], pl.FP32]]):
        x = pl.tile.load(a, [0], [1, 128], target_memory=pl.Mem.Vec)
        y = pl.tile.adds(x, 1.0)
        out_1 = pl.tile.store(y, [3], out, shapes=[128])
        z = pl.tile.load(a, [128], [1, 128], valid_shape=[1, 65])
        w = pl.tile.neg(z)
        out_2 = pl.tile.store(w, [131], out_1, shapes=[65])
        return out_2
