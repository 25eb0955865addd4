"""A tensor with numbers: one that is known when the kernel is compiled, and one that is read from a tensor."""

import numpy as np

import tilewright.language as pl

BETA = 0.5


@pl.jit
def scale(x: pl.Tensor, alpha: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out[m, n] = max((x[m, n] * alpha[0, 0] + 0.5) / 2, 0) - 1``"""
    with pl.at(level=pl.Level.CORE_GROUP):
        factor = alpha[0, 0]
        out[:] = pl.maximum((x * factor + BETA) / 2.0, 0.0) - 1.0
    return out


def arguments(m: int = 200, n: int = 128) -> tuple[np.ndarray, ...]:
    x = np.random.default_rng(0).integers(-8, 9, (m, n)).astype(np.float32)
    return x, np.full((1, 1), 3.0, np.float32), np.zeros_like(x)


def reference(x: np.ndarray, alpha: np.ndarray, out: np.ndarray) -> np.ndarray:
    return np.maximum((x * alpha[0, 0] + np.float32(0.5)) / np.float32(2), np.float32(0)) - np.float32(1)


if __name__ == "__main__":
    given = arguments()
    scale(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
