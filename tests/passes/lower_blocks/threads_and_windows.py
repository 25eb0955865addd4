# A predicate becomes a branch, a thread loop a launch, a matched buffer its source; alignment stays.
# idempotent: True
# symbols: {"n": 3}
import tilewright.language as pl

@pl.loop.function
def main(A: pl.loop.Buffer[[4, 16], pl.FP32], B: pl.loop.Buffer[[4, 16], pl.FP32], n: pl.Scalar[pl.INDEX]):
    for c in pl.loop.thread("core", 0, 4):
        with pl.loop.block("update"):
            pl.loop.where(c < n)
            row = pl.loop.match(A[c, 0:16], shape=[16])
            t = pl.loop.local([2, 16], pl.FP32, pl.Mem.Vec, dim_align=[[0, 32, 8]])
            pl.loop.reads(A[c, 0:16])
            pl.loop.writes(B[c, 0:16])
            for j in pl.loop.vectorized(0, 16):
                t[1, j] = row[j] + 1.0
                B[c, j] = t[1, j]

# -----

import tilewright.language as pl

@pl.loop.function
def main(A: pl.loop.Buffer[[4, 16], pl.FP32], B: pl.loop.Buffer[[4, 16], pl.FP32], n: pl.Scalar[pl.INDEX]):
    for c in pl.loop.launch("core", 4):
        if c < n:
            t = pl.loop.alloc([2, 16], pl.FP32, pl.Mem.Vec, dim_align=[[0, 32, 8]])
            for j in pl.loop.vectorized(0, 16):
                t[1, j] = A[c, j] + 1.0
                B[c, j] = t[1, j]
