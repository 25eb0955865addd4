"""``a @ b @ c`` in one section: the first product goes to the second without touching DDR where the chip has a path."""

import numpy as np

import tilewright.language as pl


@pl.jit
def chained(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out[m, n] = (a[m, k] @ b[k, j]) @ c[j, n]``, float16, each product rounded to float16."""
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = a @ b @ c
    return out


def arguments(m: int = 64, k: int = 128, j: int = 96, n: int = 80) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((m, k), (k, j), (j, n)))
    return a, b, c, np.zeros((m, n), np.float16)


def reference(a: np.ndarray, b: np.ndarray, c: np.ndarray, out: np.ndarray) -> np.ndarray:
    first = (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)
    return (first.astype(np.float32) @ c.astype(np.float32)).astype(np.float16)


if __name__ == "__main__":
    given = arguments()
    chained(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1].astype(np.float32) - reference(*given)).max()))
