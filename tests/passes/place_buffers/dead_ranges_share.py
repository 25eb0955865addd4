# target: ascend910b
# z is apart from x, dead though it is: in its bytes, its load would wait for the reduction of x. s may lie there.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 1], pl.FP32]]):
        x: pl.Tile[[16, 64], pl.FP32, pl.MemRef("x", nbytes=4096), pl.Mem.Vec] = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        y: pl.Tile[[16, 1], pl.FP32, pl.MemRef("y", nbytes=64), pl.Mem.Vec] = pl.tile.row_max(x)
        z: pl.Tile[[16, 64], pl.FP32, pl.MemRef("z", nbytes=4096), pl.Mem.Vec] = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        w: pl.Tile[[16, 64], pl.FP32, pl.MemRef("z", nbytes=4096), pl.Mem.Vec] = pl.tile.row_expand_sub(z, y)
        s: pl.Tile[[16, 1], pl.FP32, pl.MemRef("s", nbytes=64), pl.Mem.Vec] = pl.tile.row_sum(w)
        out_1 = pl.tile.store(s, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 1], pl.FP32]]):
        x: pl.Tile[[16, 64], pl.FP32, pl.MemRef("x", addr=4096, nbytes=4096), pl.Mem.Vec] = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        y: pl.Tile[[16, 1], pl.FP32, pl.MemRef("y", addr=8192, nbytes=64), pl.Mem.Vec] = pl.tile.row_max(x)
        z: pl.Tile[[16, 64], pl.FP32, pl.MemRef("z", addr=0, nbytes=4096), pl.Mem.Vec] = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        w: pl.Tile[[16, 64], pl.FP32, pl.MemRef("z", addr=0, nbytes=4096), pl.Mem.Vec] = pl.tile.row_expand_sub(z, y)
        s: pl.Tile[[16, 1], pl.FP32, pl.MemRef("s", addr=4096, nbytes=64), pl.Mem.Vec] = pl.tile.row_sum(w)
        out_1 = pl.tile.store(s, [0, 0], out)
        return out_1
