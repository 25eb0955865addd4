# Sums are gathered, and what bounds decide is decided.
# idempotent: True
import tilewright.language as pl

@pl.loop.function
def main(A: pl.loop.Buffer[[16], pl.FP32]):
    for i in pl.loop.serial(0, 16):
        if i < 16:
            k = i * 4 + 2 - i * 4
            A[k + i // 16 + pl.min(i, 20) % 1] = 1.0
        if i > 20:
            A[0] = 2.0
        for j in pl.loop.serial(3, 3):
            A[j] = 3.0

# -----

import tilewright.language as pl

@pl.loop.function
def main(A: pl.loop.Buffer[[16], pl.FP32]):
    for i in pl.loop.serial(0, 16):
        A[2] = 1.0
