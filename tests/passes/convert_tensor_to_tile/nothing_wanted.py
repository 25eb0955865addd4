# target: ascend910b
# No consumer wants a space, so none is said: nothing falls back to Vec.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        x = pl.tensor.slice(a, [16, 32], [8, 0])
        out_1 = pl.tensor.assemble(out, x, [0, 0])
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        x = pl.tile.load(a, [8, 0], [16, 32])
        out_1 = pl.tile.store(x, [0, 0], out)
        return out_1
