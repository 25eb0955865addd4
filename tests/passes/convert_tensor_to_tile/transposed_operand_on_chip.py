# target: ascend910b
# A computed tile in Vec is moved to Mat, where its transposed view costs nothing.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[32, 64], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        x = pl.tensor.add(a, b)
        y = pl.tensor.matmul(a, x, b_trans=True)
        out_1 = pl.tensor.assemble(out, y, [0, 0])
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[32, 64], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        a_1 = pl.tile.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Vec)
        b_1 = pl.tile.load(b, [0, 0], [32, 64], target_memory=pl.Mem.Vec)
        x = pl.tile.add(a_1, b_1)
        a_2 = pl.tile.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
        x_1 = pl.tile.move(x, target_memory=pl.Mem.Mat)
        x_2 = pl.tile.transpose_view(x_1)
        y = pl.tile.matmul(a_2, x_2)
        out_1 = pl.tile.store(y, [0, 0], out)
        return out_1
