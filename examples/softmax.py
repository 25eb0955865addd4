"""Softmax over the rows of a matrix, 16 rows at a time."""

import numpy as np

import tilewright.language as pl

BLOCK = 16


@pl.jit
def softmax(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out[i, :] = exp(x[i, :] - max(x[i, :])) / sum(exp(x[i, :] - max(x[i, :])))``"""
    rows, columns = x.shape
    for start in pl.parallel(0, rows, BLOCK):
        valid = pl.min(BLOCK, rows - start)
        tile = pl.load(x, [start, 0], [BLOCK, columns], valid_shape=[valid, columns])
        powers = pl.exp(pl.row_expand_sub(tile, pl.row_max(tile)))
        out = pl.store(pl.row_expand_div(powers, pl.row_sum(powers)), [start, 0], out)
    return out


def arguments(rows: int = 200, columns: int = 512) -> tuple[np.ndarray, ...]:
    x = np.random.default_rng(0).standard_normal((rows, columns), np.float32)
    return x, np.zeros_like(x)


def reference(x: np.ndarray, out: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


if __name__ == "__main__":
    given = arguments()
    softmax(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
