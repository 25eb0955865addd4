"""Statements that nothing reaches are gone, and what stays means the same."""

from __future__ import annotations

import numpy as np

from tilewright.execute.loops import interpret_loops
from tilewright.ir.buffers import Extern
from tilewright.ir.dtypes import FP32, INDEX
from tilewright.ir.loop_builder import LoopBuilder
from tilewright.ir.loop_level import ALWAYS, LoopFunction
from tilewright.ir.scalar import BinaryKind, Scalar, binary
from tilewright.passes.loop.simplify import simplify


def less(lhs: Scalar, rhs: Scalar) -> Scalar:
    return binary(BinaryKind.LT, lhs, rhs)


def long_winded() -> LoopFunction:
    f = LoopBuilder()
    a, n = f.buffer("A", (16,)), f.scalar("n")
    with f.loop("i", 8) as i:
        with f.when(less(i, 8)):
            k = f.let("k", i * 4 + 2 - i * 4)
            t = f.alloc("t", (k + 1,))
            f.store(t, (k,), 1.0)
            f.store(a, (k + i,), f.load(t, k))
        with f.when(less(20, i)):
            f.store(a, (0,), 2.0)
        with f.loop("z", i, i) as z:
            f.store(a, (z,), 3.0)
        with f.when(less(i, 3)):
            with f.when(less(4, i)):
                f.store(a, (0,), 4.0)
            with f.block("b", where=less(i, 4)):
                f.store(a, (binary(BinaryKind.MIN, i, 2),), 5.0)
        with f.otherwise(), f.block("never", where=less(i, 2)):
            f.store(a, (0,), 6.0)
    with f.repeat(less(1, 0)):
        f.store(a, (0,), 7.0)
    with f.when(less(n, 4)):
        pass
    return f.build()


def short() -> LoopFunction:
    f = LoopBuilder()
    a, _ = f.buffer("A", (16,)), f.scalar("n")
    with f.loop("i", 8) as i:
        t = f.alloc("t", (3,))
        f.store(t, (2,), 1.0)
        f.store(a, (i + 2,), f.load(t, 2))
        with f.when(less(i, 3)), f.block("b", where=ALWAYS):
            f.store(a, (i,), 5.0)
    return f.build()


def test_what_is_never_reached_is_gone() -> None:
    found = simplify(long_winded())
    assert found == short()
    assert simplify(found) is found


def test_what_stays_means_the_same() -> None:
    results: list[list[float]] = []
    for function in (long_winded(), simplify(long_winded())):
        out = np.zeros(16, np.float32)
        interpret_loops(function, [out, 3])
        results.append(out.tolist())
    assert results[0] == results[1] and any(results[0])


def test_a_condition_with_an_effect_is_evaluated() -> None:
    f = LoopBuilder()
    with f.when(binary(BinaryKind.GT, Extern("tick", (), INDEX), 0)):
        pass
    f.evaluate(Extern("tick", (), FP32))
    function = f.build()
    assert simplify(function) is function


def test_a_program_that_is_simple_is_itself() -> None:
    function = short()
    assert simplify(function) is function
