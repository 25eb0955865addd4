# target: ascend910b
# A tile in Vec that feeds a matmul is moved, never passed silently.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        x = pl.tensor.exp(a)
        y = pl.tensor.matmul(x, x)
        out_1 = pl.tensor.assemble(out, y, [0, 0])
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        a_1 = pl.tile.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Vec)
        x = pl.tile.exp(a_1)
        x_1 = pl.tile.move(x, target_memory=pl.Mem.Mat)
        y = pl.tile.matmul(x_1, x_1)
        out_1 = pl.tile.store(y, [0, 0], out)
        return out_1
