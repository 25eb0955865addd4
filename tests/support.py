"""Inputs for tests: numbers whose sums are exact in any order, and arrays with poison around them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]

TAILS = (1, 15, 16, 17, 63, 64, 65, 200)
"""Sizes around the edges of boxes and tiles."""

SUMMED = 256
"""How many products of two `exact_ints` add up exactly, whatever the order: more than the largest of `TAILS`."""


def exact_bound(dtype: DTypeLike) -> int:
    """The largest magnitude `b` at which `SUMMED` products of up to `b * b` have an exact sum in `dtype`.

    A float with `p` significant bits holds every integer up to `2 ** p`. bfloat16 (8 bits) and the 8-bit floats,
    whose matmuls accumulate in float32, get 1. Integers wrap around, which no order can change; they get 4.
    """
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        return 4
    if kind.kind == "b":
        return 1
    mantissa = int(ml_dtypes.finfo(kind).nmant)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    exact_up_to = 2 ** (mantissa + 1)
    return int(min(8, max(1, (exact_up_to // SUMMED) ** 0.5)))


def exact_ints(shape: tuple[int, ...], dtype: DTypeLike = np.float32, seed: int = 0) -> Array:
    """Small integers of type `dtype`, never all alike; sums and products of them need no tolerance."""
    bound = exact_bound(dtype)
    low = 0 if np.dtype(dtype).kind in "ub" else -bound
    return np.random.default_rng(seed).integers(low, bound + 1, shape).astype(dtype)


def poison(shape: tuple[int, ...], dtype: DTypeLike = np.float32) -> Array:
    """An array that no right kernel reads: NaN in floats, 0x80… in integers, `True` in booleans."""
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        return np.full(shape, np.array(1 << (8 * kind.itemsize - 1), np.uint64)).astype(f"u{kind.itemsize}").view(kind)
    return np.full(shape, True if kind.kind == "b" else np.nan).astype(kind)


def embed(values: Array, margin: int = 5) -> Array:
    """A view equal to `values` in the middle of a larger poisoned array, `margin` elements away from each edge.

    The view is not contiguous: a kernel that ignores strides, or reads past an edge, meets the poison.
    """
    around = poison(tuple(size + 2 * margin for size in values.shape), values.dtype)
    view = around[tuple(slice(margin, margin + size) for size in values.shape)]
    view[...] = values
    return view


def poisoned(shape: tuple[int, ...], dtype: DTypeLike = np.float32, seed: int = 0) -> Array:
    """`exact_ints` in the middle of a larger poisoned array."""
    return embed(exact_ints(shape, dtype, seed))


def surroundings_intact(view: Array, margin: int = 5) -> bool:
    """Whether everything around a view made by `embed` still is poison, bit for bit: nothing wrote past an edge."""
    around = view.base
    assert around is not None, "not a view made by `embed`"
    copy = around.copy()
    copy[tuple(slice(margin, margin + size) for size in view.shape)] = poison(view.shape, view.dtype)
    return copy.tobytes() == poison(copy.shape, copy.dtype).tobytes()
