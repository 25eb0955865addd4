# target: ascend910b
# idempotent: True
# A tile that its user placed in Right is left alone.
import tilewright.language as pl


@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[320, 64], pl.FP16], b: pl.Tensor[[64, 256], pl.FP16], out: pl.Out[pl.Tensor[[64, 256], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [64, 64])
        y = pl.tile.load(b, [0, 0], [64, 256])
        right = pl.tile.move(y, target_memory=pl.Mem.Right)
        r = pl.tile.matmul(x, right)
        out_1 = pl.tile.store(r, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[320, 64], pl.FP16], b: pl.Tensor[[64, 256], pl.FP16], out: pl.Out[pl.Tensor[[64, 256], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [64, 64])
        y = pl.tile.load(b, [0, 0], [64, 256])
        right = pl.tile.move(y, target_memory=pl.Mem.Right)
        r = pl.tile.matmul(x, right)
        out_1 = pl.tile.store(r, [0, 0], out)
        return out_1
