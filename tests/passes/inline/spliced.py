# An inline function's statements stand where it was called, its results are what they return.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.Inline)
    def scale(self, x: pl.Tensor[[8, 8], pl.FP32], s: pl.Scalar[pl.FP32]):
        y = pl.tensor.muls(x, s)
        return y

    @pl.function(type=pl.FunctionType.Inline)
    def twice(self, x: pl.Tensor[[8, 8], pl.FP32]):
        y = self.scale(x, 2.0)
        z = self.scale(y, 0.5)
        return y, z

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[8, 8], pl.FP32]):
        x, y = self.twice(a)
        z = pl.tensor.add(x, y)
        return z

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[8, 8], pl.FP32]):
        y = pl.tensor.muls(a, 2.0)
        y_1 = pl.tensor.muls(y, 0.5)
        z = pl.tensor.add(y, y_1)
        return z
