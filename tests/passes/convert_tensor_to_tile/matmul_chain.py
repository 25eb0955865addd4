# target: ascend910b
# The second product reads the first one's accumulator through Mat.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 48], pl.FP32], c: pl.Tensor[[48, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        x = pl.tensor.matmul(a, b)
        y = pl.tensor.matmul(x, c)
        out_1 = pl.tensor.assemble(out, y, [0, 0])
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 48], pl.FP32], c: pl.Tensor[[48, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        a_1 = pl.tile.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
        b_1 = pl.tile.load(b, [0, 0], [64, 48], target_memory=pl.Mem.Mat)
        x = pl.tile.matmul(a_1, b_1)
        x_1 = pl.tile.move(x, target_memory=pl.Mem.Mat)
        c_1 = pl.tile.load(c, [0, 0], [48, 32], target_memory=pl.Mem.Mat)
        y = pl.tile.matmul(x_1, c_1)
        out_1 = pl.tile.store(y, [0, 0], out)
        return out_1
