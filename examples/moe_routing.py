"""Which experts each token goes to: a softmax over their scores, the two largest, and weights that add up to 1."""

import numpy as np

import tilewright.language as pl

EXPERTS, K = 32, 2


@pl.jit
def route(x: pl.Tensor, router: pl.Tensor, weights: pl.Out[pl.Tensor], experts: pl.Out[pl.Tensor]):
    """x is [tokens, hidden], router [hidden, 32]; weights and experts are [tokens, 2], float32 and int32."""
    tokens = x.shape[0]
    with pl.at(level=pl.Level.CORE_GROUP):
        scores = pl.softmax(x @ router)
    for i in pl.parallel(tokens):
        row = pl.load(scores, [i, 0], [1, EXPERTS])
        pairs = pl.sort32(row, pl.tile.ci(0, [1, EXPERTS]))
        best = pl.slice(pl.gather_mask(pairs, 1), [1, K], [0, 0])
        where = pl.slice(pl.gather_mask(pairs, 2, output_dtype=pl.INT32), [1, K], [0, 0])
        weights = pl.store(pl.row_expand_div(best, pl.row_sum(best)), [i, 0], weights)
        experts = pl.store(where, [i, 0], experts)
    return weights, experts


def arguments(tokens: int = 17, hidden: int = 64) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    x, router = (rng.integers(-4, 5, shape).astype(np.float32) / 8 for shape in ((tokens, hidden), (hidden, EXPERTS)))
    return x, router, np.zeros((tokens, K), np.float32), np.zeros((tokens, K), np.int32)


def reference(
    x: np.ndarray, router: np.ndarray, weights: np.ndarray, experts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    scores = x @ router
    order = np.argsort(-scores, axis=1, kind="stable")[:, :K]
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    best = np.take_along_axis(powers, order, axis=1)
    return best / best.sum(axis=1, keepdims=True), order.astype(np.int32)


if __name__ == "__main__":
    given = arguments()
    route(*given)
    print("largest difference from NumPy:", float(np.abs(given[-2] - reference(*given)[0]).max()))
