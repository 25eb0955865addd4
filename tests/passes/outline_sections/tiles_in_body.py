# A body that holds tiles is one section as a whole.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        room = pl.tensor.create([8, 8], pl.FP32)
        x = pl.tile.load(a, [0, 0], [8, 8])
        y = pl.tile.exp(x)
        room_1 = pl.tile.store(y, [0, 0], room)
        z = pl.tile.load(room_1, [0, 0], [8, 8])
        out_1 = pl.tile.store(z, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main_0(self, a: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]], room: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [8, 8])
        y = pl.tile.exp(x)
        room_1 = pl.tile.store(y, [0, 0], room)
        z = pl.tile.load(room_1, [0, 0], [8, 8])
        out_1 = pl.tile.store(z, [0, 0], out)
        return out_1, room_1

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        room = pl.tensor.create([8, 8], pl.FP32)
        out_1, room_1 = self.main_0(a, out, room)
        return out_1
