# Each trip starts from what the one before it yielded.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        x = pl.tensor.slice(a, [8, 8], [0, 0])
        for i, (s,) in pl.unroll(1, 4, 1, init_values=(x,)):
            y = pl.tensor.slice(a, [8, 8], [i * 16, 0])
            s_1 = pl.tensor.add(s, y)
            s_2 = pl.yield_(s_1)
        out_1 = pl.tensor.assemble(out, s_2, [0, 0])
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        x = pl.tensor.slice(a, [8, 8], [0, 0])
        y = pl.tensor.slice(a, [8, 8], [16, 0])
        s_1 = pl.tensor.add(x, y)
        y_1 = pl.tensor.slice(a, [8, 8], [32, 0])
        s_2 = pl.tensor.add(s_1, y_1)
        y_2 = pl.tensor.slice(a, [8, 8], [48, 0])
        s_3 = pl.tensor.add(s_2, y_2)
        out_1 = pl.tensor.assemble(out, s_3, [0, 0])
        return out_1
