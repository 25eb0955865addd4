"""Extents, distances between rows and offsets that are known only when the kernel runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pto.writing import MACHINES, execute
from run.running import everywhere, incore
from support import exact_ints, poison

import tilewright.language as pl
from tilewright.codegen.pto.writer import emit_pto
from tilewright.execute import interpret
from tilewright.frontend import parse
from tilewright.targets import load_target


def test_distance_between_rows() -> None:
    """``T[32, P]`` with ``P = 128`` given by the call: columns 64 to 127 of row r begin at ``128 r + 64``."""
    text = incore(
        "P: pl.Scalar[pl.INDEX], t: pl.Tensor[[32, P], pl.FP32], out: pl.Out[pl.Tensor[[32, 64], pl.FP32]]",
        """
        x = pl.load(t, [0, 64], [32, 64])
        out = pl.store(x, [0, 0], out)
        return out
        """,
    )
    t = np.arange(32 * 128, dtype=np.float32).reshape(32, 128)
    rows, columns = np.mgrid[0:32, 0:64]
    everywhere(text, [128, t, poison((32, 64))], [(128 * rows + 64 + columns).astype(np.float32)], emulated=False)


@pytest.mark.parametrize("machine", MACHINES)
def test_distance_between_rows_as_text(machine: str) -> None:
    @pl.jit
    def copy(t: pl.Tensor[[32, pl.dynamic("P")], pl.FP32], out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            x = pl.load(t, [0, 64], [32, 64])
            out = pl.store(x, [0, 0], out)
        return out

    t, out = np.arange(32 * 128, dtype=np.float32).reshape(32, 128), poison((32, 64))
    module = emit_pto(copy.lower(t, out, target=machine), load_target(machine))
    np.testing.assert_array_equal(execute(module, [t, out])[1], t[:, 64:])


def test_offset_with_a_negative_part_in_between() -> None:
    """``(n - 20) + 12 + 8`` is n; for n = 4 the first sum is -4."""
    text = incore(
        "n: pl.Scalar[pl.INDEX], a: pl.Tensor[[64, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]",
        """
        first = n - 20
        x = pl.load(a, [first + 12 + 8, 0], [16, 16])
        y = pl.load(a, [(first + 24) // 4 * 4, 0], [16, 16])
        out = pl.store(x + y, [0, 0], out)
        return out
        """,
    )
    a = exact_ints((64, 16))
    everywhere(text, [4, a, poison((16, 16))], [a[4:20] + a[8:24]])


ROWS = """
x = pl.load(a, [0, 0], [64, 16], valid_shape=[n, 16])
total = pl.col_sum(x)
out = pl.store(pl.col_expand_add(x, total), [0, 0], out)
return out
"""
PARAMETERS = "n: pl.Scalar[pl.INDEX], a: pl.Tensor[[64, 16], pl.FP32], out: pl.InOut[pl.Tensor[[64, 16], pl.FP32]]"


def rows_of(n: int, a: Any) -> Any:
    wanted = np.zeros_like(a)
    wanted[:n] = a[:n] + a[:n].sum(axis=0)
    return wanted


def test_every_number_of_rows() -> None:
    program, a = parse(incore(PARAMETERS, ROWS)), exact_ints((64, 16))

    @pl.jit
    def kernel(a: pl.Tensor, out: pl.InOut[pl.Tensor], n: pl.Scalar[pl.INDEX]):
        with pl.at(level=pl.Level.CORE_GROUP):
            x = pl.load(a, [0, 0], [64, 16], valid_shape=[n, 16])
            out = pl.store(pl.col_expand_add(x, pl.col_sum(x)), [0, 0], out)
        return out

    for n in range(1, 65):
        out, native = np.zeros_like(a), np.zeros_like(a)
        interpret(program, [n, a, out])
        kernel(a, native, n)
        np.testing.assert_array_equal(out, rows_of(n, a))
        np.testing.assert_array_equal(native, rows_of(n, a))


@pytest.mark.parametrize("n", [1, 17, 64])
def test_numbers_of_rows_on_every_target(n: int) -> None:
    a = exact_ints((64, 16))
    everywhere(incore(PARAMETERS, ROWS), [n, a, np.zeros_like(a)], [rows_of(n, a)], native=False)


def test_outside_values_make_programs_of_their_own() -> None:
    width = 128

    @pl.jit
    def kernel(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        for i in pl.range(a.shape[1] // width):
            out[:, i * width : i * width + width] = a[:, i * width : i * width + width] + width
        return out

    a, out = exact_ints((4, 256)), poison((4, 256))
    np.testing.assert_array_equal(kernel(a, out), a + 128)
    narrow = kernel.program(a, out)
    width = 256
    np.testing.assert_array_equal(kernel(a, out), a + 256)
    assert kernel.program(a, out) != narrow
    width = 128
    np.testing.assert_array_equal(kernel(a, out), a + 128)
    assert kernel.program(a, out) == narrow


ROWS_OF_ALL = pl.dynamic("rows")


@pl.program
class Raised:
    @pl.function(type=pl.FunctionType.InCore)
    def raise_rows(
        self,
        a: pl.Tensor[[ROWS_OF_ALL, 16], pl.FP32],  # pyright: ignore[reportInvalidTypeForm]
        out: pl.Out[pl.Tensor[[ROWS_OF_ALL, 16], pl.FP32]],  # pyright: ignore[reportInvalidTypeForm]
    ):
        for i in pl.range(pl.tensor.dim(a, 0) // 8):
            x = pl.load(a, [i * 8, 0], [8, 16])
            out = pl.store(x + 1.0, [i * 8, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[ROWS_OF_ALL, 16], pl.FP32],  # pyright: ignore[reportInvalidTypeForm]
        out: pl.Out[pl.Tensor[[ROWS_OF_ALL, 16], pl.FP32]],  # pyright: ignore[reportInvalidTypeForm]
    ):
        out = self.raise_rows(a, out)
        return out


@pytest.mark.parametrize("rows", [8, 24, 64])
def test_a_program_hands_its_extents_to_its_functions(rows: int) -> None:
    a, out = exact_ints((rows, 16)), poison((rows, 16))
    Raised.compile()(rows, a, out)
    np.testing.assert_array_equal(out, a + 1)
    assert parse(str(Raised.program)) == Raised.program
