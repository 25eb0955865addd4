# A batch is loaded and stored matrix by matrix; what is between works on all rows.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[2, 2, 8, 16], pl.FP32], out: pl.Out[pl.Tensor[[2, 2, 8, 16], pl.FP32]]):
        x = pl.tile.load(a, [0, 0, 0, 0], [2, 2, 8, 16], target_memory=pl.Mem.Vec)
        y = pl.tile.adds(x, 1.0)
        out_1 = pl.tile.store(y, [0, 0, 0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[2, 2, 8, 16], pl.FP32], out: pl.Out[pl.Tensor[[2, 2, 8, 16], pl.FP32]]):
        x = pl.tile.create([32, 16], pl.FP32, target_memory=pl.Mem.Vec)
        x_1 = pl.tile.load(a, [0, 0, 0, 0], [8, 16], target_memory=pl.Mem.Vec)
        x_2 = pl.tile.assemble(x, x_1, [0, 0])
        x_3 = pl.tile.load(a, [0, 1, 0, 0], [8, 16], target_memory=pl.Mem.Vec)
        x_4 = pl.tile.assemble(x_2, x_3, [8, 0])
        x_5 = pl.tile.load(a, [1, 0, 0, 0], [8, 16], target_memory=pl.Mem.Vec)
        x_6 = pl.tile.assemble(x_4, x_5, [16, 0])
        x_7 = pl.tile.load(a, [1, 1, 0, 0], [8, 16], target_memory=pl.Mem.Vec)
        x_8 = pl.tile.assemble(x_6, x_7, [24, 0])
        y = pl.tile.adds(x_8, 1.0)
        y_1 = pl.tile.slice(y, [8, 16], [0, 0])
        out_1 = pl.tile.store(y_1, [0, 0, 0, 0], out)
        y_2 = pl.tile.slice(y, [8, 16], [8, 0])
        out_2 = pl.tile.store(y_2, [0, 1, 0, 0], out_1)
        y_3 = pl.tile.slice(y, [8, 16], [16, 0])
        out_3 = pl.tile.store(y_3, [1, 0, 0, 0], out_2)
        y_4 = pl.tile.slice(y, [8, 16], [24, 0])
        out_4 = pl.tile.store(y_4, [1, 1, 0, 0], out_3)
        return out_4
