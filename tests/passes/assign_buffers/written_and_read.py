# target: ascend910b
# What is written and read by one operation is copied for the writing alone.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        y: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = pl.tile.assemble(x, x, [0, 0])
        out_1 = pl.tile.store(y, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        x: pl.Tile[[16, 64], pl.FP32, pl.MemRef("vec0", nbytes=4096), pl.Mem.Vec] = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        x_copy: pl.Tile[[16, 64], pl.FP32, pl.MemRef("vec1", nbytes=4096), pl.Mem.Vec] = pl.tile.move(x, target_memory=pl.Mem.Vec)
        y: pl.Tile[[16, 64], pl.FP32, pl.MemRef("vec1", nbytes=4096), pl.Mem.Vec] = pl.tile.assemble(x_copy, x, [0, 0])
        out_1 = pl.tile.store(y, [0, 0], out)
        return out_1
