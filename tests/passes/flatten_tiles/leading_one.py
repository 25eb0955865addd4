# idempotent: True
# The slice of a batch is a matrix; the reshapes that said so are gone.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, i: pl.Scalar[pl.INDEX], a: pl.Tensor[[32, 16, 64], pl.FP32], out: pl.Out[pl.Tensor[[32, 16, 64], pl.FP32]]):
        x = pl.tile.load(a, [i, 0, 0], [1, 16, 64])
        y = pl.tile.reshape(x, [16, 64])
        z = pl.tile.exp(y)
        w = pl.tile.reshape(z, [1, 16, 64])
        out_1 = pl.tile.store(w, [i, 0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, i: pl.Scalar[pl.INDEX], a: pl.Tensor[[32, 16, 64], pl.FP32], out: pl.Out[pl.Tensor[[32, 16, 64], pl.FP32]]):
        x = pl.tile.load(a, [i, 0, 0], [16, 64])
        z = pl.tile.exp(x)
        out_1 = pl.tile.store(z, [i, 0, 0], out)
        return out_1
