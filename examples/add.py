"""Two tensors added, element by element."""

import numpy as np

import tilewright.language as pl


@pl.jit
def add(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out[m, n] = a[m, n] + b[m, n]``"""
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = a + b
    return out


def arguments(m: int = 200, n: int = 128) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 9, (m, n)).astype(np.float32) for _ in range(2))
    return a, b, np.zeros_like(a)


def reference(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> np.ndarray:
    return a + b


if __name__ == "__main__":
    given = arguments()
    add(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
