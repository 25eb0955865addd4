# target: ascend910b
# Two computations that share nothing but an operand: each has its own grid.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[512, 512], pl.FP32], out: pl.Out[pl.Tensor[[512, 512], pl.FP32]], s: pl.Out[pl.Tensor[[512, 512], pl.FP32]]):
        x_1 = pl.tile.load(x, [0, 0], [512, 512], target_memory=pl.Mem.Vec)
        y = pl.tile.relu(x_1)
        out_1 = pl.tile.store(y, [0, 0], out)
        t = pl.tile.transpose(x_1, 0, 1)
        s_1 = pl.tile.store(t, [0, 0], s)
        return out_1, s_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[512, 512], pl.FP32], out: pl.Out[pl.Tensor[[512, 512], pl.FP32]], s: pl.Out[pl.Tensor[[512, 512], pl.FP32]]):
        for row, (out_1,) in pl.parallel(0, 512, 8, init_values=(out,)):
            x_1 = pl.tile.load(x, [row, 0], [8, 512], target_memory=pl.Mem.Vec)
            y = pl.tile.relu(x_1)
            out_2 = pl.tile.store(y, [row, 0], out_1)
            out_3 = pl.yield_(out_2)
        for column, (s_1,) in pl.parallel(0, 512, 16, init_values=(s,)):
            x_2 = pl.tile.load(x, [0, column], [512, 16], target_memory=pl.Mem.Vec)
            t = pl.tile.transpose(x_2)
            s_2 = pl.tile.store(t, [column, 0], s_1)
            s_3 = pl.yield_(s_2)
        return out_3, s_3
