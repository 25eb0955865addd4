"""The largest numbers of each row and where they stand: sorted in groups of 32, merged, and the first taken."""

import numpy as np

import tilewright.language as pl

K = 8


@pl.jit
def topk(x: pl.Tensor, values: pl.Out[pl.Tensor], indices: pl.Out[pl.Tensor]):
    """``values[i, :]`` are the 8 largest of ``x[i, :]``, descending; ``indices`` say where.

    x is [rows, columns], float32, of 32 to 128 columns."""
    rows, columns = x.shape
    for i in pl.parallel(rows):
        row = pl.load(x, [i, 0], [1, columns])
        pairs = pl.sort32(row, pl.tile.ci(0, [1, columns]))
        pairs = pl.mrgsort(pairs, block_len=64)  # runs of 32 pairs become runs of 128
        best = pl.gather_mask(pairs, 1)
        where = pl.gather_mask(pairs, 2, output_dtype=pl.INT32)
        values = pl.store(pl.slice(best, [1, K], [0, 0]), [i, 0], values)
        indices = pl.store(pl.slice(where, [1, K], [0, 0]), [i, 0], indices)
    return values, indices


def arguments(rows: int = 17, columns: int = 128) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    x = rng.permuted(np.tile(np.arange(columns, dtype=np.float32), (rows, 1)), axis=1)
    return x, np.zeros((rows, K), np.float32), np.zeros((rows, K), np.int32)


def reference(x: np.ndarray, values: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(-x, axis=1, kind="stable")[:, :K]
    return np.take_along_axis(x, order, axis=1), order.astype(np.int32)


if __name__ == "__main__":
    given = arguments()
    topk(*given)
    wanted = reference(*given)
    print("largest difference from NumPy:", float(np.abs(given[1] - wanted[0]).max()))
