# target: ascend910b
# idempotent: True
# A column is a row around an addition, without a copy.
import tilewright.language as pl


@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[20, 64], pl.FP32], out: pl.Out[pl.Tensor[[20, 64], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [20, 64], target_memory=pl.Mem.Vec)
        top: pl.Tile[[20, 1], pl.FP32, pl.Mem.Vec] = pl.tile.row_max(x)
        twice: pl.Tile[[20, 1], pl.FP32, pl.Mem.Vec] = pl.tile.add(top, top)
        r: pl.Tile[[20, 64], pl.FP32, pl.Mem.Vec] = pl.tile.row_expand_sub(x, twice)
        out_1 = pl.tile.store(r, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[20, 64], pl.FP32], out: pl.Out[pl.Tensor[[20, 64], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [24, 64], valid_shape=[20, 64], target_memory=pl.Mem.Vec)
        top: pl.Tile[[24, 1], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[20, 1])] = pl.tile.row_max(x)
        top_row = pl.tile.reshape(top, [1, 24])
        twice_row: pl.Tile[[1, 24], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[1, 20])] = pl.tile.add(top_row, top_row)
        twice = pl.tile.reshape(twice_row, [24, 1])
        r: pl.Tile[[24, 64], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[20, 64])] = pl.tile.row_expand_sub(x, twice)
        out_1 = pl.tile.store(r, [0, 0], out)
        return out_1
