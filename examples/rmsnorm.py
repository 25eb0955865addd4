"""Root-mean-square normalisation of the rows of a matrix, with a weight per column."""

import numpy as np

import tilewright.language as pl

BLOCK = 16


@pl.jit
def rmsnorm(x: pl.Tensor, weight: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out[i, :] = x[i, :] * weight / sqrt(mean(x[i, :] ** 2) + 1e-6)``"""
    rows, columns = x.shape
    for start in pl.parallel(0, rows, BLOCK):
        valid = pl.min(BLOCK, rows - start)
        tile = pl.load(x, [start, 0], [BLOCK, columns], valid_shape=[valid, columns])
        scale = pl.load(weight, [0, 0], [1, columns])
        mean = pl.row_sum(tile * tile) * (1.0 / columns)
        normed = pl.row_expand_mul(tile, pl.rsqrt(mean + 1e-6))
        out = pl.store(pl.col_expand_mul(normed, scale), [start, 0], out)
    return out


def arguments(rows: int = 200, columns: int = 512) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, columns), np.float32)
    return x, rng.standard_normal((1, columns), np.float32), np.zeros_like(x)


def reference(x: np.ndarray, weight: np.ndarray, out: np.ndarray) -> np.ndarray:
    return x * weight / np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(1e-6))


if __name__ == "__main__":
    given = arguments()
    rmsnorm(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
