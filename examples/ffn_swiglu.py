"""A feed-forward network with swiglu, as in llama: two products side by side, gated, and a third."""

import numpy as np

import tilewright.language as pl


@pl.jit
def ffn(x: pl.Tensor, gate: pl.Tensor, up: pl.Tensor, down: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out = (silu(x @ gate) * (x @ up)) @ down``"""
    with pl.at(level=pl.Level.CORE_GROUP):
        hidden = pl.silu(x @ gate) * (x @ up)
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = hidden @ down
    return out


def arguments(m: int = 72, n: int = 64, hidden: int = 200) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    shapes = ((m, n), (n, hidden), (n, hidden), (hidden, n))
    x, gate, up, down = (rng.integers(-4, 5, shape).astype(np.float32) / 16 for shape in shapes)
    return x, gate, up, down, np.zeros_like(x)


def reference(x: np.ndarray, gate: np.ndarray, up: np.ndarray, down: np.ndarray, out: np.ndarray) -> np.ndarray:
    linear = x @ gate
    return (linear / (1 + np.exp(-linear)) * (x @ up)) @ down


if __name__ == "__main__":
    given = arguments()
    ffn(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
