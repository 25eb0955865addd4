"""Arithmetic as the vector unit does it: every result rounded once to its element type; conversions by rounding mode.

Integers wrap around. Conversions to integers saturate unless told not to; conversions to floats overflow to infinity
unless told to saturate.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tilewright.codegen.pto.memory import DTYPES, Array

_LARGEST = {
    "f16": 65504.0,
    "bf16": float.fromhex("0x1.fep127"),
    "f32": float.fromhex("0x1.fffffep127"),
    "f8E4M3FN": 448.0,
    "f8E5M2": 57344.0,
}
Bits = npt.NDArray[np.int64]


def is_float(dtype: str) -> bool:
    """Whether `dtype` is one of the float element types."""
    return dtype.startswith(("f", "bf"))


def widen(values: Array) -> Array:
    """Narrow floats as f32, everything else as it is: what the unit computes in."""
    return values if values.dtype.kind in "iub" or values.dtype == np.float32 else values.astype(np.float32)


def narrow(values: Array, dtype: str) -> Array:
    """`values` rounded half to even, or wrapped, to `dtype`."""
    with np.errstate(all="ignore"):
        return values.astype(DTYPES[dtype], copy=False)


def divide(a: Array, b: Array, dtype: str) -> Array:
    """Quotient; integers toward zero, and 0 where the divisor is 0 (the machine defines nothing there)."""
    with np.errstate(all="ignore"):
        if is_float(dtype):
            return narrow(np.divide(widen(a), widen(b)), dtype)
        wide_a, wide_b = a.astype(np.int64), b.astype(np.int64)
        quotient = np.abs(wide_a) // np.where(wide_b == 0, 1, np.abs(wide_b))
        return narrow(np.where(wide_b == 0, 0, np.sign(wide_a) * np.sign(wide_b) * quotient), dtype)


def convert(values: Array, source: str, target: str, mode: str, saturate: bool | None) -> Array:
    """`values` of element type `source` as `target`, rounded by `mode`; `saturate` None is the machine's habit."""
    with np.errstate(all="ignore"):
        if not is_float(target):
            if is_float(source):
                values = integral(values.astype(np.float64), mode)
            return _to_integer(values, target, saturate is not False)
        if not is_float(source):
            wide = values.astype(np.float64)
            return _to_float(wide, target, mode, bool(saturate))
        if DTYPES[target].itemsize >= DTYPES[source].itemsize and source != target:
            return values.astype(DTYPES[target])
        return _to_float(values.astype(np.float64), target, mode, bool(saturate))


def integral(values: npt.NDArray[np.float64], mode: str) -> npt.NDArray[np.float64]:
    """The integer next to each value by rounding mode."""
    if mode == "FLOOR":
        return np.floor(values)
    if mode == "CEIL":
        return np.ceil(values)
    if mode == "TRUNC":
        return np.trunc(values)
    if mode == "ROUND":
        return np.copysign(np.floor(np.abs(values) + 0.5), values)
    if mode == "ODD":
        down = np.floor(values)
        return np.where((down != values) & (down % 2 == 0), down + 1, down)
    return np.rint(values)


def _to_integer(values: Array, target: str, saturate: bool) -> Array:
    half = 1 << (8 * DTYPES[target].itemsize - 1)
    least, most = -half, half - 1
    if values.dtype.kind == "f":
        wide = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=float(most), neginf=float(least))
        # The largest i64 is no f64: clip below it, then convert.
        top = np.nextafter(2.0**63, 0)
        exact = np.clip(wide, -(2.0**63), top).astype(np.int64)
        exact = np.where(wide >= 2.0**63, np.iinfo(np.int64).max, exact)
    else:
        exact = values.astype(np.int64)
    if saturate:
        exact = np.clip(exact, least, most)
    return exact.astype(DTYPES[target])


def _to_float(wide: npt.NDArray[np.float64], target: str, mode: str, saturate: bool) -> Array:
    dtype = DTYPES[target]
    nearest = wide.astype(dtype)
    if mode not in ("NONE", "RINT", "CAST_RINT"):
        nearest = _directed(wide, nearest, mode)
    if saturate:
        top = _LARGEST[target]
        nearest = np.where(np.isnan(wide), nearest, np.clip(nearest.astype(np.float64), -top, top).astype(dtype))
    return nearest


def _directed(wide: npt.NDArray[np.float64], nearest: Array, mode: str) -> Array:
    """Rounded down and up in magnitude from the nearest value, then one of the two by `mode`."""
    bits = nearest.view(f"i{nearest.dtype.itemsize}").astype(np.int64)
    sign = np.where(np.signbit(wide), -1, 1)
    magnitude = bits & ~(np.int64(1) << (8 * nearest.dtype.itemsize - 1))
    size = np.abs(wide)
    low = np.where(_value(magnitude, nearest) > size, magnitude - 1, magnitude)
    exact = (_value(low, nearest) == size) | ~np.isfinite(wide)
    high = np.where(exact, low, low + 1)
    below, above = _value(low, nearest), _value(high, nearest)
    if mode == "TRUNC":
        chosen = low
    elif mode == "FLOOR":
        chosen = np.where(sign < 0, high, low)
    elif mode == "CEIL":
        chosen = np.where(sign < 0, low, high)
    elif mode == "ODD":
        chosen = np.where(low & 1, low, high)
    else:
        chosen = np.where(size - below >= above - size, high, low)
    result = _value(np.where(exact, low, chosen), nearest) * sign
    return np.where(np.isfinite(wide), result, wide).astype(nearest.dtype)


def _value(magnitude: Bits, like: Array) -> npt.NDArray[np.float64]:
    return magnitude.astype(f"i{like.dtype.itemsize}").view(like.dtype).astype(np.float64)
