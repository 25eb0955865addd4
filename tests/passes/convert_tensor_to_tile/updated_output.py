# target: ascend910b
# A sum on top of an output is stored over it.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32], out: pl.InOut[pl.Tensor[[32, 32], pl.FP32]]):
        out_1 = pl.tensor.matmul_acc(out, a, b)
        out_2 = pl.tensor.matmul_acc(out_1, b, a)
        return out_2

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32], out: pl.InOut[pl.Tensor[[32, 32], pl.FP32]]):
        out_1 = pl.tile.load(out, [0, 0], [32, 32], target_memory=pl.Mem.Acc)
        a_1 = pl.tile.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
        b_1 = pl.tile.load(b, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
        out_2 = pl.tile.matmul_acc(out_1, a_1, b_1)
        out_3 = pl.tile.matmul_acc(out_2, b_1, a_1)
        out_4 = pl.tile.store(out_3, [0, 0], out)
        return out_4
