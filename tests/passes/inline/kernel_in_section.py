# A kernel that a section calls is part of the section; one that the orchestration calls stays.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        y = pl.tensor.exp(x)
        out_1 = pl.tensor.assemble(out, y, [0, 0])
        return out_1

    @pl.function(type=pl.FunctionType.InCore)
    def other(self, x: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        y = pl.tensor.neg(x)
        out_1 = pl.tensor.assemble(out, y, [0, 0])
        return out_1

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]], more: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        with pl.at():
            out_1 = self.kernel(a, out)
            out_2 = pl.yield_(out_1)
        more_1 = self.other(a, more)
        return out_2, more_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def other(self, x: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        y = pl.tensor.neg(x)
        out_1 = pl.tensor.assemble(out, y, [0, 0])
        return out_1

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]], more: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        with pl.at():
            y = pl.tensor.exp(a)
            out_1 = pl.tensor.assemble(out, y, [0, 0])
            out_2 = pl.yield_(out_1)
        more_1 = self.other(a, more)
        return out_2, more_1
