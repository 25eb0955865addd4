# The last tile is cut where the padding begins; inside, no trip asks any more.
# idempotent: True
import tilewright.language as pl

@pl.loop.function
def main(A: pl.loop.Buffer[[128], pl.FP32], B: pl.loop.Buffer[[128], pl.FP32]):
    for i in pl.loop.serial(0, 5):
        t = pl.loop.alloc([26], pl.FP32)
        for j in pl.loop.serial(0, 26):
            if i * 26 + j < 128:
                t[j] = A[i * 26 + j]
                B[i * 26 + j] = t[j]

# -----

import tilewright.language as pl

@pl.loop.function
def main(A: pl.loop.Buffer[[128], pl.FP32], B: pl.loop.Buffer[[128], pl.FP32]):
    for i in pl.loop.serial(0, 4):
        t = pl.loop.alloc([26], pl.FP32)
        for j in pl.loop.serial(0, 26):
            t[j] = A[i * 26 + j]
            B[i * 26 + j] = t[j]
    for i_1 in pl.loop.serial(4, 5):
        t_1 = pl.loop.alloc([26], pl.FP32)
        for j_1 in pl.loop.serial(0, 24):
            t_1[j_1] = A[i_1 * 26 + j_1]
            B[i_1 * 26 + j_1] = t_1[j_1]
