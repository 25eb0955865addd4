"""A matrix with its axes exchanged, in square blocks."""

import numpy as np

import tilewright.language as pl

BLOCK = 32


@pl.jit
def transpose(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out[n, m] = x[m, n]``, float32, any size."""
    m, n = x.shape
    for i in pl.parallel(0, m, BLOCK):
        rows = pl.min(BLOCK, m - i)
        for j in pl.range(0, n, BLOCK):
            columns = pl.min(BLOCK, n - j)
            tile = pl.load(x, [i, j], [BLOCK, BLOCK], valid_shape=[rows, columns])
            out = pl.store(pl.transpose(tile, 0, 1), [j, i], out)
    return out


def arguments(m: int = 200, n: int = 72) -> tuple[np.ndarray, ...]:
    x = np.random.default_rng(0).standard_normal((m, n), np.float32)
    return x, np.zeros((n, m), np.float32)


def reference(x: np.ndarray, out: np.ndarray) -> np.ndarray:
    return x.T


if __name__ == "__main__":
    given = arguments()
    transpose(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
