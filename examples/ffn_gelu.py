"""A feed-forward network with gelu: bias and activation between two products."""

import numpy as np

import tilewright.language as pl


@pl.jit
def ffn(x: pl.Tensor, w1: pl.Tensor, b1: pl.Tensor, w2: pl.Tensor, b2: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out = gelu(x @ w1 + b1) @ w2 + b2``, with gelu in its form with tanh"""
    with pl.at(level=pl.Level.CORE_GROUP):
        hidden = pl.gelu(x @ w1 + b1)
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = hidden @ w2 + b2
    return out


def arguments(m: int = 72, n: int = 64, hidden: int = 200) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    shapes = ((m, n), (n, hidden), (1, hidden), (hidden, n), (1, n))
    x, w1, b1, w2, b2 = (rng.integers(-4, 5, shape).astype(np.float32) / 16 for shape in shapes)
    return x, w1, b1, w2, b2, np.zeros_like(x)


def reference(
    x: np.ndarray, w1: np.ndarray, b1: np.ndarray, w2: np.ndarray, b2: np.ndarray, out: np.ndarray
) -> np.ndarray:
    linear = x @ w1 + b1
    inner = np.sqrt(2 / np.pi) * (linear + 0.044715 * linear**3)
    return (linear * 0.5 * (1 + np.tanh(inner))) @ w2 + b2


if __name__ == "__main__":
    given = arguments()
    ffn(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
