# target: ascend910b
# What the arms yield lies in one buffer; a value from outside that lives on is copied into it.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        if n > 3:
            y: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = pl.tile.exp(x)
            z = pl.yield_(y)
        else:
            z = pl.yield_(x)
        w: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = pl.tile.add(z, x)
        out_1 = pl.tile.store(w, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        x: pl.Tile[[16, 64], pl.FP32, pl.MemRef("vec0", nbytes=4096), pl.Mem.Vec] = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        if n > 3:
            y: pl.Tile[[16, 64], pl.FP32, pl.MemRef("vec1", nbytes=4096), pl.Mem.Vec] = pl.tile.exp(x)
            z = pl.yield_(y)
        else:
            x_copy: pl.Tile[[16, 64], pl.FP32, pl.MemRef("vec1", nbytes=4096), pl.Mem.Vec] = pl.tile.move(x, target_memory=pl.Mem.Vec)
            z = pl.yield_(x_copy)
        w: pl.Tile[[16, 64], pl.FP32, pl.MemRef("vec1", nbytes=4096), pl.Mem.Vec] = pl.tile.add(z, x)
        out_1 = pl.tile.store(w, [0, 0], out)
        return out_1
