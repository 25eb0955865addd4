# target: ascend910b
# idempotent: True
# No edge leads from Mat to Vec: a store and a load.
import tilewright.language as pl


@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
        x_vec = pl.tile.move(x, target_memory=pl.Mem.Vec)
        y: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.tile.exp(x_vec)
        out_1 = pl.tile.store(y, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
        x_ddr_space = pl.tensor.create([64, 64], pl.FP32)
        x_ddr = pl.tile.store(x, [0, 0], x_ddr_space)
        x_vec = pl.tile.load(x_ddr, [0, 0], [64, 64], valid_shape=[64, 64], target_memory=pl.Mem.Vec)
        y: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.tile.exp(x_vec)
        out_1 = pl.tile.store(y, [0, 0], out)
        return out_1
