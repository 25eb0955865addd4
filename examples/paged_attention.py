"""Attention of one new token per sequence over keys and values that lie in pages, found through a table of pages."""

import numpy as np

import tilewright.language as pl

PAGE, HEADS = 32, 16
LOWEST = -1e30


@pl.jit
def paged_attention(
    q: pl.Tensor, keys: pl.Tensor, values: pl.Tensor, table: pl.Tensor, lengths: pl.Tensor, out: pl.Out[pl.Tensor]
):
    """Each of 16 heads of each sequence reads the same keys (multi-query attention).

    q and out are [16 * batch, d]; keys and values [32 * pages, d]; table is [batch, most pages], int32: page p of
    sequence b holds its tokens 32 p to 32 p + 31; lengths are [batch, 1], int32, known only when the kernel runs."""
    d = q.shape[1]
    batch = lengths.shape[0]
    for b in pl.parallel(batch):
        query = pl.load(q, [b * HEADS, 0], [HEADS, d])
        length = pl.read(lengths, [b, 0])
        total = pl.tile.full([HEADS, d], pl.FP32, 0.0)
        largest = pl.tile.full([HEADS, 1], pl.FP32, LOWEST)
        divisor = pl.tile.full([HEADS, 1], pl.FP32, 0.0)
        for p in pl.range((length + PAGE - 1) // PAGE):
            page = pl.read(table, [b, p])
            tokens = pl.min(PAGE, length - p * PAGE)
            key = pl.load(keys, [page * PAGE, 0], [PAGE, d], valid_shape=[tokens, d])
            value = pl.load(values, [page * PAGE, 0], [PAGE, d], valid_shape=[tokens, d])
            scores = pl.matmul(query, key.T) * (1.0 / d**0.5)
            above = pl.maximum(largest, pl.row_max(scores))
            shrink = pl.exp(largest - above)
            powers = pl.exp(pl.row_expand_sub(scores, above))
            divisor = divisor * shrink + pl.row_sum(powers)
            total = pl.row_expand_mul(total, shrink) + pl.matmul(powers, value)
            largest = above
        out = pl.store(pl.row_expand_div(total, divisor), [b * HEADS, 0], out)
    return out


def arguments(batch: int = 3, longest: int = 100, d: int = 64) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    most = -(-longest // PAGE)
    lengths = rng.integers(1, longest + 1, (batch, 1)).astype(np.int32)
    table = rng.permutation(batch * most).reshape(batch, most).astype(np.int32)
    keys, values = (rng.standard_normal((batch * most * PAGE, d), np.float32) for _ in range(2))
    q = rng.standard_normal((batch * HEADS, d), np.float32)
    return q, keys, values, table, lengths, np.zeros_like(q)


def reference(
    q: np.ndarray, keys: np.ndarray, values: np.ndarray, table: np.ndarray, lengths: np.ndarray, out: np.ndarray
) -> np.ndarray:
    wanted = np.zeros(q.shape, np.float64)
    for b, length in enumerate(lengths[:, 0]):
        rows = (table[b][:, None] * PAGE + np.arange(PAGE)).ravel()[:length]
        scores = q[b * HEADS : (b + 1) * HEADS].astype(np.float64) @ keys[rows].T / np.sqrt(q.shape[1])
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        wanted[b * HEADS : (b + 1) * HEADS] = powers / powers.sum(axis=1, keepdims=True) @ values[rows]
    return wanted


if __name__ == "__main__":
    given = arguments()
    paged_attention(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
