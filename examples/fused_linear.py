"""A linear layer with its activation: product, bias, silu and a residual, in one section."""

import numpy as np

import tilewright.language as pl


@pl.jit
def fused_linear(x: pl.Tensor, w: pl.Tensor, b: pl.Tensor, residual: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out[m, n] = silu(x[m, k] @ w[k, n] + b[1, n]) + residual[m, n]``"""
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.silu(x @ w + b) + residual
    return out


def arguments(m: int = 200, k: int = 96, n: int = 136) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    shapes = ((m, k), (k, n), (1, n), (m, n))
    x, w, b, residual = (rng.integers(-4, 5, shape).astype(np.float32) / 8 for shape in shapes)
    return x, w, b, residual, np.zeros((m, n), np.float32)


def reference(x: np.ndarray, w: np.ndarray, b: np.ndarray, residual: np.ndarray, out: np.ndarray) -> np.ndarray:
    linear = x @ w + b
    return linear / (1 + np.exp(-linear)) + residual


if __name__ == "__main__":
    given = arguments()
    fused_linear(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
