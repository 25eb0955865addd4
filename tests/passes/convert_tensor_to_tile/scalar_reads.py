# target: ascend910b
# One element of a tensor in DDR is read there, of a tile on the tile.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        s = pl.tensor.read(a, [3, 5])
        x = pl.tensor.muls(a, s)
        t = pl.tensor.read(x, [1, 2])
        y = pl.tensor.adds(x, t)
        out_1 = pl.tensor.assemble(out, y, [0, 0])
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        s = pl.tensor.read(a, [3, 5])
        a_1 = pl.tile.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Vec)
        x = pl.tile.muls(a_1, s)
        t = pl.tile.read(x, [1, 2])
        y = pl.tile.adds(x, t)
        out_1 = pl.tile.store(y, [0, 0], out)
        return out_1
