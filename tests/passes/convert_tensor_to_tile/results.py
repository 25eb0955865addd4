# target: ascend910b
# Results that are tiles go to output parameters, which the caller creates; a created tensor that is returned is one too.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def scaled(self, a: pl.Tensor[[32, 32], pl.FP32]):
        x = pl.tensor.muls(a, 2.0)
        room = pl.tensor.create([64, 32], pl.FP32)
        room_1 = pl.tensor.assemble(room, x, [0, 0])
        room_2 = pl.tensor.assemble(room_1, a, [32, 0])
        return x, room_2

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[32, 32], pl.FP32]):
        x, y = self.scaled(a)
        return x, y

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def scaled(self, a: pl.Tensor[[32, 32], pl.FP32], room_out: pl.Out[pl.Tensor[[64, 32], pl.FP32]], x_out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        a_1 = pl.tile.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Vec)
        x = pl.tile.muls(a_1, 2.0)
        room_1 = pl.tile.store(x, [0, 0], room_out)
        a_2 = pl.tile.load(a, [0, 0], [32, 32])
        room_2 = pl.tile.store(a_2, [32, 0], room_1)
        x_1 = pl.tile.store(x, [0, 0], x_out)
        return x_1, room_2

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[32, 32], pl.FP32]):
        room = pl.tensor.create([64, 32], pl.FP32)
        x = pl.tensor.create([32, 32], pl.FP32)
        x_1, y = self.scaled(a, room, x)
        return x_1, y
