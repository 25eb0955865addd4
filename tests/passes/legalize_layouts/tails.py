# target: ascend910b
# idempotent: True
# Whole boxes, and zeros beyond the valid K of both operands.
import tilewright.language as pl


@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[17, 40], pl.FP16], b: pl.Tensor[[40, 33], pl.FP16], out: pl.Out[pl.Tensor[[17, 33], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [17, 40], target_memory=pl.Mem.Mat)
        y = pl.tile.load(b, [0, 0], [40, 33], target_memory=pl.Mem.Mat)
        x_left = pl.tile.move(x, target_memory=pl.Mem.Left)
        y_right = pl.tile.move(y, target_memory=pl.Mem.Right)
        r: pl.Tile[[17, 33], pl.FP32, pl.Mem.Acc] = pl.tile.matmul(x_left, y_right)
        out_1 = pl.tile.store(r, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[17, 40], pl.FP16], b: pl.Tensor[[40, 33], pl.FP16], out: pl.Out[pl.Tensor[[17, 33], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [32, 48], valid_shape=[17, 40], target_memory=pl.Mem.Mat, pad_value=pl.PadValue.zero)
        y = pl.tile.load(b, [0, 0], [48, 48], valid_shape=[40, 33], target_memory=pl.Mem.Mat, pad_value=pl.PadValue.zero)
        x_left = pl.tile.move(x, target_memory=pl.Mem.Left)
        y_right = pl.tile.move(y, target_memory=pl.Mem.Right)
        r: pl.Tile[[32, 48], pl.FP32, pl.Mem.Acc, pl.TileView(valid_shape=[17, 33])] = pl.tile.matmul(x_left, y_right)
        out_1 = pl.tile.store(r, [0, 0], out)
        return out_1
