"""spaces R19, R23: a chain of casts gives what one cast gives, for every bit pattern that can be tried."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tilewright.analysis.casts import cast_chain, holds
from tilewright.ir.dtypes import BF16, FP16, FP32, INT8, INT32, DType
from tilewright.ops.cast import convert
from tilewright.targets import load_target

DTYPES = (FP32, FP16, BF16, INT8, INT32)
TARGETS = ("ascend910b", "ascend950", "generic")


def patterns(dtype: DType) -> np.ndarray[Any, Any]:
    """Every value of a type of 8 or 16 bits; of a wider one those around every rounding that a narrower one does."""
    kind = np.dtype(dtype.numpy)
    if dtype.bits <= 16:
        return np.arange(1 << dtype.bits, dtype=f"u{dtype.nbytes}").view(kind)
    rng = np.random.default_rng(0)
    if dtype is INT32:
        powers = np.array([s * (1 << p) + d for p in range(31) for d in (-2, -1, 0, 1, 2) for s in (-1, 1)])
        drawn = rng.integers(-(1 << 31), 1 << 31, 200_000)
        return np.concatenate([powers, drawn, np.arange(-70_000, 70_000)]).clip(-(1 << 31), (1 << 31) - 1).astype(kind)
    halves = np.arange(1 << 16, dtype=np.uint32) << 16
    near = np.concatenate([halves + d for d in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF, 0x1000, 0x0FFF, 0x1001)])
    between = np.array([0, 0.5, 0.49999, 0.50001], np.float32)
    integers = (np.arange(-300, 300).astype(np.float32)[:, None] + between).reshape(-1)
    near_integers = np.nextafter(integers, np.float32(np.inf)), np.nextafter(integers, np.float32(-np.inf))
    drawn = rng.integers(0, 1 << 32, 200_000, dtype=np.uint32).view(kind)
    return np.concatenate([near.view(kind), integers, *near_integers, drawn])


def pairs() -> Iterator[tuple[DType, DType]]:
    return ((a, b) for a in DTYPES for b in DTYPES if a is not b)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("src", "dst"), list(pairs()), ids=str)
def test_a_chain_is_the_cast(target: str, src: DType, dst: DType) -> None:
    chain = cast_chain(src, dst, load_target(target))
    if chain is None:
        assert target != "generic"
        return
    values = patterns(src)
    wanted, found = convert(values, dst), values
    for step in chain:
        found = convert(found, step.dtype)
    with np.errstate(invalid="ignore"):
        same = (found == wanted) | ((found != found) & (wanted != wanted))
    assert same.all(), (values[~same][:3], wanted[~same][:3], found[~same][:3], chain)
    assert sum(step.rounds for step in chain) == 1


def test_the_chains_of_the_910b() -> None:
    target = load_target("ascend910b")

    def through(src: DType, dst: DType) -> list[str] | None:
        chain = cast_chain(src, dst, target)
        return None if chain is None else [step.dtype.name for step in chain]

    assert through(FP32, BF16) == ["BF16"]
    assert through(BF16, FP16) == ["FP32", "FP16"]
    assert through(FP16, BF16) == ["FP32", "BF16"]
    assert through(INT8, FP32) == ["FP16", "FP32"]
    assert through(FP32, INT8) == ["INT32", "FP16", "INT8"] or through(FP32, INT8) == ["INT16", "FP16", "INT8"]
    assert through(INT32, INT8) is None  # wraps: no chain through floats does that
    assert through(INT32, BF16) == ["FP32", "BF16"]


def test_only_one_step_of_a_narrowing_to_integers_rounds() -> None:
    chain = cast_chain(FP32, INT8, load_target("ascend910b"))
    assert chain is not None
    assert [step.rounds for step in chain] == [True, False, False]


def test_holding_is_transitive_and_true() -> None:
    for a, b in pairs():
        if not holds(a, b):
            continue
        values = patterns(b)
        there = convert(values, a)
        back = convert(there, b)
        with np.errstate(invalid="ignore"):
            same = (back == values) | ((back != back) & (values != values))
        assert same.all(), (a, b)
    for a, b in pairwise((FP32, BF16)):
        assert holds(a, b) and not holds(b, a)
