# target: ascend910b
# Rows too long for the memory: the maximum is taken block by block, then each block is read again.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[3, 50000], pl.FP32], out: pl.Out[pl.Tensor[[3, 50000], pl.FP32]]):
        x_1 = pl.tile.load(x, [0, 0], [3, 50000], target_memory=pl.Mem.Vec)
        m = pl.tile.row_max(x_1)
        y = pl.tile.row_expand_sub(x_1, m)
        out_1 = pl.tile.store(y, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[3, 50000], pl.FP32], out: pl.Out[pl.Tensor[[3, 50000], pl.FP32]]):
        x_1 = pl.tile.load(x, [0, 0], [3, 1024], target_memory=pl.Mem.Vec)
        m = pl.tile.row_max(x_1)
        for column, (m_1,) in pl.range(1024, 50000, 1024, init_values=(m,)):
            x_2 = pl.tile.load(x, [0, column], [3, 1024], valid_shape=[3, pl.min(1024, 50000 - column)], target_memory=pl.Mem.Vec)
            m_2 = pl.tile.row_max(x_2)
            m_3 = pl.tile.maximum(m_1, m_2)
            m_4 = pl.yield_(m_3)
        for column_1, (out_1,) in pl.range(0, 50000, 1024, init_values=(out,)):
            x_3 = pl.tile.load(x, [0, column_1], [3, 1024], valid_shape=[3, pl.min(1024, 50000 - column_1)], target_memory=pl.Mem.Vec)
            y = pl.tile.row_expand_sub(x_3, m_4)
            out_2 = pl.tile.store(y, [0, column_1], out_1)
            out_3 = pl.yield_(out_2)
        return out_3
