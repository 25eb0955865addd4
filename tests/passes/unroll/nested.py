# Loops inside an unrolled one are copied, unrolled ones inside a kept one unrolled.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 8], pl.FP32], out: pl.Out[pl.Tensor[[64, 8], pl.FP32]]):
        for i, (o,) in pl.unroll(2, init_values=(out,)):
            for j, (p,) in pl.range(2, init_values=(o,)):
                for k, (q,) in pl.unroll(2, init_values=(p,)):
                    x = pl.tensor.slice(a, [8, 8], [i * 32 + j * 16 + k * 8, 0])
                    q_1 = pl.tensor.assemble(q, x, [i * 32 + j * 16 + k * 8, 0])
                    q_2 = pl.yield_(q_1)
                p_1 = pl.yield_(q_2)
            o_1 = pl.yield_(p_1)
        return o_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 8], pl.FP32], out: pl.Out[pl.Tensor[[64, 8], pl.FP32]]):
        for j, (p,) in pl.range(2, init_values=(out,)):
            x = pl.tensor.slice(a, [8, 8], [j * 16, 0])
            q_1 = pl.tensor.assemble(p, x, [j * 16, 0])
            x_1 = pl.tensor.slice(a, [8, 8], [j * 16 + 8, 0])
            q_2 = pl.tensor.assemble(q_1, x_1, [j * 16 + 8, 0])
            p_1 = pl.yield_(q_2)
        for j_1, (p_2,) in pl.range(2, init_values=(p_1,)):
            x_2 = pl.tensor.slice(a, [8, 8], [32 + j_1 * 16, 0])
            q_3 = pl.tensor.assemble(p_2, x_2, [32 + j_1 * 16, 0])
            x_3 = pl.tensor.slice(a, [8, 8], [32 + j_1 * 16 + 8, 0])
            q_4 = pl.tensor.assemble(q_3, x_3, [32 + j_1 * 16 + 8, 0])
            p_3 = pl.yield_(q_4)
        return p_3
