# A loop whose tiles do not leave it is a section, beside others; what the section before it computed lies in DDR.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            x = pl.tensor.exp(a)
            x_1 = pl.yield_(x)
        for i, (o,) in pl.range(8, init_values=(out,)):
            t = pl.tile.load(x_1, [i, 0], [1, 8])
            o_1 = pl.tile.store(t, [i, 0], o)
            o_2 = pl.yield_(o_1)
        return o_2

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main_0(self, a: pl.Tensor[[8, 8], pl.FP32]):
        x = pl.tensor.exp(a)
        return x

    @pl.function(type=pl.FunctionType.InCore)
    def main_1(self, out: pl.Out[pl.Tensor[[8, 8], pl.FP32]], x_1: pl.Tensor[[8, 8], pl.FP32]):
        for i, (o,) in pl.range(8, init_values=(out,)):
            t = pl.tile.load(x_1, [i, 0], [1, 8])
            o_1 = pl.tile.store(t, [i, 0], o)
            o_2 = pl.yield_(o_1)
        return o_2

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        x_1 = self.main_0(a)
        o_2 = self.main_1(out, x_1)
        return o_2
