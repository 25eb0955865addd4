# target: ascend910b
# A result takes over the buffer of an operand that dies; one that lives on keeps its own.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        y: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = pl.tile.exp(x)
        z: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = pl.tile.abs(y)
        w: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = pl.tile.add(z, y)
        out_1 = pl.tile.store(w, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        x: pl.Tile[[16, 64], pl.FP32, pl.MemRef("vec0", nbytes=4096), pl.Mem.Vec] = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        y: pl.Tile[[16, 64], pl.FP32, pl.MemRef("vec0", nbytes=4096), pl.Mem.Vec] = pl.tile.exp(x)
        z: pl.Tile[[16, 64], pl.FP32, pl.MemRef("vec1", nbytes=4096), pl.Mem.Vec] = pl.tile.abs(y)
        w: pl.Tile[[16, 64], pl.FP32, pl.MemRef("vec1", nbytes=4096), pl.Mem.Vec] = pl.tile.add(z, y)
        out_1 = pl.tile.store(w, [0, 0], out)
        return out_1
