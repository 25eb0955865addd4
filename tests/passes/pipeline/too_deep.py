# target: ascend910b
# idempotent: True
# One tile takes 64 KiB of 184 KiB: of three slots two fit (PH-MR-001).
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[1024, 64], pl.FP32], out: pl.Out[pl.Tensor[[1024, 64], pl.FP32]]):
        for i, (o,) in pl.pipeline(0, 4, 1, stage=3, init_values=(out,)):
            x = pl.tile.load(a, [i * 256, 0], [256, 64], target_memory=pl.Mem.Vec)
            o_1 = pl.tile.store(x, [i * 256, 0], o)
            o_2 = pl.yield_(o_1)
        return o_2

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[1024, 64], pl.FP32], out: pl.Out[pl.Tensor[[1024, 64], pl.FP32]]):
        for i, (o,) in pl.pipeline(0, 4, 2, stage=1, init_values=(out,)):
            x = pl.tile.load(a, [i * 256, 0], [256, 64], target_memory=pl.Mem.Vec)
            o_1 = pl.tile.store(x, [i * 256, 0], o)
            x_1 = pl.tile.load(a, [(i + 1) * 256, 0], [256, 64], target_memory=pl.Mem.Vec)
            o_2 = pl.tile.store(x_1, [(i + 1) * 256, 0], o_1)
            o_3 = pl.yield_(o_2)
        return o_3
