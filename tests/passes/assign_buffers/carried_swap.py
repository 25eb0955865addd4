# target: ascend910b
# Carries are parallel copies: both values are copied aside before either buffer is overwritten.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 64], pl.FP32], b: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        y = pl.tile.load(b, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        for i, (p, q) in pl.range(0, 3, 1, init_values=(x, y)):
            p_1, q_1 = pl.yield_(q, p)
        w: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = pl.tile.sub(p_1, q_1)
        out_1 = pl.tile.store(w, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 64], pl.FP32], b: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        x: pl.Tile[[16, 64], pl.FP32, pl.MemRef("vec0", nbytes=4096), pl.Mem.Vec] = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        y: pl.Tile[[16, 64], pl.FP32, pl.MemRef("vec1", nbytes=4096), pl.Mem.Vec] = pl.tile.load(b, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
        for i, (p, q) in pl.range(3, init_values=(x, y)):
            q_copy: pl.Tile[[16, 64], pl.FP32, pl.MemRef("vec2", nbytes=4096), pl.Mem.Vec] = pl.tile.move(q, target_memory=pl.Mem.Vec)
            p_copy: pl.Tile[[16, 64], pl.FP32, pl.MemRef("vec3", nbytes=4096), pl.Mem.Vec] = pl.tile.move(p, target_memory=pl.Mem.Vec)
            q_copy_copy: pl.Tile[[16, 64], pl.FP32, pl.MemRef("vec0", nbytes=4096), pl.Mem.Vec] = pl.tile.move(q_copy, target_memory=pl.Mem.Vec)
            p_copy_copy: pl.Tile[[16, 64], pl.FP32, pl.MemRef("vec1", nbytes=4096), pl.Mem.Vec] = pl.tile.move(p_copy, target_memory=pl.Mem.Vec)
            p_1, q_1 = pl.yield_(q_copy_copy, p_copy_copy)
        w: pl.Tile[[16, 64], pl.FP32, pl.MemRef("vec0", nbytes=4096), pl.Mem.Vec] = pl.tile.sub(p_1, q_1)
        out_1 = pl.tile.store(w, [0, 0], out)
        return out_1
