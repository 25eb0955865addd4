# target: ascend910b
# A bridge is reused below it and in blocks inside; one made inside a branch is not used after it.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[32, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        if n > 3:
            x = pl.tensor.add(a, b)
            y = pl.tensor.mul(a, x)
            z = pl.yield_(y)
        else:
            w = pl.tensor.sub(a, b)
            z = pl.yield_(w)
        u = pl.tensor.add(z, a)
        v = pl.tensor.mul(u, a)
        out_1 = pl.tensor.assemble(out, v, [0, 0])
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[32, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        if n > 3:
            a_1 = pl.tile.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Vec)
            b_1 = pl.tile.load(b, [0, 0], [32, 32], target_memory=pl.Mem.Vec)
            x = pl.tile.add(a_1, b_1)
            y: pl.Tile[[32, 32], pl.FP32, pl.Mem.Vec] = pl.tile.mul(a_1, x)
            z = pl.yield_(y)
        else:
            a_2 = pl.tile.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Vec)
            b_2 = pl.tile.load(b, [0, 0], [32, 32], target_memory=pl.Mem.Vec)
            w: pl.Tile[[32, 32], pl.FP32, pl.Mem.Vec] = pl.tile.sub(a_2, b_2)
            z = pl.yield_(w)
        a_3 = pl.tile.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Vec)
        u = pl.tile.add(z, a_3)
        v = pl.tile.mul(u, a_3)
        out_1 = pl.tile.store(v, [0, 0], out)
        return out_1
