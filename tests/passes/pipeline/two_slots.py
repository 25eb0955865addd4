# target: ascend910b
# idempotent: True
# Five trips in two slots: two pairs, and one trip left over, which runs in slot 0.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[80, 64], pl.FP32], out: pl.Out[pl.Tensor[[80, 64], pl.FP32]]):
        for i, (o,) in pl.pipeline(0, 5, 1, stage=2, init_values=(out,)):
            x = pl.tile.load(a, [i * 16, 0], [16, 64], target_memory=pl.Mem.Vec)
            o_1 = pl.tile.store(x, [i * 16, 0], o)
            o_2 = pl.yield_(o_1)
        return o_2

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[80, 64], pl.FP32], out: pl.Out[pl.Tensor[[80, 64], pl.FP32]]):
        for i, (o,) in pl.pipeline(0, 4, 2, stage=1, init_values=(out,)):
            x = pl.tile.load(a, [i * 16, 0], [16, 64], target_memory=pl.Mem.Vec)
            o_1 = pl.tile.store(x, [i * 16, 0], o)
            x_1 = pl.tile.load(a, [(i + 1) * 16, 0], [16, 64], target_memory=pl.Mem.Vec)
            o_2 = pl.tile.store(x_1, [(i + 1) * 16, 0], o_1)
            o_3 = pl.yield_(o_2)
        for i_1, (o_4,) in pl.pipeline(4, 5, 2, stage=1, init_values=(o_3,)):
            x_2 = pl.tile.load(a, [i_1 * 16, 0], [16, 64], target_memory=pl.Mem.Vec)
            o_5 = pl.tile.store(x_2, [i_1 * 16, 0], o_4)
            o_6 = pl.yield_(o_5)
        return o_6
