# A batch made on the chip is its matrices below one another.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
        x = pl.tile.full([2, 4, 8], pl.FP32, 3.0)
        y = pl.tile.write(x, [1, 2, 3], 5.0)
        z = pl.tile.slice(y, [1, 4, 8], [1, 0, 0])
        s = pl.tile.read(y, [1, 2, 3])
        w = pl.tile.reshape(z, [4, 8])
        v = pl.tile.adds(w, s)
        out_1 = pl.tile.store(v, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
        x = pl.tile.full([8, 8], pl.FP32, 3.0)
        y = pl.tile.write(x, [6, 3], 5.0)
        z = pl.tile.slice(y, [4, 8], [4, 0])
        s = pl.tile.read(y, [6, 3])
        v = pl.tile.adds(z, s)
        out_1 = pl.tile.store(v, [0, 0], out)
        return out_1
