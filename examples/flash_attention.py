"""Attention with an online softmax: the scores of one block of keys at a time, never the whole matrix of them."""

import numpy as np

import tilewright.language as pl

QUERIES, KEYS = 32, 64
LOWEST = -1e30


@pl.jit
def flash_attention(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out = softmax(q @ k.T / sqrt(d)) @ v``; q and out are [queries, d], k and v [keys, d], float32."""
    queries, d = q.shape
    keys = k.shape[0]
    for start in pl.parallel(0, queries, QUERIES):
        rows = pl.min(QUERIES, queries - start)
        query = pl.load(q, [start, 0], [QUERIES, d], valid_shape=[rows, d])
        total = pl.set_validshape(pl.tile.full([QUERIES, d], pl.FP32, 0.0), rows, d)
        largest = pl.set_validshape(pl.tile.full([QUERIES, 1], pl.FP32, LOWEST), rows, 1)
        divisor = pl.set_validshape(pl.tile.full([QUERIES, 1], pl.FP32, 0.0), rows, 1)
        for at in pl.range(0, keys, KEYS):
            columns = pl.min(KEYS, keys - at)
            key = pl.load(k, [at, 0], [KEYS, d], valid_shape=[columns, d])
            value = pl.load(v, [at, 0], [KEYS, d], valid_shape=[columns, d])
            scores = pl.matmul(query, key.T) * (1.0 / d**0.5)
            above = pl.maximum(largest, pl.row_max(scores))
            shrink = pl.exp(largest - above)
            powers = pl.exp(pl.row_expand_sub(scores, above))
            divisor = divisor * shrink + pl.row_sum(powers)
            total = pl.row_expand_mul(total, shrink) + pl.matmul(powers, value)
            largest = above
        out = pl.store(pl.row_expand_div(total, divisor), [start, 0], out)
    return out


def arguments(queries: int = 72, keys: int = 200, d: int = 64) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((rows, d), np.float32) for rows in (queries, keys, keys))
    return q, k, v, np.zeros_like(q)


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, out: np.ndarray) -> np.ndarray:
    scores = q.astype(np.float64) @ k.T / np.sqrt(q.shape[1])
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True) @ v


if __name__ == "__main__":
    given = arguments()
    flash_attention(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
