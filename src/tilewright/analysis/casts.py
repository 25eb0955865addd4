"""Chains of casts that give what one cast would.

A machine casts some pairs of element types by one instruction. Any other pair is a chain, and a chain may round twice:
0.5000001 is 1 as an integer, but 0.5 as FP16 and then 0. So a chain is used only where every value on the way is exact
until the one rounding that the cast itself does, and exact after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.ir.dtypes import BF16, BOOL, FP8E4M3FN, FP8E5M2, FP16, FP32, DType
from tilewright.targets import Target


@dataclass(frozen=True, slots=True)
class FloatRange:
    """`digits` significant bits; finite values reach from 2**lowest to below 2**highest."""

    digits: int
    lowest: int
    highest: int


FLOATS = {
    FP32: FloatRange(24, -149, 128),
    FP16: FloatRange(11, -24, 16),
    BF16: FloatRange(8, -133, 128),
    FP8E5M2: FloatRange(3, -16, 16),
    FP8E4M3FN: FloatRange(4, -9, 9),
}
"""IEEE 754 and OCP formats, subnormal numbers included."""


@dataclass(frozen=True, slots=True)
class Step:
    """One cast of a chain. `rounds`: it is the one that rounds as the whole cast is asked to; the others are exact."""

    dtype: DType
    rounds: bool


def cast_chain(src: DType, dst: DType, target: Target) -> tuple[Step, ...] | None:
    """The shortest chain of native casts of `target` that gives what one cast of `src` to `dst` gives, for every value
    that `dst` can hold; None when there is none. Of several the one through the widest types."""
    if src is dst:
        return ()
    if target.native_cast(src, dst):
        return (Step(dst, True),)
    exact = _exact_chain(src, dst, target)
    found = [chain for chain in (exact, *_through_integers(src, dst, target)) if chain is not None]
    return min(found, key=lambda chain: (len(chain), -sum(step.dtype.bits for step in chain)), default=None)


def holds(wide: DType, narrow: DType) -> bool:
    """Whether every value of `narrow`, infinities and NaN included, is exactly a value of `wide`."""
    if wide is narrow:
        return True
    if narrow in FLOATS:
        if wide not in FLOATS:
            return False
        a, b = FLOATS[wide], FLOATS[narrow]
        return a.digits >= b.digits and a.lowest <= b.lowest and a.highest >= b.highest and wide is not FP8E4M3FN
    low, high = integer_range(narrow)
    if wide in FLOATS:
        kind = FLOATS[wide]
        return max(-low, high) <= 1 << kind.digits and max(-low, high) < 1 << (kind.highest - 1)
    wide_low, wide_high = integer_range(wide)
    return wide_low <= low and high <= wide_high


def integer_range(dtype: DType) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    if dtype is BOOL:
        return 0, 1
    if dtype.kind == "uint":
        return 0, (1 << dtype.bits) - 1
    return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1


def _path(src: DType, dst: DType, target: Target, passable: Callable[[DType], bool]) -> list[DType] | None:
    """The shortest path of native casts from `src` to `dst` through types that are `passable`; ends `dst`."""
    if src is dst:
        return []
    paths: list[list[DType]] = [[src]]
    seen = {src}
    known = sorted(target.dtypes.held, key=lambda d: (-d.bits, d.name))
    while paths:
        longer: list[list[DType]] = []
        for path in paths:
            if target.native_cast(path[-1], dst):
                return [*path[1:], dst]
            longer += [
                [*path, to] for to in known if to not in seen and passable(to) and target.native_cast(path[-1], to)
            ]
        seen |= {path[-1] for path in longer}
        paths = longer
    return None


def _exact_chain(src: DType, dst: DType, target: Target) -> tuple[Step, ...] | None:
    """Through types that hold every value of `src`: only the last cast rounds."""

    def passable(dtype: DType) -> bool:
        # By definition an integer becomes a float by way of FP32.
        return holds(dtype, src) or (dtype is FP32 and src not in FLOATS and dst in FLOATS)

    path = _path(src, dst, target, passable)
    return None if path is None else tuple(Step(dtype, index == len(path) - 1) for index, dtype in enumerate(path))


def _through_integers(src: DType, dst: DType, target: Target) -> list[tuple[Step, ...]]:
    """From a float to an integer: round to a wider integer, then narrow, exactly for whatever `dst` can hold."""
    if src not in FLOATS or dst in FLOATS or dst is BOOL:
        return []
    found: list[tuple[Step, ...]] = []
    for middle in sorted(target.dtypes.held, key=lambda d: (d.bits, d.name)):
        if not middle.is_integer or middle is dst or not holds(middle, dst):
            continue
        first = _exact_chain(src, middle, target) if not target.native_cast(src, middle) else (Step(middle, True),)
        rest = _path(middle, dst, target, lambda dtype: holds(dtype, dst))
        if first is not None and rest is not None:
            found.append((*first, *(Step(dtype, False) for dtype in rest)))
    return found
