"""The tests' own inputs do what their names say."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from support import TAILS, embed, exact_ints, poisoned, surroundings_intact

ACCUMULATING = [np.float32, np.float16, np.int32, np.float64]
STORED = [
    *ACCUMULATING,
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
    np.int8,
    np.uint8,
    np.bool_,
]


@pytest.mark.parametrize("dtype", ACCUMULATING, ids=lambda d: np.dtype(d).name)
def test_products_of_exact_ints_sum_exactly_in_any_order(dtype: type[np.generic]) -> None:
    a, b = exact_ints((200,), dtype, seed=1), exact_ints((200,), dtype, seed=2)
    total = int((a.astype(np.int64) * b.astype(np.int64)).sum())
    for order in range(5):
        partial = np.zeros((), dtype)
        for i in np.random.default_rng(order).permutation(200):
            partial = (partial + a[i] * b[i]).astype(dtype)
        assert int(partial) == total


@pytest.mark.parametrize("dtype", STORED, ids=lambda d: np.dtype(d).name)
def test_exact_ints_vary_and_are_integers_in_their_type(dtype: type[np.generic]) -> None:
    drawn = exact_ints((max(TAILS),), dtype)
    assert drawn.dtype == np.dtype(dtype)
    assert len(np.unique(drawn.astype(np.float64))) > 1
    assert (drawn.astype(np.float64) == np.rint(drawn.astype(np.float64))).all()


@pytest.mark.parametrize("dtype", STORED, ids=lambda d: np.dtype(d).name)
def test_a_write_past_an_edge_of_a_poisoned_array_is_seen(dtype: type[np.generic]) -> None:
    view = poisoned((3, 17), dtype, seed=3)
    assert (view == exact_ints((3, 17), dtype, seed=3)).all()
    view[...] = exact_ints((3, 17), dtype, seed=4)
    assert surroundings_intact(view)
    assert view.base is not None
    view.base[5, 5 + 17] = 0
    assert not surroundings_intact(view)


def test_reading_past_an_edge_gives_nan() -> None:
    view = embed(np.ones((4, 16), np.float32))
    assert view.base is not None
    assert np.isnan(view.base[5, 5 : 5 + 17].sum())
