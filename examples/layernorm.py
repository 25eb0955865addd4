"""Layer normalisation over the rows of a matrix, 16 rows at a time."""

import numpy as np

import tilewright.language as pl

BLOCK = 16
EPSILON = 1e-5


@pl.jit
def layernorm(x: pl.Tensor, gamma: pl.Tensor, beta: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out[i, :] = (x[i, :] - mean) / sqrt(variance + 1e-5) * gamma[0, :] + beta[0, :]``"""
    rows, columns = x.shape
    for start in pl.parallel(0, rows, BLOCK):
        valid = pl.min(BLOCK, rows - start)
        tile = pl.load(x, [start, 0], [BLOCK, columns], valid_shape=[valid, columns])
        scale = pl.load(gamma, [0, 0], [1, columns])
        shift = pl.load(beta, [0, 0], [1, columns])
        centred = pl.row_expand_sub(tile, pl.row_sum(tile) * (1.0 / columns))
        variance = pl.row_sum(centred * centred) * (1.0 / columns)
        normal = pl.row_expand_mul(centred, pl.rsqrt(variance + EPSILON))
        out = pl.store(pl.col_expand_add(pl.col_expand_mul(normal, scale), shift), [start, 0], out)
    return out


def arguments(rows: int = 200, columns: int = 256) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, columns), np.float32)
    gamma, beta = (rng.standard_normal((1, columns), np.float32) for _ in range(2))
    return x, gamma, beta, np.zeros_like(x)


def reference(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, out: np.ndarray) -> np.ndarray:
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON) * gamma + beta


if __name__ == "__main__":
    given = arguments()
    layernorm(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
