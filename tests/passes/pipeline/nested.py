# target: ascend910b
# idempotent: True
# Inner loops first: each copy of the outer loop holds the slots of the inner one.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        for i, (o,) in pl.pipeline(0, 64, 16, stage=2, init_values=(out,)):
            for j, (p,) in pl.pipeline(0, 64, 32, stage=2, init_values=(o,)):
                x = pl.tile.load(a, [i, j], [16, 32], target_memory=pl.Mem.Vec)
                p_1 = pl.tile.store(x, [i, j], p)
                p_2 = pl.yield_(p_1)
            o_2 = pl.yield_(p_2)
        return o_2

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        for i, (o,) in pl.pipeline(0, 64, 32, stage=1, init_values=(out,)):
            for j, (p,) in pl.pipeline(0, 64, 64, stage=1, init_values=(o,)):
                x = pl.tile.load(a, [i, j], [16, 32], target_memory=pl.Mem.Vec)
                p_1 = pl.tile.store(x, [i, j], p)
                x_1 = pl.tile.load(a, [i, j + 32], [16, 32], target_memory=pl.Mem.Vec)
                p_2 = pl.tile.store(x_1, [i, j + 32], p_1)
                p_3 = pl.yield_(p_2)
            for j_1, (p_4,) in pl.pipeline(0, 64, 64, stage=1, init_values=(p_3,)):
                x_2 = pl.tile.load(a, [i + 16, j_1], [16, 32], target_memory=pl.Mem.Vec)
                p_5 = pl.tile.store(x_2, [i + 16, j_1], p_4)
                x_3 = pl.tile.load(a, [i + 16, j_1 + 32], [16, 32], target_memory=pl.Mem.Vec)
                p_6 = pl.tile.store(x_3, [i + 16, j_1 + 32], p_5)
                p_7 = pl.yield_(p_6)
            o_2 = pl.yield_(p_7)
        return o_2
