# target: ascend910b
# A slice of a slice: the outer one is loaded where the inner one is wanted, the inner one is a view.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 64], pl.FP32], b: pl.Tensor[[16, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        x = pl.tensor.slice(a, [48, 48], [8, 8])
        y = pl.tensor.slice(x, [32, 16], [16, 0])
        z = pl.tensor.matmul(y, b)
        out_1 = pl.tensor.assemble(out, z, [0, 0])
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 64], pl.FP32], b: pl.Tensor[[16, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        x = pl.tile.load(a, [8, 8], [48, 48], target_memory=pl.Mem.Mat)
        y = pl.tile.slice(x, [32, 16], [16, 0])
        b_1 = pl.tile.load(b, [0, 0], [16, 32], target_memory=pl.Mem.Mat)
        z = pl.tile.matmul(y, b_1)
        out_1 = pl.tile.store(z, [0, 0], out)
        return out_1
