# target: ascend910b
# The slice is loaded transposed; the view of the slice that is wanted straight costs nothing.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 64], pl.FP32], b: pl.Tensor[[32, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]], other: pl.Out[pl.Tensor[[48, 48], pl.FP32]]):
        x = pl.tensor.slice(b, [32, 16], [0, 8])
        y = pl.tensor.matmul(x, b, a_trans=True)
        z = pl.tensor.slice(a, [48, 32], [16, 0])
        w = pl.tensor.matmul(z, z, b_trans=True)
        out_1 = pl.tensor.assemble(out, pl.tensor.slice(y, [16, 32], [0, 0]), [0, 0])
        other_1 = pl.tensor.assemble(other, w, [0, 0])
        return out_1, other_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[64, 64], pl.FP32], b: pl.Tensor[[32, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]], other: pl.Out[pl.Tensor[[48, 48], pl.FP32]]):
        x = pl.tile.load(b, [0, 8], [32, 16], target_memory=pl.Mem.Mat, transpose=True)
        b_1 = pl.tile.load(b, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
        y = pl.tile.matmul(x, b_1)
        z = pl.tile.load(a, [16, 0], [48, 32], target_memory=pl.Mem.Mat)
        z_1 = pl.tile.transpose_view(z)
        w = pl.tile.matmul(z, z_1)
        slice = pl.tile.slice(y, [16, 32], [0, 0])
        out_1 = pl.tile.store(slice, [0, 0], out)
        other_1 = pl.tile.store(w, [0, 0], other)
        return out_1, other_1
