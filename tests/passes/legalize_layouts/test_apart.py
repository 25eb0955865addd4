"""Vectors that meet a product and an operation that wants them as vectors; tiles that join with others' padding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from building import Builder
from passes.checking import legalized

from tilewright.compiler import lower
from tilewright.execute.interpreter import interpret
from tilewright.ir.dtypes import FP16, FP32, INT32
from tilewright.ir.layout import Pad
from tilewright.ir.scalar import BinaryKind, Value, binary, constant, minimum
from tilewright.ops.broadcast import ColExpandAdd, RowExpandMin, RowExpandSub
from tilewright.ops.cast import Cast
from tilewright.ops.elementwise import Add, Maximum, Mul
from tilewright.ops.matmul import Matmul
from tilewright.ops.pad import Fillpad
from tilewright.ops.reduce import ColMax, RowMax
from tilewright.ops.shape import SetValidShape
from tilewright.targets import load_target

ASCEND = ("ascend910b", "ascend950")
SCRATCHPAD = str(Path(__file__).parents[3] / "examples/targets/scratchpad.toml")
ALL = (*ASCEND, SCRATCHPAD, "x86_amx", "x86_avx512", "generic")


@pytest.mark.parametrize("target", ALL)
def test_one_element_that_is_multiplied_and_a_vector(target: str) -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (1, 1), FP32))
    r = b.let("r", Matmul(x, x))
    out, other = b.tensor("out", (1, 1), out=True), b.tensor("other", (1, 1), out=True)
    legalized(b.program(b.store(r, out), b.store(b.let("s", RowExpandMin(x, r)), other)), target)


@pytest.mark.parametrize("target", ALL)
@pytest.mark.parametrize("size", (1, 15, 16, 17, 65))
def test_a_column_that_a_product_reads_too(target: str, size: int) -> None:
    b = Builder()
    v, w = b.load("v", b.tensor("a", (size, 1), FP16)), b.load("w", b.tensor("b", (1, 16), FP16))
    x = b.load("x", b.tensor("c", (size, 16), FP16))
    out, other = b.tensor("out", (size, 16), out=True), b.tensor("other", (size, 16), FP16, out=True)
    twice = b.let("twice", Mul(v, constant(2.0, FP16)))
    s = b.let("s", RowExpandSub(x, twice))
    legalized(b.program(b.store(b.let("r", Matmul(twice, w)), out), b.store(s, other)), target)


@pytest.mark.parametrize("target", ALL)
def test_a_product_that_is_read_as_a_row(target: str) -> None:
    b = Builder()
    v, w = b.load("v", b.tensor("a", (1, 33), FP16)), b.load("w", b.tensor("b", (33, 17), FP16))
    x = b.load("x", b.tensor("c", (5, 17), FP32))
    out = b.tensor("out", (5, 17), out=True)
    legalized(b.program(b.store(b.let("s", ColExpandAdd(x, b.let("r", Matmul(v, w)))), out)), target)


@pytest.mark.parametrize("target", ALL)
def test_a_row_of_which_it_is_known_at_run_time_whether_it_is_there(target: str) -> None:
    b = Builder()
    n, w = b.index("n"), b.load("w", b.tensor("b", (17, 17), FP32))
    v = b.load("v", b.tensor("a", (1, 17), FP32), valid_shape=(minimum(n, 1), 17))
    out, other = b.tensor("out", (17, 17), out=True), b.tensor("other", (1, 17), inout=True)
    s = b.let("s", ColExpandAdd(w, v))
    legalized(b.program(b.store(b.let("r", Matmul(v, w)), other), b.store(s, out)), target, [3])


@pytest.mark.parametrize("target", ALL)
def test_maxima_that_a_product_reads(target: str) -> None:
    b = Builder()
    x, w = b.load("x", b.tensor("a", (17, 24), FP16)), b.load("w", b.tensor("b", (1, 16), FP16))
    tall, out = b.let("tall", RowMax(x)), b.tensor("out", (17, 16), out=True)
    y, other = b.load("y", b.tensor("c", (24, 16), FP16)), b.tensor("other", (1, 16), out=True)
    wide = b.let("wide", ColMax(x))
    first, second = b.let("r", Matmul(tall, w)), b.let("s", Matmul(wide, y))
    legalized(b.program(b.store(first, out), b.store(second, other)), target)


@pytest.mark.parametrize("target", ASCEND)
def test_the_maxima_of_one_row_and_of_its_columns(target: str) -> None:
    """A single maximum is a column of a whole box, and so are the rows of what it is taken from."""
    b = Builder()
    x = b.load("x", b.tensor("a", (1, 32), FP32))
    out, other = b.tensor("out", (1, 32), out=True), b.tensor("other", (1, 1), out=True)
    legalized(
        b.program(
            b.store(b.let("s", Add(b.let("c", ColMax(x)), x)), out), b.store(b.let("m", RowMax(x)), other)
        ),
        target,
    )  # fmt: skip


@pytest.mark.parametrize("target", ALL)
def test_a_filled_tile_grows_with_what_it_is_filled_from(target: str) -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (15, 15), INT32), valid_shape=(14, 15))
    y = b.let("y", Add(b.let("filled", Fillpad(x)), b.let("turned", Cast(b.let("h", Cast(x, FP16)), INT32))))
    out, most = b.tensor("out", (14, 15), INT32, out=True), b.tensor("most", (14, 1), INT32, out=True)
    legalized(b.program(b.store(y, out), b.store(b.let("m", RowMax(x)), most)), target)


# --- padding where paths join -------------------------------------------------------------------------------------
@pytest.mark.parametrize("target", ALL)
def test_a_padded_operand_joins_with_a_computed_tile(target: str) -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (5, 5), FP16))
    n = b.index("n")
    y = b.let("y", Maximum(x, x))
    out, other = b.tensor("out", (5, 5), out=True), b.tensor("other", (5, 5), FP16, out=True)
    (joined,) = b.branch(binary(BinaryKind.GT, n, 1), lambda: (y,), lambda: (x,))
    program = b.program(b.store(b.let("r", Matmul(x, x)), out), b.store(joined, other))
    legalized(program, target, [2])


@pytest.mark.parametrize("target", ALL)
def test_a_loop_that_starts_with_a_padded_tile(target: str) -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (5, 5), FP16))
    y = b.let("y", Maximum(x, x))
    out, other = b.tensor("out", (5, 5), out=True), b.tensor("other", (5, 5), FP16, out=True)

    def body(k: Value, first: Value, second: Value) -> tuple[Value, ...]:
        return second, b.let("narrow", SetValidShape(first, 5, 5))

    one, _ = b.loop(3, (x, y), body)
    legalized(b.program(b.store(b.let("r", Matmul(x, x)), out), b.store(one, other)), target)


@pytest.mark.parametrize("target", ALL)
def test_a_cast_that_changes_nothing_promises_nothing_of_the_padding(target: str) -> None:
    """The tile is among zeros, its cast to the dtype that it has is not; they become one value."""
    b = Builder()
    x = b.load("x", b.tensor("a", (5, 15)), valid_shape=(4, 13), pad_value=Pad.ZERO)
    n, same = b.index("n"), b.let("same", Cast(x, FP32))
    out = b.tensor("out", (4, 13), out=True)
    other = b.let("other", Maximum(x, x))
    (joined,) = b.branch(binary(BinaryKind.GT, n, 1), lambda: (same,), lambda: (other,))
    legalized(b.program(b.store(joined, out)), target, [2])


def test_the_numbers_of_a_product_that_meets_its_own_operand() -> None:
    """Down to addresses, on every machine; the interpreter runs what is placed."""
    b = Builder()
    x = b.load("x", b.tensor("a", (1, 1), FP32))
    r = b.let("r", Matmul(x, x))
    program = b.program(b.store(b.let("s", RowExpandSub(x, r)), b.tensor("out", (1, 1), out=True)))
    for name in ALL:
        out = np.zeros((1, 1), np.float32)
        interpret(lower(program, load_target(name)), [np.full((1, 1), 3, np.float32), out])
        assert out[0, 0] == -6, name
