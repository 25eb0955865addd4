"""A product with a bias for each column, which the matrix unit adds while it accumulates."""

import numpy as np

import tilewright.language as pl


@pl.jit
def matmul_bias(x: pl.Tensor, w: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out[m, n] = x[m, k] @ w[k, n] + b[1, n]``: float16, the bias in float32; summed in float32."""
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.matmul_bias(x, w, b)
    return out


def arguments(m: int = 200, k: int = 192, n: int = 136) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    return x, w, rng.integers(-3, 4, (1, n)).astype(np.float32), np.zeros((m, n), np.float16)


def reference(x: np.ndarray, w: np.ndarray, b: np.ndarray, out: np.ndarray) -> np.ndarray:
    return (x.astype(np.float32) @ w.astype(np.float32) + b).astype(np.float16)


if __name__ == "__main__":
    given = arguments()
    matmul_bias(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
