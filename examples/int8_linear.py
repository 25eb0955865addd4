"""A linear layer over int8: the product in int32, then the scale of each row and of each column."""

import numpy as np

import tilewright.language as pl


@pl.jit
def int8_linear(x: pl.Tensor, w: pl.Tensor, x_scale: pl.Tensor, w_scale: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out[m, n] = (x[m, k] @ w[k, n]) * x_scale[m, 1] * w_scale[1, n]``: int8 operands, float32 scales and result."""
    with pl.at(level=pl.Level.CORE_GROUP):
        product = pl.cast(pl.matmul(x, w), pl.FP32)
        out[:] = pl.col_expand_mul(pl.row_expand_mul(product, x_scale), w_scale)
    return out


def arguments(m: int = 200, k: int = 128, n: int = 96) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (k, n)))
    x_scale, w_scale = (rng.random(shape, np.float32) / 128 for shape in ((m, 1), (1, n)))
    return x, w, x_scale, w_scale, np.zeros((m, n), np.float32)


def reference(x: np.ndarray, w: np.ndarray, x_scale: np.ndarray, w_scale: np.ndarray, out: np.ndarray) -> np.ndarray:
    return (x.astype(np.int32) @ w.astype(np.int32)).astype(np.float32) * x_scale * w_scale


if __name__ == "__main__":
    given = arguments()
    int8_linear(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
