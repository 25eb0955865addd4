"""The activation silu: each number times its sigmoid."""

import numpy as np

import tilewright.language as pl


@pl.jit
def silu(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out = x / (1 + exp(-x))``"""
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.silu(x)
    return out


def arguments(m: int = 200, n: int = 128) -> tuple[np.ndarray, ...]:
    x = np.random.default_rng(0).standard_normal((m, n), np.float32)
    return x, np.zeros_like(x)


def reference(x: np.ndarray, out: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


if __name__ == "__main__":
    given = arguments()
    silu(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
