"""Statements that decide at run time: the same numbers interpreted, natively, and as text for both chips."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.codegen.pto.emulate import launch
from tilewright.codegen.pto.writer import emit_pto
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
