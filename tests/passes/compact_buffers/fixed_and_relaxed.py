# The loop around a buffer moves its minimum, the loops inside give its extent, and what a predicate leaves out is gone.
# idempotent: True
import tilewright.language as pl

@pl.loop.function
def main(A: pl.loop.Buffer[[4, 8], pl.FP32], C: pl.loop.Buffer[[4, 8], pl.FP32]):
    for i in pl.loop.serial(0, 4):
        B = pl.loop.alloc([64], pl.FP32)
        for j in pl.loop.serial(0, 8):
            if j < 5:
                B[i * 8 + j] = A[i, j]
        for k in pl.loop.serial(0, 5):
            C[i, k] = B[i * 8 + k]

# -----

import tilewright.language as pl

@pl.loop.function
def main(A: pl.loop.Buffer[[4, 8], pl.FP32], C: pl.loop.Buffer[[4, 8], pl.FP32]):
    for i in pl.loop.serial(0, 4):
        B = pl.loop.alloc([5], pl.FP32)
        for j in pl.loop.serial(0, 8):
            if j < 5:
                B[j] = A[i, j]
        for k in pl.loop.serial(0, 5):
            C[i, k] = B[k]
