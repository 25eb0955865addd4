"""A feed-forward network with relu: two products, and what is between them."""

import numpy as np

import tilewright.language as pl


@pl.jit
def ffn(x: pl.Tensor, w1: pl.Tensor, w2: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out = relu(x @ w1) @ w2``"""
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.relu(x @ w1) @ w2
    return out


def arguments(m: int = 72, n: int = 64, hidden: int = 200) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    shapes = ((m, n), (n, hidden), (hidden, n))
    x, w1, w2 = (rng.integers(-4, 5, shape).astype(np.float32) / 16 for shape in shapes)
    return x, w1, w2, np.zeros_like(x)


def reference(x: np.ndarray, w1: np.ndarray, w2: np.ndarray, out: np.ndarray) -> np.ndarray:
    return np.maximum(x @ w1, 0) @ w2


if __name__ == "__main__":
    given = arguments()
    ffn(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
