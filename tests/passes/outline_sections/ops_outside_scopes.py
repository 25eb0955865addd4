# Each operation is a section of its own; its views belong to it. Rooms stay outside.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[8, 16], pl.FP32], b: pl.Tensor[[8, 8], pl.FP32]):
        v = pl.tensor.slice(a, [8, 8], [0, 4])
        t = pl.tensor.transpose(v, 0, 1)
        x = pl.tensor.matmul(t, b)
        room = pl.tensor.create([8, 8], pl.FP32)
        y = pl.tensor.add(x, v)
        room_1 = pl.tensor.assemble(room, y, [0, 0])
        return x, room_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main_0(self, a: pl.Tensor[[8, 16], pl.FP32], b: pl.Tensor[[8, 8], pl.FP32]):
        v = pl.tensor.slice(a, [8, 8], [0, 4])
        t = pl.tensor.transpose(v)
        x = pl.tensor.matmul(t, b)
        return x

    @pl.function(type=pl.FunctionType.InCore)
    def main_1(self, a: pl.Tensor[[8, 16], pl.FP32], x: pl.Tensor[[8, 8], pl.FP32]):
        v = pl.tensor.slice(a, [8, 8], [0, 4])
        y = pl.tensor.add(x, v)
        return y

    @pl.function(type=pl.FunctionType.InCore)
    def main_2(self, room: pl.Out[pl.Tensor[[8, 8], pl.FP32]], y: pl.Tensor[[8, 8], pl.FP32]):
        room_1 = pl.tensor.assemble(room, y, [0, 0])
        return room_1

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[8, 16], pl.FP32], b: pl.Tensor[[8, 8], pl.FP32]):
        x = self.main_0(a, b)
        room = pl.tensor.create([8, 8], pl.FP32)
        y = self.main_1(a, x)
        room_1 = self.main_2(room, y)
        return x, room_1
