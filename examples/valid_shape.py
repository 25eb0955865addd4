"""Rows of different length: how much of each block has meaning is known only when the kernel runs."""

import numpy as np

import tilewright.language as pl

BLOCK = 16


@pl.jit
def masked_softmax(x: pl.Tensor, lengths: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Softmax of ``x[16 b : 16 b + 16, :lengths[b, 0]]`` for each block b; the rest of its rows is zero."""
    rows, columns = x.shape
    for block in pl.parallel(0, rows // BLOCK):
        length = pl.read(lengths, [block, 0])
        tile = pl.load(x, [block * BLOCK, 0], [BLOCK, columns], valid_shape=[BLOCK, length])
        powers = pl.exp(pl.row_expand_sub(tile, pl.row_max(tile)))
        part = pl.row_expand_div(powers, pl.row_sum(powers))
        out = pl.store(pl.tile.full([BLOCK, columns], pl.FP32, 0.0), [block * BLOCK, 0], out)
        out = pl.store(part, [block * BLOCK, 0], out)
    return out


def arguments(blocks: int = 6, columns: int = 128) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((blocks * BLOCK, columns), np.float32)
    return x, rng.integers(1, columns + 1, (blocks, 1)).astype(np.int32), np.zeros_like(x)


def reference(x: np.ndarray, lengths: np.ndarray, out: np.ndarray) -> np.ndarray:
    wanted = np.zeros_like(x)
    for block, length in enumerate(lengths[:, 0]):
        part = x[block * BLOCK : (block + 1) * BLOCK, :length]
        powers = np.exp(part - part.max(axis=1, keepdims=True))
        wanted[block * BLOCK : (block + 1) * BLOCK, :length] = powers / powers.sum(axis=1, keepdims=True)
    return wanted


if __name__ == "__main__":
    given = arguments()
    masked_softmax(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
