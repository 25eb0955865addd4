"""Statements that decide at run time: the same numbers interpreted, natively, and as text for both chips."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.analysis.cores import cores_of
from tilewright.codegen.pto.emulate import launch
from tilewright.codegen.pto.writer import emit_pto
from tilewright.errors import LanguageError
from tilewright.targets import load_target

CHIPS = ("ascend910b", "ascend950")


def everywhere(kernel: Any, *given: Any) -> Any:
    """The last array after the kernel ran on `given` in each way: they agree."""
    at = max(i for i, value in enumerate(given) if isinstance(value, np.ndarray))

    def fresh() -> list[Any]:
        return [value.copy() if isinstance(value, np.ndarray) else value for value in given]

    first = fresh()
    kernel.reference(*first)
    natively = fresh()
    kernel(*natively)
    np.testing.assert_array_equal(natively[at], first[at])
    for machine in CHIPS:
        arguments, target = fresh(), load_target(machine)
        module = emit_pto(kernel.lower(*arguments, target=target), target)
        names = (argument["name"] for argument in module.manifest["arguments"])
        launch(module.manifest, module.texts, dict(zip(names, arguments, strict=False)), sync="auto")
        np.testing.assert_array_equal(arguments[at], first[at])
    return first[at]


def rows_of(*firsts: float) -> Any:
    """Eight columns after the first one, which is given."""
    return np.array([[first, *range(1, 8)] for first in firsts], np.float32)


# --- return inside a loop ---------------------------------------------------------------------------------------------
@pl.jit
def until_large(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(a.shape[0]):
            row = pl.load(a, [i, 0], [1, 8])
            out = pl.store(row, [i, 0], out)
            if pl.read(row, [0, 0]) > 2.0:
                return out
        out = pl.store(pl.load(a, [0, 0], [1, 8]) * 10.0, [0, 0], out)
    return out


@pytest.mark.parametrize(("firsts", "rows"), [((1, 5, 2, 9), 2), ((7, 1, 1), 1), ((1, 2, 0), 3), ((3,), 1)])
def test_a_return_leaves_its_loop(firsts: tuple[float, ...], rows: int) -> None:
    """And what follows the loop is not done; after the last trip it is."""
    a = rows_of(*firsts)
    wanted = np.zeros_like(a)
    wanted[:rows] = a[:rows]
    if max(firsts) <= 2:
        wanted[0] = a[0] * 10
    np.testing.assert_array_equal(everywhere(until_large, a, np.zeros_like(a)), wanted)


@pl.jit
def nested(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(a.shape[0]):
            for j in pl.range(8):
                if pl.tensor.read(a, [i, j]) < 0.0:
                    return out
                if pl.tensor.read(a, [i, j]) > 6.0:
                    break
                out[i, j] = pl.tensor.read(a, [i, j]) * 2.0
        out[0, 0] = 100.0
    return out


@pytest.mark.parametrize("negative", [None, (0, 0), (1, 3), (2, 6)])
def test_a_return_leaves_all_loops_around_it(negative: tuple[int, int] | None) -> None:
    a = rows_of(1, 2, 3)
    if negative is not None:
        a[negative] = -1
    wanted = np.zeros_like(a)
    flat = [(i, j) for i, j in np.ndindex(a.shape) if j < 7]  # the 7 in the last column ends the row
    for i, j in flat[: None if negative is None else flat.index(negative)]:
        wanted[i, j] = a[i, j] * 2
    if negative is None:
        wanted[0, 0] = 100
    np.testing.assert_array_equal(everywhere(nested, a, np.zeros_like(a)), wanted)


@pl.jit
def endless(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        i = 0
        while True:
            out[i, 0] = pl.tensor.read(a, [i, 0]) + 1.0
            i = i + 1
            if i == a.shape[0]:
                return out


def test_a_loop_that_only_a_return_ends() -> None:
    a = rows_of(1, 5, 2)
    wanted = np.zeros_like(a)
    wanted[:, 0] = a[:, 0] + 1
    np.testing.assert_array_equal(everywhere(endless, a, np.zeros_like(a)), wanted)


# --- tuples -----------------------------------------------------------------------------------------------------------
@pl.jit
def turned(a: pl.Tensor, n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.load(a, [0, 0], [2, 8])
        state = ((x, x * 2.0), 0)
        for i in pl.range(n):
            (p, q), count = state
            state = ((q, p + 1.0), count + i)
        if state[1] > 2:
            last = (state[0][0], state[0][1] * 10.0)
        else:
            last = state[0]
        out = pl.store(last[0] + last[1], [0, 0], out)
    return out


@pytest.mark.parametrize("n", [0, 1, 3, 6])
def test_a_tuple_goes_through_loops_and_branches(n: int) -> None:
    """Its elements do, a tuple inside it and a number too."""
    a = rows_of(1, -2)
    p, q, count = a, a * 2, 0
    for i in range(n):
        p, q, count = q, p + 1, count + i
    wanted = p + (q * 10 if count > 2 else q)
    np.testing.assert_array_equal(everywhere(turned, a, n, np.zeros_like(a)), wanted)


@pl.jit
def shrinking(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pair = (pl.load(a, [0, 0], [2, 8]), 1)
        for _ in pl.range(2):
            pair = (pair[0] + 1.0,)
        out = pl.store(pair[0], [0, 0], out)
    return out


def test_a_tuple_that_becomes_shorter_is_refused() -> None:
    a = rows_of(1, 2)
    with pytest.raises(LanguageError, match="'pair' is another kind of thing after a trip of the loop"):
        shrinking.reference(a, np.zeros_like(a))


# --- numbers on chip --------------------------------------------------------------------------------------------------
@pl.jit
def backwards(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        rows = pl.array.create(4, pl.INDEX)
        for i in pl.range(4):
            rows[i] = 3 - i
        for i in pl.range(4):
            row = pl.load(a, [rows[i], 0], [1, 8])
            out = pl.store(row, [i, 0], out)
    return out


def test_an_array_of_indices_says_where_rows_are() -> None:
    """The rows are loaded by the core that keeps the array, though the other one would copy them sooner."""
    a = rows_of(1, 2, 3, 4)
    np.testing.assert_array_equal(everywhere(backwards, a, np.zeros_like(a)), a[::-1])
    program = backwards.lower(a, np.zeros_like(a), target="ascend910b")
    target = load_target("ascend910b")
    assert [cores_of(f, target) for f in program.functions if cores_of(f, target)] == [{"vector"}]


# --- windows ----------------------------------------------------------------------------------------------------------
@pl.jit
def filled_later(a: pl.Tensor, n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        window = pl.slice(a, [4, 8], [0, 0], valid_shape=[n, 8])
        for i in pl.range(1):
            if i == 0:
                out = pl.assemble(out, pl.fillpad(window, pl.PadValue.zero), [0, 0])
    return out


@pl.jit
def filled_elsewhere(a: pl.Tensor, n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor]):
    window = pl.slice(a, [4, 8], [0, 0], valid_shape=[n, 8])
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.assemble(out, pl.fillpad(window, pl.PadValue.zero), [0, 0])
    return out


@pytest.mark.parametrize("n", [1, 3, 4])
@pytest.mark.parametrize("kernel", [filled_later, filled_elsewhere])
def test_a_window_is_filled_in_another_block(kernel: Any, n: int) -> None:
    a = rows_of(1, 2, 3, 4)
    wanted = np.zeros_like(a)
    wanted[:n] = a[:n]
    np.testing.assert_array_equal(everywhere(kernel, a, n, np.full_like(a, 9)), wanted)
