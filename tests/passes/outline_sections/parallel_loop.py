# A parallel loop outside a scope is one section, whose grid it is; scopes inside it are opened.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[32, 8], pl.FP32], out: pl.Out[pl.Tensor[[32, 8], pl.FP32]]):
        for i, (o,) in pl.parallel(4, init_values=(out,)):
            with pl.at():
                x = pl.tensor.slice(a, [8, 8], [i * 8, 0])
                y = pl.tensor.exp(x)
                o_1 = pl.tensor.assemble(o, y, [i * 8, 0])
                o_2 = pl.yield_(o_1)
            o_3 = pl.yield_(o_2)
        return o_3

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main_0(self, a: pl.Tensor[[32, 8], pl.FP32], out: pl.Out[pl.Tensor[[32, 8], pl.FP32]]):
        for i, (o,) in pl.parallel(4, init_values=(out,)):
            x = pl.tensor.slice(a, [8, 8], [i * 8, 0])
            y = pl.tensor.exp(x)
            o_1 = pl.tensor.assemble(o, y, [i * 8, 0])
            o_3 = pl.yield_(o_1)
        return o_3

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[32, 8], pl.FP32], out: pl.Out[pl.Tensor[[32, 8], pl.FP32]]):
        o_3 = self.main_0(a, out)
        return o_3
