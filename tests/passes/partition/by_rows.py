# target: ascend910b
# Rows are searched for themselves, so that they are cut into blocks, though what happens within a row is no loop form.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[400, 512], pl.FP32], out: pl.Out[pl.Tensor[[400, 1], pl.INT32]]):
        t = pl.tile.load(x, [0, 0], [400, 512], target_memory=pl.Mem.Vec)
        m = pl.tile.row_argmax(t)
        out_1 = pl.tile.store(m, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[400, 512], pl.FP32], out: pl.Out[pl.Tensor[[400, 1], pl.INT32]]):
        for row, (out_1,) in pl.parallel(0, 400, 8, init_values=(out,)):
            t = pl.tile.load(x, [row, 0], [8, 512], target_memory=pl.Mem.Vec)
            m = pl.tile.row_argmax(t)
            out_2 = pl.tile.store(m, [row, 0], out_1)
            out_3 = pl.yield_(out_2)
        return out_3
