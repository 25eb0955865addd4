"""Rotary position embedding: the two halves of each row turned by an angle that its position gives."""

import numpy as np

import tilewright.language as pl

BLOCK = 32


@pl.jit
def rope(x: pl.Tensor, cos: pl.Tensor, sin: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``[a, b] = x[i, :]; out[i, :] = [a * cos - b * sin, b * cos + a * sin]``; cos and sin are [rows, columns / 2]."""
    rows, columns = x.shape
    half = columns // 2
    for start in pl.parallel(0, rows, BLOCK):
        valid = pl.min(BLOCK, rows - start)
        a = pl.load(x, [start, 0], [BLOCK, half], valid_shape=[valid, half])
        b = pl.load(x, [start, half], [BLOCK, half], valid_shape=[valid, half])
        c = pl.load(cos, [start, 0], [BLOCK, half], valid_shape=[valid, half])
        s = pl.load(sin, [start, 0], [BLOCK, half], valid_shape=[valid, half])
        out = pl.store(a * c - b * s, [start, 0], out)
        out = pl.store(b * c + a * s, [start, half], out)
    return out


def arguments(rows: int = 200, columns: int = 128) -> tuple[np.ndarray, ...]:
    x = np.random.default_rng(0).standard_normal((rows, columns), np.float32)
    angles = np.arange(rows)[:, None] / 10_000.0 ** (np.arange(columns // 2) / (columns // 2))
    return x, np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32), np.zeros_like(x)


def reference(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, out: np.ndarray) -> np.ndarray:
    a, b = np.split(x, 2, axis=1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=1)


if __name__ == "__main__":
    given = arguments()
    rope(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
