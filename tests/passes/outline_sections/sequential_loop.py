# A sequential loop stays; what a section in it writes holds what the trips before it wrote.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[32, 8], pl.FP32], out: pl.Out[pl.Tensor[[32, 8], pl.FP32]]):
        for i, (o,) in pl.range(4, init_values=(out,)):
            k = i * 8
            with pl.at():
                x = pl.tensor.slice(a, [8, 8], [k, 0])
                y = pl.tensor.exp(x)
                o_1 = pl.tensor.assemble(o, y, [k, 0])
                o_2 = pl.yield_(o_1)
            o_3 = pl.yield_(o_2)
        return o_3

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main_0(self, a: pl.Tensor[[32, 8], pl.FP32], o: pl.InOut[pl.Tensor[[32, 8], pl.FP32]], k: pl.Scalar[pl.INDEX]):
        x = pl.tensor.slice(a, [8, 8], [k, 0])
        y = pl.tensor.exp(x)
        o_1 = pl.tensor.assemble(o, y, [k, 0])
        return o_1

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[32, 8], pl.FP32], out: pl.Out[pl.Tensor[[32, 8], pl.FP32]]):
        for i, (o,) in pl.range(4, init_values=(out,)):
            k = i * 8
            o_2 = self.main_0(a, o, k)
            o_3 = pl.yield_(o_2)
        return o_3
