# Reductions of rows work on rows, however many matrices there are.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[1, 8, 16], pl.FP32], out: pl.Out[pl.Tensor[[1, 8, 1], pl.FP32]]):
        x = pl.tile.load(a, [0, 0, 0], [1, 8, 16], valid_shape=[1, 5, 15])
        y = pl.tile.row_max(x)
        z = pl.tile.set_validshape(pl.tile.reshape(y, [8, 1]), 5, 1)
        full = pl.tile.full([8, 1], pl.FP32, 0.0)
        w = pl.tile.assemble(full, z, [0, 0])
        out_1 = pl.tile.store(w, [0, 0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[1, 8, 16], pl.FP32], out: pl.Out[pl.Tensor[[1, 8, 1], pl.FP32]]):
        x = pl.tile.load(a, [0, 0, 0], [8, 16], valid_shape=[5, 15])
        y = pl.tile.row_max(x)
        z = pl.tile.set_validshape(y, 5, 1)
        full = pl.tile.full([8, 1], pl.FP32, 0.0)
        w = pl.tile.assemble(full, z, [0, 0])
        out_1 = pl.tile.store(w, [0, 0, 0], out)
        return out_1
