# target: x86_avx2
# The position of a maximum is found by a loop that carries the best element and where it stands.
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[4, 8], pl.INT32], out: pl.Out[pl.Tensor[[4, 1], pl.INT32]]):
        t = pl.tile.load(x, [0, 0], [4, 8])
        m = pl.tile.row_argmax(t)
        out_1 = pl.tile.store(m, [0, 0], out)
        return out_1

# -----

import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[4, 8], pl.INT32], out: pl.Out[pl.Tensor[[4, 1], pl.INT32]]):
        t = pl.tile.load(x, [0, 0], [4, 8])
        m = pl.tile.create([4, 1], pl.INT32)
        for i, (m_1,) in pl.range(4, init_values=(m,)):
            element = pl.tile.read(t, [i, 0])
            for j, (element_1, m_2) in pl.range(8, init_values=(element, 0)):
                element_2 = pl.tile.read(t, [i, j])
                taken = element_2 > element_1
                element_3, m_3 = pl.yield_(element_2 if taken else element_1, j if taken else m_2)
            m_4 = pl.tile.write(m_1, [i, 0], pl.cast(m_3, pl.INT32))
            m_5 = pl.yield_(m_4)
        out_1 = pl.tile.store(m_5, [0, 0], out)
        return out_1
