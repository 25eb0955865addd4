"""exp, log, sin and cos on samples of bit patterns, exactly: at most 2 units in the last place, edges exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from native.building import Building, compiled, make, unit
from support import Array

from tilewright.codegen.native.llvm import processor_of
from tilewright.ir.op import Op
from tilewright.ops.elementwise import Exp, Log
from tilewright.ops.functions import Cos, Sin
from tilewright.targets import load_target

TARGETS = [name for name in ("generic", "x86_avx2", "x86_avx512", "host") if processor_of(load_target(name)).runnable]
COUNT = 1 << 16


def apply(op: type[Op], target: str, values: Array) -> Array:
    b = Building()
    a, out = b.tensor("a", *values.shape), b.tensor("out", *values.shape, out=True)
    b.store(b.let(make(op, b.load(a))), out)
    kernel = compiled(b.program(), load_target(target))
    found = np.zeros_like(values)
    kernel.run([values, found])
    return found


def samples() -> Array:
    """Every 65,521st bit pattern (a prime, so that all low bits occur), and stretches where results change quickly."""
    patterns = np.arange(0, 2**32, 65521, dtype=np.uint64).astype(np.uint32).view(np.float32)[: COUNT - 1]
    dense = np.linspace(-104.5, 89, COUNT, dtype=np.float32)
    near_one = (np.arange(COUNT, dtype=np.int64) - COUNT // 2 + 0x3F800000).astype(np.uint32).view(np.float32)
    return np.concatenate([patterns, dense, near_one])[None, :]


def error(found: Array, exact: Array) -> float:
    """The largest distance in units in the last place of the exact value rounded to FP32."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        far = np.abs(found.astype(np.float64) - exact) / unit(rounded)
    far[(found == rounded) | (np.isnan(found) & np.isnan(rounded))] = 0
    return float(np.max(np.nan_to_num(far, nan=np.inf)))


@pytest.mark.parametrize("target", TARGETS)
def test_exp_is_within_two_units(target: str) -> None:
    values = samples()
    with np.errstate(all="ignore"):
        assert error(apply(Exp, target, values), np.exp(values.astype(np.float64))) <= 2


@pytest.mark.parametrize("target", TARGETS)
def test_log_is_within_two_units(target: str) -> None:
    values = samples()
    with np.errstate(all="ignore"):
        assert error(apply(Log, target, values), np.log(values.astype(np.float64))) <= 2


def angles() -> Array:
    """Samples of the bit patterns up to 100,000, and the numbers nearest to multiples of pi / 2."""
    patterns = np.arange(0, int(np.float32(1e5).view(np.uint32)), 16381, dtype=np.uint32).view(np.float32)
    near = (np.arange(1, 63661) * (np.longdouble(np.pi) + np.longdouble(1.2246467991473532e-16)) / 2).astype(np.float32)
    return np.concatenate([patterns, -patterns, near, np.nextafter(near, np.float32(0))])[None, :]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("op", "exact"), [(Sin, np.sin), (Cos, np.cos)])
def test_sine_and_cosine_are_within_two_units(target: str, op: type[Op], exact: Any) -> None:
    values = angles()
    assert error(apply(op, target, values), exact(values.astype(np.longdouble)).astype(np.float64)) <= 2


@pytest.mark.parametrize(("op", "exact"), [(Sin, np.sin), (Cos, np.cos)])
def test_beyond_it_the_error_is_as_stated(op: type[Op], exact: Any) -> None:
    values = np.linspace(1e5, 1e6, COUNT, dtype=np.float32)[None, :]
    assert np.max(np.abs(apply(op, "host", values) - exact(values.astype(np.float64)))) <= 0.04


@pytest.mark.parametrize("target", TARGETS)
def test_edges_are_exact(target: str) -> None:
    infinity, nan = np.inf, np.nan
    given = np.array([[0.0, -0.0, infinity, -infinity, nan, 200.0, -200.0, 88.8, -104.0, 1e-40]], np.float32)
    np.testing.assert_array_equal(
        apply(Exp, target, given), np.array([[1, 1, infinity, 0, nan, infinity, 0, infinity, 0, 1]], np.float32)
    )
    given = np.array([[1.0, 0.0, -0.0, infinity, -infinity, nan, -1.0, -1e-40]], np.float32)
    np.testing.assert_array_equal(
        apply(Log, target, given), np.array([[0, -infinity, -infinity, infinity, nan, nan, nan, nan]], np.float32)
    )


@pytest.mark.parametrize("target", TARGETS)
def test_powers_become_denormal_not_zero(target: str) -> None:
    given = np.linspace(-103, -87, 512, dtype=np.float32)[None, :]
    found = apply(Exp, target, given)
    exact = np.exp(given.astype(np.float64))
    assert np.all(found > 0)
    assert np.all(np.abs(found - exact) <= 1.01 * 2.0**-149 + 2 * 2.0**-24 * exact)
