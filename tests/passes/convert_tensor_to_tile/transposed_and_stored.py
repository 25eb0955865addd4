# target: ascend910b
# Loaded transposed for the matmul; the store of the same slice sees it straight.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 48], pl.FP32], b: pl.Tensor[[16, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]], copy: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        x = pl.tensor.slice(a, [16, 32], [8, 4])
        y = pl.tensor.matmul(x, b, a_trans=True)
        out_1 = pl.tensor.assemble(out, y, [0, 0])
        copy_1 = pl.tensor.assemble(copy, x, [0, 0])
        return out_1, copy_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 48], pl.FP32], b: pl.Tensor[[16, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]], copy: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        x = pl.tile.load(a, [8, 4], [16, 32], target_memory=pl.Mem.Mat)
        x_1 = pl.tile.transpose_view(x)
        b_1 = pl.tile.load(b, [0, 0], [16, 32], target_memory=pl.Mem.Mat)
        y = pl.tile.matmul(x_1, b_1)
        out_1 = pl.tile.store(y, [0, 0], out)
        copy_1 = pl.tile.store(x, [0, 0], copy)
        return out_1, copy_1
