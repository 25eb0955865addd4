"""Rows of a table, picked by token: an embedding."""

import numpy as np

import tilewright.language as pl


@pl.jit
def embedding(table: pl.Tensor, tokens: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``out[i, :] = table[tokens[i, 0], :]``; tokens are [rows, 1], int32."""
    rows, columns = out.shape
    for i in pl.parallel(rows):
        token = pl.read(tokens, [i, 0])
        out = pl.store(pl.load(table, [token, 0], [1, columns]), [i, 0], out)
    return out


def arguments(rows: int = 65, columns: int = 128, vocabulary: int = 300) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    table = rng.standard_normal((vocabulary, columns), np.float32)
    return table, rng.integers(0, vocabulary, (rows, 1)).astype(np.int32), np.zeros((rows, columns), np.float32)


def reference(table: np.ndarray, tokens: np.ndarray, out: np.ndarray) -> np.ndarray:
    return table[tokens[:, 0]]


if __name__ == "__main__":
    given = arguments()
    embedding(*given)
    print("largest difference from NumPy:", float(np.abs(given[-1] - reference(*given)).max()))
