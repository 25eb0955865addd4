# target: ascend910b
# A transposed tensor is loaded so; nothing is made for the transposition itself.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[32, 48], pl.FP32], out: pl.Out[pl.Tensor[[64, 48], pl.FP32]], sums: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
        t = pl.tensor.transpose(a, 0, 1)
        x = pl.tensor.matmul(t, b)
        y = pl.tensor.add(t, t)
        out_1 = pl.tensor.assemble(out, x, [0, 0])
        sums_1 = pl.tensor.assemble(sums, y, [0, 0])
        return out_1, sums_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[32, 48], pl.FP32], out: pl.Out[pl.Tensor[[64, 48], pl.FP32]], sums: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
        a_1 = pl.tile.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat, transpose=True)
        b_1 = pl.tile.load(b, [0, 0], [32, 48], target_memory=pl.Mem.Mat)
        x = pl.tile.matmul(a_1, b_1)
        a_2 = pl.tile.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Vec, transpose=True)
        y = pl.tile.add(a_2, a_2)
        out_1 = pl.tile.store(x, [0, 0], out)
        sums_1 = pl.tile.store(y, [0, 0], sums)
        return out_1, sums_1
