"""One layer of a llama-style model for one new token of each sequence, from the normalisation to the feed-forward part.

Normalise, project to queries, keys and values, turn queries and keys by their position, append to the cache, attend
over what each sequence has so far (its length is known only when the kernel runs; four query heads share a key head),
project, add, normalise, and the gated feed-forward network. Two sections and two loops over work items.
"""

import numpy as np

import tilewright.language as pl

HEADS, SHARED, D = 8, 2, 128
GROUP = HEADS // SHARED
CONTEXT, BLOCK = 128, 32
EPSILON = 1e-5
LOWEST = -1e30


@pl.jit.inline
def rmsnorm(x: pl.Tensor, weight: pl.Tensor):
    """``x / sqrt(mean(x ** 2) + 1e-5) * weight``, row by row."""
    mean = pl.row_sum(x * x) * (1.0 / x.shape[1])
    return pl.col_expand_mul(pl.row_expand_mul(x, pl.rsqrt(mean + EPSILON)), weight)


@pl.jit
def decode_layer(
    x: pl.Tensor,
    norm_1: pl.Tensor,
    wq: pl.Tensor,
    wk: pl.Tensor,
    wv: pl.Tensor,
    wo: pl.Tensor,
    norm_2: pl.Tensor,
    gate: pl.Tensor,
    up: pl.Tensor,
    down: pl.Tensor,
    cos: pl.Tensor,
    sin: pl.Tensor,
    lengths: pl.Tensor,
    keys: pl.InOut[pl.Tensor],
    values: pl.InOut[pl.Tensor],
    out: pl.Out[pl.Tensor],
):
    """x and out are [batch, hidden], float32; cos and sin [batch, 64] of each new position; lengths [batch, 1], int32,
    tokens in the cache; keys and values [batch * 128, 256], sequence b in rows 128 b and on."""
    batch, hidden = x.shape
    half = D // 2
    with pl.at(level=pl.Level.CORE_GROUP):
        normal = rmsnorm(x, norm_1)
        q = normal @ wq
        k = normal @ wk
        v = normal @ wv
    turned = pl.tensor.create([batch * HEADS, D], pl.FP32)
    for b in pl.range(batch):  # one after another: where each writes is read from memory
        at = b * CONTEXT + pl.read(lengths, [b, 0])
        c = pl.load(cos, [b, 0], [1, half])
        s = pl.load(sin, [b, 0], [1, half])
        for h in pl.range(HEADS):
            first = pl.load(q, [b, h * D], [1, half])
            second = pl.load(q, [b, h * D + half], [1, half])
            turned = pl.store(first * c - second * s, [b * HEADS + h, 0], turned)
            turned = pl.store(second * c + first * s, [b * HEADS + h, half], turned)
        for h in pl.range(SHARED):
            first = pl.load(k, [b, h * D], [1, half])
            second = pl.load(k, [b, h * D + half], [1, half])
            keys = pl.store(first * c - second * s, [at, h * D], keys)
            keys = pl.store(second * c + first * s, [at, h * D + half], keys)
        values = pl.store(pl.load(v, [b, 0], [1, SHARED * D]), [at, 0], values)
    mixed = pl.tensor.create([batch * HEADS, D], pl.FP32)
    for b in pl.parallel(batch):
        length = pl.read(lengths, [b, 0]) + 1
        for h in pl.range(SHARED):
            query = pl.load(turned, [b * HEADS + h * GROUP, 0], [GROUP, D])
            total = pl.tile.full([GROUP, D], pl.FP32, 0.0)
            largest = pl.tile.full([GROUP, 1], pl.FP32, LOWEST)
            divisor = pl.tile.full([GROUP, 1], pl.FP32, 0.0)
            for start in pl.range(0, length, BLOCK):
                tokens = pl.min(BLOCK, length - start)
                key = pl.load(keys, [b * CONTEXT + start, h * D], [BLOCK, D], valid_shape=[tokens, D])
                value = pl.load(values, [b * CONTEXT + start, h * D], [BLOCK, D], valid_shape=[tokens, D])
                scores = pl.matmul(query, key.T) * (1.0 / D**0.5)
                above = pl.maximum(largest, pl.row_max(scores))
                shrink = pl.exp(largest - above)
                powers = pl.exp(pl.row_expand_sub(scores, above))
                divisor = divisor * shrink + pl.row_sum(powers)
                total = pl.row_expand_mul(total, shrink) + pl.matmul(powers, value)
                largest = above
            mixed = pl.store(pl.row_expand_div(total, divisor), [b * HEADS + h * GROUP, 0], mixed)
    with pl.at(level=pl.Level.CORE_GROUP):
        residual = pl.reshape(mixed, [batch, hidden]) @ wo + x
    with pl.at(level=pl.Level.CORE_GROUP):
        normal = rmsnorm(residual, norm_2)
        inner = pl.silu(normal @ gate) * (normal @ up)
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = inner @ down + residual
    return out


def arguments(batch: int = 4, wide: int = 1536) -> tuple[np.ndarray, ...]:
    """Weights of the size that keeps activations near 1."""
    rng = np.random.default_rng(0)
    hidden, width = HEADS * D, SHARED * D

    def weight(rows: int, columns: int) -> np.ndarray:
        return rng.standard_normal((rows, columns), np.float32) / np.float32(rows**0.5)

    x = rng.standard_normal((batch, hidden), np.float32)
    norms = [1 + rng.standard_normal((1, hidden), np.float32) / 8 for _ in range(2)]
    lengths = rng.integers(0, CONTEXT, (batch, 1)).astype(np.int32)
    angles = lengths / 10_000.0 ** (np.arange(D // 2) / (D // 2))
    caches = [rng.standard_normal((batch * CONTEXT, width), np.float32) for _ in range(2)]
    return (
        x, norms[0], weight(hidden, hidden), weight(hidden, width), weight(hidden, width), weight(hidden, hidden),
        norms[1], weight(hidden, wide), weight(hidden, wide), weight(wide, hidden),
        np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32), lengths, *caches, np.zeros_like(x),
    )  # fmt: skip


def reference(*given: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The caches and the output, in float64."""
    lengths = given[12][:, 0]
    x, norm_1, wq, wk, wv, wo, norm_2, gate, up, down, cos, sin, _, keys, values, _ = (
        array.astype(np.float64) for array in given
    )

    def rms(rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return rows / np.sqrt((rows**2).mean(axis=1, keepdims=True) + EPSILON) * weight

    def turn(rows: np.ndarray, c: np.ndarray, s: np.ndarray) -> np.ndarray:
        first, second = np.split(rows, 2, axis=1)
        return np.concatenate([first * c - second * s, second * c + first * s], axis=1)

    normal = rms(x, norm_1)
    q, k, v = normal @ wq, normal @ wk, normal @ wv
    mixed = np.zeros_like(x)
    for b, length in enumerate(lengths):
        at = b * CONTEXT + length
        keys[at] = turn(k[b].reshape(SHARED, D), cos[b], sin[b]).ravel()
        values[at] = v[b]
        query = turn(q[b].reshape(HEADS, D), cos[b], sin[b])
        rows = slice(b * CONTEXT, at + 1)
        for h in range(HEADS):
            shared = slice(h // GROUP * D, (h // GROUP + 1) * D)
            scores = query[h] @ keys[rows, shared].T / np.sqrt(D)
            powers = np.exp(scores - scores.max())
            mixed[b, h * D : (h + 1) * D] = powers / powers.sum() @ values[rows, shared]
    residual = mixed @ wo + x
    normal = rms(residual, norm_2)
    linear = normal @ gate
    return keys, values, (linear / (1 + np.exp(-linear)) * (normal @ up)) @ down + residual


if __name__ == "__main__":
    given = arguments()
    wanted = reference(*given)
    decode_layer(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - wanted[-1]).max()))
