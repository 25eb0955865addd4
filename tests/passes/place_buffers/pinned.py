# target: ascend910b
# An address that the user pinned is kept, and the others go around it.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        x: pl.Tile[[16, 64], pl.FP32, pl.MemRef("x", addr=1024, nbytes=4096), pl.Mem.Vec] = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        y: pl.Tile[[16, 64], pl.FP32, pl.MemRef("y", nbytes=4096), pl.Mem.Vec] = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        w: pl.Tile[[16, 64], pl.FP32, pl.MemRef("y", nbytes=4096), pl.Mem.Vec] = pl.tile.add(y, x)
        out_1 = pl.tile.store(w, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        x: pl.Tile[[16, 64], pl.FP32, pl.MemRef("x", addr=1024, nbytes=4096), pl.Mem.Vec] = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        y: pl.Tile[[16, 64], pl.FP32, pl.MemRef("y", addr=5120, nbytes=4096), pl.Mem.Vec] = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        w: pl.Tile[[16, 64], pl.FP32, pl.MemRef("y", addr=5120, nbytes=4096), pl.Mem.Vec] = pl.tile.add(y, x)
        out_1 = pl.tile.store(w, [0, 0], out)
        return out_1
