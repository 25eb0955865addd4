# target: ascend910b
# A tile that is read after a later version was written is copied before the write.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        x_1: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = pl.tile.write(x, [0, 3], 7.0)
        w: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = pl.tile.sub(x_1, x)
        out_1 = pl.tile.store(w, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        x: pl.Tile[[16, 64], pl.FP32, pl.MemRef("vec0", nbytes=4096), pl.Mem.Vec] = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        x_copy: pl.Tile[[16, 64], pl.FP32, pl.MemRef("vec1", nbytes=4096), pl.Mem.Vec] = pl.tile.move(x, target_memory=pl.Mem.Vec)
        x_1: pl.Tile[[16, 64], pl.FP32, pl.MemRef("vec1", nbytes=4096), pl.Mem.Vec] = pl.tile.write(x_copy, [0, 3], 7.0)
        w: pl.Tile[[16, 64], pl.FP32, pl.MemRef("vec1", nbytes=4096), pl.Mem.Vec] = pl.tile.sub(x_1, x)
        out_1 = pl.tile.store(w, [0, 0], out)
        return out_1
