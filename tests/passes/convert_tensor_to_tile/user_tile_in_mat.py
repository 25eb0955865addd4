# target: ascend910b
# idempotent: True
# Tile operations are the user's: space inference bridges them, not this pass.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
        y = pl.tile.add(x, x)
        out_1 = pl.tile.store(y, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
        y = pl.tile.add(x, x)
        out_1 = pl.tile.store(y, [0, 0], out)
        return out_1
