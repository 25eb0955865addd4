# target: ascend910b
# idempotent: True
# symbols: {"n": 5}
# Of the trips that are left over, all but the first are guarded.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[80, 64], pl.FP32], out: pl.Out[pl.Tensor[[80, 64], pl.FP32]]):
        for i, (o,) in pl.pipeline(0, n, 1, stage=3, init_values=(out,)):
            x = pl.tile.load(a, [i * 16, 0], [16, 64], target_memory=pl.Mem.Vec)
            o_1 = pl.tile.store(x, [i * 16, 0], o)
            o_2 = pl.yield_(o_1)
        return o_2

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[80, 64], pl.FP32], out: pl.Out[pl.Tensor[[80, 64], pl.FP32]]):
        for i, (o,) in pl.pipeline(0, pl.max(n, 0) // 3 * 3, 3, stage=1, init_values=(out,)):
            x = pl.tile.load(a, [i * 16, 0], [16, 64], target_memory=pl.Mem.Vec)
            o_1 = pl.tile.store(x, [i * 16, 0], o)
            x_1 = pl.tile.load(a, [(i + 1) * 16, 0], [16, 64], target_memory=pl.Mem.Vec)
            o_2 = pl.tile.store(x_1, [(i + 1) * 16, 0], o_1)
            x_2 = pl.tile.load(a, [(i + 2) * 16, 0], [16, 64], target_memory=pl.Mem.Vec)
            o_3 = pl.tile.store(x_2, [(i + 2) * 16, 0], o_2)
            o_4 = pl.yield_(o_3)
        for i_1, (o_5,) in pl.pipeline(pl.max(n, 0) // 3 * 3, n, 3, stage=1, init_values=(o_4,)):
            x_3 = pl.tile.load(a, [i_1 * 16, 0], [16, 64], target_memory=pl.Mem.Vec)
            o_6 = pl.tile.store(x_3, [i_1 * 16, 0], o_5)
            if i_1 + 1 < n:
                x_4 = pl.tile.load(a, [(i_1 + 1) * 16, 0], [16, 64], target_memory=pl.Mem.Vec)
                o_7 = pl.tile.store(x_4, [(i_1 + 1) * 16, 0], o_6)
                o_8 = pl.yield_(o_7)
            else:
                o_8 = pl.yield_(o_6)
            o_9 = pl.yield_(o_8)
        return o_9
