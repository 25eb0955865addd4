# target: ascend910b
# Sums of columns: columns are work items, and each adds its blocks of rows. FP16 is summed in FP32 and rounded once.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[3000, 512], pl.FP16], out: pl.Out[pl.Tensor[[1, 512], pl.FP16]]):
        x_1 = pl.tile.load(x, [0, 0], [3000, 512], target_memory=pl.Mem.Vec)
        s = pl.tile.col_sum(x_1)
        out_1 = pl.tile.store(s, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[3000, 512], pl.FP16], out: pl.Out[pl.Tensor[[1, 512], pl.FP16]]):
        for column, (out_1,) in pl.parallel(0, 512, 256, init_values=(out,)):
            x_1 = pl.tile.load(x, [0, column], [32, 256], target_memory=pl.Mem.Vec)
            x_1_fp32 = pl.tile.cast(x_1, pl.FP32)
            s_fp32 = pl.tile.col_sum(x_1_fp32)
            for row, (s_fp32_1,) in pl.range(32, 3000, 32, init_values=(s_fp32,)):
                x_2 = pl.tile.load(x, [row, column], [32, 256], valid_shape=[pl.min(32, 3000 - row), 256], target_memory=pl.Mem.Vec)
                x_1_fp32_1 = pl.tile.cast(x_2, pl.FP32)
                s_fp32_2 = pl.tile.col_sum(x_1_fp32_1)
                s_fp32_3 = pl.tile.add(s_fp32_1, s_fp32_2)
                s_fp32_4 = pl.yield_(s_fp32_3)
            s = pl.tile.cast(s_fp32_4, pl.FP16)
            out_2 = pl.tile.store(s, [0, column], out_1)
            out_3 = pl.yield_(out_2)
        return out_3
