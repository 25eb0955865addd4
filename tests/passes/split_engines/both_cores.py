# target: ascend910b
# One item stays in one function, whichever cores it needs; its workspace belongs to the caller, with a part for each item.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 32], pl.FP16], b: pl.Tensor[[32, 16], pl.FP16], out: pl.Out[pl.Tensor[[64, 16], pl.FP32]]):
        for i, (o,) in pl.parallel(0, 64, 16, init_values=(out,)):
            l = pl.tile.load(a, [i, 0], [16, 32], target_memory=pl.Mem.Mat)
            r = pl.tile.load(b, [0, 0], [32, 16], target_memory=pl.Mem.Mat)
            left = pl.tile.move(l, target_memory=pl.Mem.Left)
            right = pl.tile.move(r, target_memory=pl.Mem.Right)
            acc: pl.Tile[[16, 16], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(left, right)
            space = pl.tensor.create([16, 16], pl.FP32)
            space_1 = pl.tile.store(acc, [0, 0], space)
            x = pl.tile.load(space_1, [0, 0], [16, 16], target_memory=pl.Mem.Vec)
            y: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tile.relu(x)
            o_1 = pl.tile.store(y, [i, 0], o)
            o_2 = pl.yield_(o_1)
        return o_2

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[64, 32], pl.FP16], b: pl.Tensor[[32, 16], pl.FP16], out: pl.Out[pl.Tensor[[64, 16], pl.FP32]]):
        space = pl.tensor.create([64, 16], pl.FP32)
        o_2, space_1 = self.main_section(a, b, out, space)
        return o_2

    @pl.function(type=pl.FunctionType.InCore)
    def main_section(self, a: pl.Tensor[[64, 32], pl.FP16], b: pl.Tensor[[32, 16], pl.FP16], out: pl.Out[pl.Tensor[[64, 16], pl.FP32]], space: pl.Out[pl.Tensor[[64, 16], pl.FP32]]):
        for i, (o, space_1) in pl.parallel(0, 64, 16, init_values=(out, space)):
            l = pl.tile.load(a, [i, 0], [16, 32], target_memory=pl.Mem.Mat)
            r = pl.tile.load(b, [0, 0], [32, 16], target_memory=pl.Mem.Mat)
            left = pl.tile.move(l, target_memory=pl.Mem.Left)
            right = pl.tile.move(r, target_memory=pl.Mem.Right)
            acc: pl.Tile[[16, 16], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(left, right)
            space_2 = pl.tile.store(acc, [i // 16 * 16, 0], space_1)
            x = pl.tile.load(space_2, [i // 16 * 16, 0], [16, 16], target_memory=pl.Mem.Vec)
            y: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tile.relu(x)
            o_1 = pl.tile.store(y, [i, 0], o)
            o_2, space_3 = pl.yield_(o_1, space_2)
        return o_2, space_3
