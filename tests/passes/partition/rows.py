# target: ascend910b
# idempotent: True
# Rows are independent: each work item takes a block of them, the last one fewer.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[1000, 1024], pl.FP32], out: pl.Out[pl.Tensor[[1000, 1024], pl.FP32]]):
        x_1 = pl.tile.load(x, [0, 0], [1000, 1024], target_memory=pl.Mem.Vec)
        m = pl.tile.row_max(x_1)
        y = pl.tile.row_expand_sub(x_1, m)
        out_1 = pl.tile.store(y, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[1000, 1024], pl.FP32], out: pl.Out[pl.Tensor[[1000, 1024], pl.FP32]]):
        for row, (out_1,) in pl.parallel(0, 1000, 8, init_values=(out,)):
            x_1 = pl.tile.load(x, [row, 0], [8, 1024], target_memory=pl.Mem.Vec)
            m = pl.tile.row_max(x_1)
            y = pl.tile.row_expand_sub(x_1, m)
            out_2 = pl.tile.store(y, [row, 0], out_1)
            out_3 = pl.yield_(out_2)
        return out_3
