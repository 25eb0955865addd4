# target: ascend910b
# There is no edge from Vec to Mat: two loads.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]], other: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        x = pl.tensor.add(a, b)
        y = pl.tensor.matmul(a, b)
        out_1 = pl.tensor.assemble(out, x, [0, 0])
        other_1 = pl.tensor.assemble(other, y, [0, 0])
        return out_1, other_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]], other: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        a_1 = pl.tile.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Vec)
        b_1 = pl.tile.load(b, [0, 0], [32, 32], target_memory=pl.Mem.Vec)
        x = pl.tile.add(a_1, b_1)
        a_2 = pl.tile.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
        b_2 = pl.tile.load(b, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
        y = pl.tile.matmul(a_2, b_2)
        out_1 = pl.tile.store(x, [0, 0], out)
        other_1 = pl.tile.store(y, [0, 0], other)
        return out_1, other_1
