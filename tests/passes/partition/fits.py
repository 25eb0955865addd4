# target: ascend910b
# What fits stays as it is.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        x_1 = pl.tile.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Vec)
        y = pl.tile.exp(x_1)
        out_1 = pl.tile.store(y, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        x_1 = pl.tile.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Vec)
        y = pl.tile.exp(x_1)
        out_1 = pl.tile.store(y, [0, 0], out)
        return out_1
