# idempotent: True
# A program whose entry is a kernel stays as it is.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        x = pl.tensor.exp(a)
        out_1 = pl.tensor.assemble(out, x, [0, 0])
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        x = pl.tensor.exp(a)
        out_1 = pl.tensor.assemble(out, x, [0, 0])
        return out_1
