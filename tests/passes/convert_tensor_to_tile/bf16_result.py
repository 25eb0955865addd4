# target: ascend910b
# A product that is rounded to its operands' dtype: the cast is part of the conversion.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 32], pl.BF16], b: pl.Tensor[[32, 32], pl.BF16], out: pl.Out[pl.Tensor[[32, 32], pl.BF16]]):
        x = pl.tensor.matmul(a, b)
        y = pl.tensor.matmul(x, b)
        out_1 = pl.tensor.assemble(out, y, [0, 0])
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 32], pl.BF16], b: pl.Tensor[[32, 32], pl.BF16], out: pl.Out[pl.Tensor[[32, 32], pl.BF16]]):
        a_1 = pl.tile.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
        b_1 = pl.tile.load(b, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
        x = pl.tile.matmul(a_1, b_1)
        x_1 = pl.tile.cast(x, pl.BF16)
        x_2 = pl.tile.move(x_1, target_memory=pl.Mem.Mat)
        y = pl.tile.matmul(x_2, b_1)
        y_1 = pl.tile.cast(y, pl.BF16)
        out_1 = pl.tile.store(y_1, [0, 0], out)
        return out_1
