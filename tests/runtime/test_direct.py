"""Calls compared in machine code: the same answers, the same errors and the same refusals as the way through Python."""

from __future__ import annotations

import gc
import math
import threading
from typing import Any, cast

import numpy as np
import pytest
from support import Array, exact_ints

import tilewright.language as pl
from tilewright.errors import OutOfBoundsError
from tilewright.runtime import direct
from tilewright.runtime.bind import MISS
from tilewright.runtime.fast import FastCall
from tilewright.runtime.jit import JitFunction

TAILS = (1, 15, 16, 17, 63, 64, 65, 200)


def add_kernel() -> JitFunction:
    @pl.jit
    def add(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = a + b

    return add


def scale_kernel() -> JitFunction:
    @pl.jit
    def scale(a: pl.Tensor, factor: pl.Scalar[pl.FP32], count: pl.Scalar[pl.INT64], out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = a * factor + pl.cast(count, pl.FP32)
        return out

    return scale


def short_of(kernel: JitFunction, *args: Any) -> FastCall:
    """The short way after enough calls for machine code."""
    for _ in range(3):
        kernel(*args)
    short = cast("Any", kernel._last).short  # pyright: ignore[reportPrivateUsage]
    assert isinstance(short, FastCall)
    assert type(short.function).__name__ == "builtin_function_or_method"
    return short


@pytest.mark.parametrize("n", TAILS)
def test_a_call_in_machine_code_computes_the_same(n: int) -> None:
    add = add_kernel()
    a, b, out = exact_ints((3, n), seed=1), exact_ints((3, n), seed=2), np.zeros((3, n), np.float32)
    short = short_of(add, a, b, out)
    other, there = exact_ints((3, n), seed=3), np.zeros((3, n), np.float32)
    assert short.function(other, b, there) is None
    np.testing.assert_array_equal(there, other + b)
    add(b, other, out)
    np.testing.assert_array_equal(out, other + b)


def test_other_arguments_are_refused_and_nothing_is_done() -> None:
    a, b, out = exact_ints((8, 8), seed=1), exact_ints((8, 8), seed=2), np.zeros((8, 8), np.float32)
    function = short_of(add_kernel(), a, b, out).function
    out[:] = 7
    raw = np.zeros(4 * 64 + 1, np.uint8)
    misaligned = raw[1:].view(np.float32).reshape(8, 8)
    locked = np.zeros((8, 8), np.float32)
    locked.flags.writeable = False
    wide = exact_ints((16, 8), seed=4)
    unlike: list[tuple[Any, ...]] = [
        (),
        (a, b),
        (a, b, out, out),
        (a.astype(np.float16), b, out),
        (a.astype(">f4"), b, out),
        (a.T, b, out),
        (wide[::2], b, out),
        (a[:4], b[:4], out[:4]),
        (a[None], b, out),
        (misaligned, b, out),
        (a, b, misaligned),
        (a, b, locked),
        (a, out, out),
        (out, b, out),
        (a, wide[:8], wide[4:12]),
        (a, 3, out),
        (None, b, out),
        (a.tolist(), b, out),
        (np.ma.masked_array(a), b, out),
    ]
    for args in unlike:
        assert function(*args) is MISS
    np.testing.assert_array_equal(out, np.full((8, 8), 7, np.float32))
    assert function(wide[:8], wide[:8], wide[8:]) is None, "arrays that touch do not overlap"
    np.testing.assert_array_equal(wide[8:], 2 * wide[:8])


def test_numbers_arrive_rounded_as_in_python() -> None:
    a, out = exact_ints((4, 17), seed=1), np.zeros((4, 17), np.float32)
    function = short_of(scale_kernel(), a, 2.0, 3, out).function
    for factor in (0.0, -0.0, 0.1, 1 / 3, 16777217.0, 1e-45, 3.4028234663852886e38, math.inf, math.nan):
        result = function(a, factor, 5, out)
        if math.isinf(factor):
            assert result is MISS
            continue
        assert result is out
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(out, a * np.float32(factor) + np.float32(5))
    assert function(a, 1.0, -(2**24), out) is out
    np.testing.assert_array_equal(out, a - np.float32(2**24))
    for factor, count in ((3.5e38, 1), (1, 1), (True, 1), ("1", 1), (1.0, True), (1.0, 2**63), (1.0, -(2**63) - 1)):
        assert function(a, factor, count, out) is MISS
    assert function(a, 1.0, 1.0, out) is MISS


def test_the_function_keeps_what_it_uses_alive() -> None:
    a, out = exact_ints((4, 17), seed=1), np.zeros((4, 17), np.float32)
    functions = [short_of(add_kernel(), a, a, out).function for _ in range(3)]
    gc.collect()
    for function in functions:
        out[:] = 0
        assert function(a, a, out) is None
        np.testing.assert_array_equal(out, a + a)


def test_several_results_come_back_as_a_tuple() -> None:
    @pl.jit
    def both(a: pl.Tensor, left: pl.Out[pl.Tensor], right: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            left[:] = a + a
            right[:] = a * a
        return right, left

    a, left, right = exact_ints((4, 4), seed=1), np.zeros((4, 4), np.float32), np.zeros((4, 4), np.float32)
    function = short_of(both, a, left, right).function
    results = function(a, left, right)
    for _ in range(1000):
        results = function(a, left, right)
    assert results[0] is right and results[1] is left and len(results) == 2
    np.testing.assert_array_equal(right, a * a)


def test_a_failed_check_is_the_error_that_it_was() -> None:
    @pl.jit
    def pick(a: pl.Tensor, row: pl.Scalar[pl.INT64], out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            tile = pl.load(a, [row, 0], [1, 16])
            pl.store(tile, [0, 0], out)

    a, out = exact_ints((4, 16), seed=1), np.zeros((1, 16), np.float32)
    with pytest.raises(OutOfBoundsError) as first:
        pick(a, 4, out)
    short = short_of(pick, a, 3, out)
    for way in (lambda: pick(a, 4, out), lambda: short((a, 4, out))):
        with pytest.raises(OutOfBoundsError) as later:
            way()
        assert str(later.value) == str(first.value)
    pick(a, 2, out)
    np.testing.assert_array_equal(out, a[2:3])


def test_a_call_while_another_has_the_workspace_goes_through_python() -> None:
    from tilewright.codegen.native import fastcall

    add = add_kernel()
    a, out = exact_ints((4, 16), seed=1), np.zeros((4, 16), np.float32)
    function: Any = short_of(add, a, a, out).function
    table, busy = function.__module__[-1], fastcall.HEAD.index("busy")
    table[busy] = 1
    assert function(a, a, out) is MISS
    add(a, a, out)
    np.testing.assert_array_equal(out, a + a)
    table[busy] = 0
    assert function(a, a, out) is None
    assert table[busy] == 0


def test_threads_share_a_kernel() -> None:
    add, failures = add_kernel(), list[int]()
    arrays = [(exact_ints((64, 64), seed=s), np.zeros((64, 64), np.float32)) for s in range(4)]
    short_of(add, arrays[0][0], arrays[0][0], arrays[0][1])

    def work(number: int) -> None:
        a, out = arrays[number]
        for _ in range(200):
            out[:] = 0
            add(a, a, out)
            if not np.array_equal(out, a + a):
                failures.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_an_interpreter_that_lies_otherwise_takes_the_way_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "is_known_interpreter", lambda: False)
    add = add_kernel()
    a, out = exact_ints((4, 4), seed=1), np.zeros((4, 4), np.float32)
    for _ in range(4):
        add(a, a, out)
    short = cast("Any", add._last).short  # pyright: ignore[reportPrivateUsage]
    assert type(short.function).__name__ == "method"
    np.testing.assert_array_equal(out, a + a)


@pytest.mark.parametrize("name", ["ARRAY_DATA", "ARRAY_RANK", "ARRAY_EXTENTS", "ARRAY_FLAGS", "FLOAT_AT"])
def test_a_field_that_lies_elsewhere_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.codegen.native import fastcall

    assert direct.is_known_interpreter.__wrapped__()
    other = fastcall.ARRAY_STRIDES if name == "ARRAY_EXTENTS" else fastcall.ARRAY_DESCR - 8
    monkeypatch.setattr(fastcall, name, 0 if name == "FLOAT_AT" else other)
    assert not direct.is_known_interpreter.__wrapped__()


def test_outside_values_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    factor: Any = 2.0
    inner: Any = [1.0, 2.0]

    @pl.jit
    def kernel(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = a * factor + a * inner[1]

    a, out = exact_ints((4, 4), seed=1), np.zeros((4, 4), np.float32)
    for factor, second in ((2.0, 2.0),) * 4 + ((5.0, 2.0),) * 4 + ((5.0, 3.0),) * 4:
        inner[1] = second
        kernel(a, out)
        np.testing.assert_array_equal(out, cast("Array", a * factor + a * second))
