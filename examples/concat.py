"""Two matrices side by side, and a third written over a window of the result."""

import numpy as np

import tilewright.language as pl


@pl.jit
def concat(a: pl.Tensor, b: pl.Tensor, patch: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out[m, p + q] = [a[m, p], b[m, q]]``, then ``out[:8, p : p + 16] = patch[8, 16]``"""
    p = a.shape[1]
    q = b.shape[1]
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:, 0:p] = a
        out[:, p : p + q] = b
        out = pl.assemble(out, patch, [0, p])
    return out


def arguments(m: int = 65, p: int = 48, q: int = 64) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    a, b, patch = (rng.integers(-9, 10, shape).astype(np.float32) for shape in ((m, p), (m, q), (8, 16)))
    return a, b, patch, np.zeros((m, p + q), np.float32)


def reference(a: np.ndarray, b: np.ndarray, patch: np.ndarray, out: np.ndarray) -> np.ndarray:
    joined = np.concatenate([a, b], axis=1)
    joined[:8, a.shape[1] : a.shape[1] + 16] = patch
    return joined


if __name__ == "__main__":
    given = arguments()
    concat(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
