# target: ascend910b
# idempotent: True
# BF16 is computed in FP32 and rounded after every operation.
import tilewright.language as pl


@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 64], pl.BF16], out: pl.Out[pl.Tensor[[32, 64], pl.BF16]]):
        x = pl.tile.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Vec)
        y: pl.Tile[[32, 64], pl.BF16, pl.Mem.Vec] = pl.tile.adds(x, 1.5)
        z: pl.Tile[[32, 64], pl.BF16, pl.Mem.Vec] = pl.tile.mul(y, x)
        out_1 = pl.tile.store(z, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 64], pl.BF16], out: pl.Out[pl.Tensor[[32, 64], pl.BF16]]):
        x = pl.tile.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Vec)
        x_fp32: pl.Tile[[32, 64], pl.FP32, pl.Mem.Vec] = pl.tile.cast(x, pl.FP32)
        y_fp32: pl.Tile[[32, 64], pl.FP32, pl.Mem.Vec] = pl.tile.adds(x_fp32, 1.5)
        y: pl.Tile[[32, 64], pl.BF16, pl.Mem.Vec] = pl.tile.cast(y_fp32, pl.BF16)
        y_fp32_1: pl.Tile[[32, 64], pl.FP32, pl.Mem.Vec] = pl.tile.cast(y, pl.FP32)
        z_fp32: pl.Tile[[32, 64], pl.FP32, pl.Mem.Vec] = pl.tile.mul(y_fp32_1, x_fp32)
        z: pl.Tile[[32, 64], pl.BF16, pl.Mem.Vec] = pl.tile.cast(z_fp32, pl.BF16)
        out_1 = pl.tile.store(z, [0, 0], out)
        return out_1
