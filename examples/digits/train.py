"""Train the two-layer network that the digits example runs, with NumPy alone.

The example needs real weights and a reference to compare with, not a training framework: a few epochs of Adam over
1,438 images take a second. The split, the start values and the order of the batches come from fixed seeds. The last
bits of the result may still differ between machines, since BLAS libraries add in different orders; `weights.npz`
beside this file is what the example uses, and this script is how it was made:

    python examples/digits/train.py           # print the accuracy of the stored weights
    python examples/digits/train.py --write   # train again and replace them
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

HERE = Path(__file__).resolve().parent
PIXELS, HIDDEN, CLASSES = 64, 128, 10
BRIGHTEST = 16.0
"""The largest pixel value in the data; dividing by it gives inputs between 0 and 1, exactly (a power of two)."""


class Digits(NamedTuple):
    """`images[n, 64]` between 0 and 1, row by row of 8 × 8; `labels[n]` between 0 and 9."""

    images: Floats
    labels: NDArray[np.int64]


class Weights(NamedTuple):
    """`w1[64, 128]`, `b1[1, 128]`, `w2[128, 10]`, `b2[1, 10]`, all float32."""

    w1: Floats
    b1: Floats
    w2: Floats
    b2: Floats


def load_digits(path: Path = HERE / "digits.npz") -> Digits:
    """All 1,797 images with their labels."""
    with np.load(path) as stored:
        return Digits(stored["images"].astype(np.float32) / np.float32(BRIGHTEST), stored["labels"].astype(np.int64))


def load_weights(path: Path = HERE / "weights.npz") -> Weights:
    """The stored weights."""
    with np.load(path) as stored:
        return Weights(*(stored[name] for name in Weights._fields))


def split(digits: Digits, seed: int = 2024) -> tuple[Digits, Digits]:
    """A shuffled fifth (359 images) is held out and never trained on; returns (trained on, held out)."""
    order = np.random.default_rng(seed).permutation(len(digits.labels))
    held_out, kept = np.split(order, [len(order) // 5])
    return Digits(digits.images[kept], digits.labels[kept]), Digits(digits.images[held_out], digits.labels[held_out])


def numpy_reference(x: Floats, weights: Weights) -> Floats:
    """The scores `[n, 10]` of images `x[n, 64]`: what every other way of running the network is compared with."""
    hidden = np.maximum(x @ weights.w1 + weights.b1, np.float32(0))
    return hidden @ weights.w2 + weights.b2


def accuracy(scores: Floats, labels: NDArray[np.int64]) -> float:
    """The share of images whose highest score is at their label."""
    return float((scores.argmax(axis=1) == labels).mean())


def gradients(x: Floats, labels: NDArray[np.int64], weights: Weights, decay: float) -> Weights:
    """Of the mean cross entropy over a batch, plus `decay` times half the squared matrices."""
    hidden = np.maximum(x @ weights.w1 + weights.b1, np.float32(0))
    scores = hidden @ weights.w2 + weights.b2
    share = np.exp(scores - scores.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    share[np.arange(len(labels)), labels] -= 1
    share /= np.float32(len(labels))
    back = (share @ weights.w2.T) * (hidden > 0)
    return Weights(
        x.T @ back + np.float32(decay) * weights.w1,
        back.sum(axis=0, keepdims=True),
        hidden.T @ share + np.float32(decay) * weights.w2,
        share.sum(axis=0, keepdims=True),
    )


def start_weights(seed: int) -> Weights:
    """He initialisation: variance 2 ÷ inputs for the matrices, zero for the biases."""
    draw = np.random.default_rng(seed)
    w1 = draw.normal(0.0, np.sqrt(2 / PIXELS), (PIXELS, HIDDEN)).astype(np.float32)
    w2 = draw.normal(0.0, np.sqrt(2 / HIDDEN), (HIDDEN, CLASSES)).astype(np.float32)
    return Weights(w1, np.zeros((1, HIDDEN), np.float32), w2, np.zeros((1, CLASSES), np.float32))


def train(digits: Digits, epochs: int = 40, batch: int = 32, rate: float = 2e-3, seed: int = 7) -> Weights:
    """Adam with a rate that falls linearly to zero and a weight decay of 1e-4."""
    weights = start_weights(seed)
    first = [np.zeros_like(w) for w in weights]
    second = [np.zeros_like(w) for w in weights]
    draw = np.random.default_rng(seed + 1)
    per_epoch = -(-len(digits.labels) // batch)
    steps = epochs * per_epoch
    for step in range(1, steps + 1):
        if (step - 1) % per_epoch == 0:
            order = draw.permutation(len(digits.labels))
        at = (step - 1) % per_epoch * batch
        chosen = order[at : at + batch]
        slope = gradients(digits.images[chosen], digits.labels[chosen], weights, decay=1e-4)
        now = rate * (1 - (step - 1) / steps)
        for i, (w, g) in enumerate(zip(weights, slope, strict=True)):
            first[i] += np.float32(0.1) * (g - first[i])
            second[i] += np.float32(0.001) * (g * g - second[i])
            mean, spread = first[i] / np.float32(1 - 0.9**step), second[i] / np.float32(1 - 0.999**step)
            w -= np.float32(now) * mean / (np.sqrt(spread) + np.float32(1e-8))
    return weights


def main() -> None:
    """Report the accuracy of the weights, after training them again when asked to."""
    parser = argparse.ArgumentParser(description="train the digits network, or report its accuracy")
    parser.add_argument("--write", action="store_true", help="train again and replace weights.npz")
    write = bool(parser.parse_args().write)
    digits = load_digits()
    known, held_out = split(digits)
    if write:
        np.savez_compressed(HERE / "weights.npz", **train(known)._asdict())
    weights = load_weights()
    for name, part in (("trained on", known), ("held out", held_out), ("all", digits)):
        share = accuracy(numpy_reference(part.images, weights), part.labels)
        print(f"{name:<11}{len(part.labels):>5} images  {share:.2%} right")


if __name__ == "__main__":
    main()
