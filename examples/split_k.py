"""A product whose inner size is long and whose result is small: parts of K on several cores, then one sum."""

import numpy as np

import tilewright.language as pl

PARTS = 4


@pl.jit
def split_k(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out[m, n] = a[m, k] @ b[k, n]``, k a multiple of 4: each part multiplies a quarter of k."""
    m, k = a.shape
    n = b.shape[1]
    step = k // PARTS
    partial = pl.tensor.create([PARTS * m, n], pl.FP32)
    for part in pl.parallel(PARTS):
        x = pl.load(a, [0, part * step], [m, step])
        y = pl.load(b, [part * step, 0], [step, n])
        partial = pl.store(pl.matmul(x, y), [part * m, 0], partial)
    with pl.at(level=pl.Level.CORE_GROUP):
        total = pl.slice(partial, [m, n], [0, 0])
        for part in pl.static_range(1, PARTS):
            total = total + pl.slice(partial, [m, n], [part * m, 0])
        out[:] = total
    return out


def arguments(m: int = 64, k: int = 1024, n: int = 48) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    return a, b, np.zeros((m, n), np.float32)


def reference(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> np.ndarray:
    return a.astype(np.float32) @ b.astype(np.float32)


if __name__ == "__main__":
    given = arguments()
    split_k(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
