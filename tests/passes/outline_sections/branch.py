# Control flow stays in the orchestration, the sections are inside it.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        if n > 3:
            x = pl.tensor.exp(a)
            z = pl.yield_(x)
        else:
            y = pl.tensor.neg(a)
            z = pl.yield_(y)
        w = pl.tensor.add(z, a)
        out_1 = pl.tensor.assemble(out, w, [0, 0])
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main_0(self, a: pl.Tensor[[8, 8], pl.FP32]):
        x = pl.tensor.exp(a)
        return x

    @pl.function(type=pl.FunctionType.InCore)
    def main_1(self, a: pl.Tensor[[8, 8], pl.FP32]):
        y = pl.tensor.neg(a)
        return y

    @pl.function(type=pl.FunctionType.InCore)
    def main_2(self, a: pl.Tensor[[8, 8], pl.FP32], z: pl.Tensor[[8, 8], pl.FP32]):
        w = pl.tensor.add(z, a)
        return w

    @pl.function(type=pl.FunctionType.InCore)
    def main_3(self, out: pl.Out[pl.Tensor[[8, 8], pl.FP32]], w: pl.Tensor[[8, 8], pl.FP32]):
        out_1 = pl.tensor.assemble(out, w, [0, 0])
        return out_1

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        if n > 3:
            x = self.main_0(a)
            z = pl.yield_(x)
        else:
            y = self.main_1(a)
            z = pl.yield_(y)
        w = self.main_2(a, z)
        out_1 = self.main_3(out, w)
        return out_1
