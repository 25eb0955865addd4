# target: ascend910b
# A product and a sum flow together in Vec, where it costs least; the product is moved in its own arm.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[32, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        if n > 3:
            x = pl.tensor.matmul(a, b)
            z = pl.yield_(x)
        else:
            y = pl.tensor.add(a, b)
            z = pl.yield_(y)
        w = pl.tensor.mul(z, b)
        out_1 = pl.tensor.assemble(out, w, [0, 0])
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[32, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        if n > 3:
            a_1 = pl.tile.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
            b_1 = pl.tile.load(b, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
            x = pl.tile.matmul(a_1, b_1)
            x_1 = pl.tile.move(x, target_memory=pl.Mem.Vec)
            z = pl.yield_(x_1)
        else:
            a_2 = pl.tile.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Vec)
            b_2 = pl.tile.load(b, [0, 0], [32, 32], target_memory=pl.Mem.Vec)
            y: pl.Tile[[32, 32], pl.FP32, pl.Mem.Vec] = pl.tile.add(a_2, b_2)
            z = pl.yield_(y)
        b_3 = pl.tile.load(b, [0, 0], [32, 32], target_memory=pl.Mem.Vec)
        w = pl.tile.mul(z, b_3)
        out_1 = pl.tile.store(w, [0, 0], out)
        return out_1
