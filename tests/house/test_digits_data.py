"""The digits example's stored data and weights are the ones that its README describes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray

FOLDER = Path(__file__).parents[2] / "examples" / "digits"


@pytest.fixture(scope="module")
def train() -> ModuleType:
    spec = importlib.util.spec_from_file_location("digits_train", FOLDER / "train.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_all_images_are_there(train: ModuleType) -> None:
    digits = train.load_digits()
    assert digits.images.shape == (1797, 64) and digits.images.dtype == np.float32
    assert (digits.images.min(), digits.images.max()) == (0, 1)
    assert np.bincount(digits.labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_the_stored_weights_read_digits_that_they_were_not_trained_on(train: ModuleType) -> None:
    known, held_out = train.split(train.load_digits())
    assert (len(known.labels), len(held_out.labels)) == (1438, 359)
    weights = train.load_weights()
    assert [w.shape for w in weights] == [(64, 128), (1, 128), (128, 10), (1, 10)]
    assert {w.dtype for w in weights} == {np.dtype(np.float32)}
    assert train.accuracy(train.numpy_reference(held_out.images, weights), held_out.labels) >= 0.98


def test_gradients_are_the_slopes_of_the_loss(train: ModuleType) -> None:
    """Against central differences in float64, on a handful of entries of each parameter."""
    digits = train.load_digits()
    x: NDArray[np.float64] = digits.images[:32].astype(np.float64)
    labels: NDArray[np.int64] = digits.labels[:32]
    weights = train.Weights(*(w.astype(np.float64) + 0.01 for w in train.start_weights(3)))

    def loss() -> float:
        scores = train.numpy_reference(x, weights)
        share = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        return float(-np.log(share[np.arange(32), labels]).mean())

    parameters: list[NDArray[np.float64]] = list(weights)
    slopes: list[NDArray[np.float64]] = list(train.gradients(x, labels, weights, decay=0.0))
    draw = np.random.default_rng(5)
    for w, slope in zip(parameters, slopes, strict=True):
        for _ in range(5):
            at = tuple(int(draw.integers(int(size))) for size in w.shape)
            kept = w[at]
            w[at] = kept + 1e-6
            above = loss()
            w[at] = kept - 1e-6
            below = loss()
            w[at] = kept
            assert abs((above - below) / 2e-6 - slope[at]) < 1e-6
