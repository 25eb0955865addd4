# A view that is returned becomes a section that copies.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[8, 8], pl.FP32]):
        v = pl.tensor.slice(a, [4, 8], [0, 0])
        x = pl.tensor.add(v, v)
        return v, x

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main_0(self, a: pl.Tensor[[8, 8], pl.FP32]):
        v = pl.tensor.slice(a, [4, 8], [0, 0])
        x = pl.tensor.add(v, v)
        return x

    @pl.function(type=pl.FunctionType.InCore)
    def main_1(self, a: pl.Tensor[[8, 8], pl.FP32]):
        v = pl.tensor.slice(a, [4, 8], [0, 0])
        return v

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[8, 8], pl.FP32]):
        x = self.main_0(a)
        v = self.main_1(a)
        return v, x
