"""A chain of elementwise operations: ``relu(exp(a + b) * 0.5 - c) / 2``."""

import numpy as np

import tilewright.language as pl

BLOCK = 32


@pl.jit
def chain(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    """All four are [n, m]; 32 rows at a time."""
    rows, columns = a.shape
    for start in pl.parallel(0, rows, BLOCK):
        valid = pl.min(BLOCK, rows - start)
        x = pl.load(a, [start, 0], [BLOCK, columns], valid_shape=[valid, columns])
        y = pl.load(b, [start, 0], [BLOCK, columns], valid_shape=[valid, columns])
        z = pl.load(c, [start, 0], [BLOCK, columns], valid_shape=[valid, columns])
        out = pl.store(pl.relu(pl.exp(x + y) * 0.5 - z) / 2.0, [start, 0], out)
    return out


def arguments(rows: int = 200, columns: int = 128) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal((rows, columns), np.float32) for _ in range(3))
    return a, b, c, np.zeros_like(a)


def reference(a: np.ndarray, b: np.ndarray, c: np.ndarray, out: np.ndarray) -> np.ndarray:
    return np.maximum(np.exp(a + b) * np.float32(0.5) - c, np.float32(0)) / np.float32(2)


if __name__ == "__main__":
    given = arguments()
    chain(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
