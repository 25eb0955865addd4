"""The activation gelu, in its form with tanh."""

import numpy as np

import tilewright.language as pl


@pl.jit
def gelu(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out = x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))) / 2``"""
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.gelu(x)
    return out


def arguments(m: int = 200, n: int = 128) -> tuple[np.ndarray, ...]:
    x = np.random.default_rng(0).standard_normal((m, n), np.float32)
    return x, np.zeros_like(x)


def reference(x: np.ndarray, out: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


if __name__ == "__main__":
    given = arguments()
    gelu(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
