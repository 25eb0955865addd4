# target: x86_avx2
# Rows go to DDR one by one, at indices that are read; nothing else of the tensor moves.
# run: False
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, at: pl.Tensor[[2, 3], pl.INT32], rows: pl.Tensor[[6, 16], pl.FP32], cache: pl.InOut[pl.Tensor[[40, 16], pl.FP32]]):
        cache_1 = pl.tensor.scatter_update(cache, at, rows)
        return cache_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, at: pl.Tensor[[2, 3], pl.INT32], rows: pl.Tensor[[6, 16], pl.FP32], cache: pl.InOut[pl.Tensor[[40, 16], pl.FP32]]):
        for i, (cache_1,) in pl.range(2, init_values=(cache,)):
            for j, (cache_2,) in pl.range(3, init_values=(cache_1,)):
                element = pl.tensor.read(at, [i, j])
                index = pl.cast(element, pl.INDEX)
                row = pl.tile.load(rows, [i * 3 + j, 0], [1, 16], valid_shape=[1, 16])
                cache_3 = pl.tile.store(row, [index, 0], cache_2)
                cache_4 = pl.yield_(cache_3)
            cache_5 = pl.yield_(cache_4)
        return cache_5
