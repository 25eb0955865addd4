# A loop without trips hands on what it starts from.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        for i, (x,) in pl.unroll(0, init_values=(a,)):
            x_1 = pl.tensor.add(x, x)
            x_2 = pl.yield_(x_1)
        y = pl.tensor.neg(x_2)
        out_1 = pl.tensor.assemble(out, y, [0, 0])
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        y = pl.tensor.neg(a)
        out_1 = pl.tensor.assemble(out, y, [0, 0])
        return out_1
