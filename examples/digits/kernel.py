"""A two-layer network over batches of handwritten digits, as one Tilewright kernel.

Blocks of 64 images go through both layers without leaving the chip where it has a path from one layer to the next.
The last block is shorter: its tiles are as large as the others, and fewer of their rows are valid.
"""

import numpy as np

import tilewright.language as pl

BLOCK = 64
PIXELS = 64
CLASSES = 10


@pl.jit
def classify(x: pl.Tensor, w1: pl.Tensor, b1: pl.Tensor, w2: pl.Tensor, b2: pl.Tensor, scores: pl.Out[pl.Tensor]):
    """``scores[n, 10] = relu(x[n, 64] @ w1 + b1) @ w2 + b2``, float32."""
    images = x.shape[0]
    for start in pl.parallel(0, images, BLOCK):
        rows = pl.min(BLOCK, images - start)
        block = pl.slice(x, [BLOCK, PIXELS], [start, 0], valid_shape=[rows, PIXELS])
        hidden = pl.relu(block @ w1 + b1)
        scores = pl.assemble(scores, hidden @ w2 + b2, [start, 0])
    return scores


def arguments() -> tuple[np.ndarray, ...]:
    """All images, the trained weights, and room for the scores."""
    from train import load_digits, load_weights

    images = load_digits().images
    return (images, *load_weights(), np.zeros((len(images), CLASSES), np.float32))
