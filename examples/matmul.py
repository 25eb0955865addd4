"""A matrix product in blocks of 64 x 64, the inner size in steps of 64, accumulated on chip."""

import ml_dtypes
import numpy as np

import tilewright.language as pl

BLOCK = 64


@pl.jit
def matmul(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out[m, n] = a[m, k] @ b[k, n]``: bfloat16 operands, float32 result; every size a multiple of 64."""
    m, k = a.shape
    n = b.shape[1]
    for i in pl.parallel(0, m, BLOCK):
        for j in pl.range(0, n, BLOCK):
            acc = pl.matmul(pl.load(a, [i, 0], [BLOCK, BLOCK]), pl.load(b, [0, j], [BLOCK, BLOCK]))
            for s in pl.range(BLOCK, k, BLOCK):
                acc = pl.matmul_acc(acc, pl.load(a, [i, s], [BLOCK, BLOCK]), pl.load(b, [s, j], [BLOCK, BLOCK]))
            out = pl.store(acc, [i, j], out)
    return out


def arguments(m: int = 128, n: int = 192, k: int = 256) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (m, k)).astype(ml_dtypes.bfloat16)
    b = rng.integers(-4, 5, (k, n)).astype(ml_dtypes.bfloat16)
    return a, b, np.zeros((m, n), np.float32)


def reference(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> np.ndarray:
    return a.astype(np.float32) @ b.astype(np.float32)


if __name__ == "__main__":
    given = arguments()
    matmul(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
