# The boundary is a symbol: the cut is an expression, held inside the loop's bounds.
# idempotent: True
# symbols: {"n": 13}
import tilewright.language as pl

n = pl.dynamic("n")

@pl.loop.function
def main(A: pl.loop.Buffer[[n], pl.FP32]):
    for i in pl.loop.serial(0, 4):
        for j in pl.loop.serial(0, 8):
            if i * 8 + j < n:
                A[i * 8 + j] = pl.loop.if_then_else(j == 0, 1.0, 2.0)

# -----

import tilewright.language as pl

n = pl.dynamic("n")

@pl.loop.function
def main(A: pl.loop.Buffer[[n], pl.FP32]):
    for i in pl.loop.serial(0, pl.min(n // 8, 4)):
        for j in pl.loop.serial(0, 1):
            A[i * 8 + j] = 1.0
        for j_1 in pl.loop.serial(1, 8):
            A[i * 8 + j_1] = 2.0
    for i_1 in pl.loop.serial(pl.min(n // 8, 4), pl.min((n + 7) // 8, 4)):
        for j_2 in pl.loop.serial(0, pl.min(1, pl.max(0, pl.min(n - i_1 * 8, 8)))):
            A[i_1 * 8 + j_2] = 1.0
        for j_3 in pl.loop.serial(pl.min(1, pl.max(0, pl.min(n - i_1 * 8, 8))), pl.max(0, pl.min(n - i_1 * 8, 8))):
            A[i_1 * 8 + j_3] = 2.0
