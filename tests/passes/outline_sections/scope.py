# A scope is a section; what it writes is an output, what is used after it is returned.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[8, 8], pl.FP32], b: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        with pl.at(name_hint="first"):
            x = pl.tensor.add(a, b)
            y = pl.tensor.mul(x, b)
            out_1 = pl.tensor.assemble(out, x, [0, 0])
            out_2, y_1 = pl.yield_(out_1, y)
        return out_2, y_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def first(self, a: pl.Tensor[[8, 8], pl.FP32], b: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        x = pl.tensor.add(a, b)
        y = pl.tensor.mul(x, b)
        out_1 = pl.tensor.assemble(out, x, [0, 0])
        return out_1, y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[8, 8], pl.FP32], b: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        out_2, y_1 = self.first(a, b, out)
        return out_2, y_1
