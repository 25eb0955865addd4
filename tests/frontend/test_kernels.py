"""Kernels in Python: what they read from outside, how they call each other, how arguments decide what is open."""

from __future__ import annotations

import math
from enum import Enum
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.errors import ArgumentError, CallError, LanguageError, NonConstantShapeError, ReturnError
from tilewright.frontend import MISSING, DynamicSymbol, KernelSource, parse, read_program
from tilewright.ir.dtypes import BF16, FP32, INDEX
from tilewright.ir.function import Direction, FunctionKind, Program
from tilewright.ir.nodes import Call
from tilewright.ir.types import ScalarType, TensorType
from tilewright.ir.verify import verify


def tensor(*shape: int, dtype: Any = FP32) -> TensorType:
    return TensorType(shape, dtype)


def read(kernel: Any, *arguments: object) -> Program:
    """The program of a kernel of this file; it verifies, and its text reads back."""
    source = kernel if isinstance(kernel, KernelSource) else kernel.source
    program = read_program(source, list(arguments) if arguments else None)
    verify(program)
    assert parse(str(program)) == program, str(program)
    return program


def incore(function: Any) -> KernelSource:
    return KernelSource.from_function(function, FunctionKind.INCORE)


ROWS = 16
SCALE = np.float32(0.5)


class Mode(Enum):
    FAST = 3


@pl.jit.incore
def add_rows(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor], count: int = 4):
    for i in pl.range(count):
        a = pl.load(x, [i * ROWS, 0], [ROWS, 64])
        b = pl.load(y, [i * ROWS, 0], [ROWS, 64])
        pl.store(a + b, [i * ROWS, 0], out)


@pl.jit.inline
def scaled(x: pl.Tensor, factor: Any) -> Any:
    return x * factor


@pl.jit
def chain(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    between = pl.create_tensor([64, 64], pl.FP32)
    add_rows(x, y, between)
    out = add_rows(between, y, out)
    return scaled(between, SCALE)


def test_calls_specialise_and_rebind_what_they_write() -> None:
    program = read(chain, tensor(64, 64), tensor(64, 64), tensor(64, 64))
    assert [f.name for f in program.functions] == ["add_rows", "scaled", "chain"]
    assert program.function("scaled").kind is FunctionKind.INLINE
    calls = [stmt for stmt in program.main.walk() if isinstance(stmt, Call)]
    assert [call.callee for call in calls] == ["add_rows", "add_rows", "scaled"]
    first, second, third = calls
    assert second.args[0] is first.targets[0] and third.args[0] is first.targets[0]
    assert program.main.attr("implicit_outputs") == 1


def test_each_set_of_types_and_constants_is_a_function() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, y: pl.Tensor):
        return scaled(x, 2), scaled(y, 2), scaled(x, 3), scaled(x, 2)

    program = read(kernel, tensor(8, 8), tensor(8, 16))
    assert [f.name for f in program.functions] == ["scaled", "scaled_1", "scaled_2", "kernel"]


def test_names_read_from_outside_are_the_cache_key() -> None:
    width, table = 8, [1, 2]

    @pl.jit
    def kernel(x: pl.Tensor):
        return x[0:width, :] * table[1]

    source = kernel.source
    assert source.reads() == ()
    first = read(kernel, tensor(16, 16))
    assert [name for name, _ in source.reads()] == ["table", "width"]
    before = source.reads()
    width = 4
    assert source.reads() != before and read(kernel, tensor(16, 16)) != first


def test_module_constants_enums_and_numpy_scalars() -> None:
    @pl.jit
    def kernel(x: pl.Tensor):
        return (x * math.pi + SCALE) * Mode.FAST.value if Mode.FAST.value == 3 else x

    program = read(kernel, tensor(8, 8))
    assert "3.14159" in str(program) and "0.5" in str(program)
    assert {"SCALE", "math.pi", "Mode"} <= dict(kernel.source.reads()).keys()


def test_reading_a_kernel_runs_nothing() -> None:
    def explode() -> None:
        raise AssertionError("this must not run")

    @pl.jit
    def kernel(x: pl.Tensor):
        explode()
        return x

    with pytest.raises(LanguageError, match="'explode' is a Python object that a kernel cannot read"):
        read(kernel, tensor(8, 8))


def test_constants_vanish_and_run_time_scalars_stay() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, n: int, s: pl.Scalar[pl.FP32], flag: Any, out: pl.Out[pl.Tensor]):
        out[0:n, :] = x[0:n, :] * s if flag else x[0:n, :]

    source = kernel.source
    kinds = [(p.name, p.kind, p.direction, p.default) for p in source.parameters]
    assert kinds[1:4] == [
        ("n", "constant", Direction.IN, MISSING),
        ("s", "scalar", Direction.IN, MISSING),
        ("flag", "any", Direction.IN, MISSING),
    ]
    assert source.parameters[2].dtype is FP32 and source.parameters[4].direction is Direction.OUT
    program = read(kernel, tensor(8, 8), 4, ScalarType(FP32), True, tensor(8, 8))
    assert [p.value.name for p in program.main.params] == ["x", "s", "out"]


def test_dynamic_extents_are_bound_and_checked() -> None:
    n = DynamicSymbol("n")

    def kernel(x: pl.Tensor[[n, 64], pl.FP32], y: pl.Tensor[[n, 64], pl.FP32], out: pl.Out[pl.Tensor]):
        out[0:n, :] = x + y

    assert "[200, 64]" in str(read(incore(kernel), tensor(200, 64), tensor(200, 64), tensor(200, 64)))
    with pytest.raises(ArgumentError, match="argument 'y' is not what kernel kernel declares"):
        read(incore(kernel), tensor(200, 64), tensor(100, 64), tensor(200, 64))


def test_dynamic_extents_without_arguments_are_parameters() -> None:
    n = DynamicSymbol("n")

    def kernel(x: pl.Tensor[[n, 64], pl.FP32], out: pl.Out[pl.Tensor[[n, 64], pl.FP32]]):
        out[:] = x + 1.0

    program = read(incore(kernel))
    assert [p.value.name for p in program.main.params] == ["n", "x", "out"]
    assert program.main.params[0].value.type is ScalarType(INDEX)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((tensor(8, 8), tensor(8, 8, dtype=BF16)), ArgumentError, "argument 'y'"),
        ((tensor(8, 8), tensor(8, 9)), ArgumentError, "argument 'y'"),
        ((tensor(8, 8), 3), ArgumentError, "argument 'y'"),
        ((tensor(8, 8),), ArgumentError, "takes 2 arguments"),
        ((None, None), NonConstantShapeError, "parameter 'x' does not say"),
    ],
)
def test_arguments_are_held_to_annotations(arguments: Any, error: type[Exception], message: str) -> None:
    @pl.jit
    def kernel(x: pl.Tensor, y: pl.Tensor[[8, 8], pl.FP32]):
        return x + y

    with pytest.raises(error, match=message):
        read_program(kernel.source, arguments)


def test_wrong_calls_are_refused() -> None:
    @pl.jit
    def too_few(x: pl.Tensor):
        return scaled(x)

    @pl.jit
    def unknown(x: pl.Tensor):
        return scaled(x, fraction=2)

    @pl.jit
    def itself(x: pl.Tensor):
        return itself(x)

    for kernel, error, message in (
        (too_few, CallError, "lacks the argument 'factor'"),
        (unknown, CallError, "no argument 'fraction'"),
        (itself, LanguageError, "calls itself"),
    ):
        with pytest.raises(error, match=message):
            read(kernel, tensor(8, 8))


def test_declared_results_are_checked() -> None:
    @pl.jit
    def missing(x: pl.Tensor) -> pl.Tensor:  # pyright: ignore[reportReturnType]
        pl.static_assert(x.shape[0] == 8)

    @pl.jit
    def pair(x: pl.Tensor) -> tuple[pl.Tensor, pl.Tensor]:
        return x + 1.0

    for kernel in (missing, pair):
        with pytest.raises(ReturnError, match="declares"):
            read(kernel, tensor(8, 8))


def test_a_program_class_reads_like_its_text() -> None:
    @pl.program
    class Double:
        @pl.function(type=pl.FunctionType.InCore)
        def twice(self, x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
            tile = pl.load(x, [0, 0], [16, 64])
            out = pl.store(tile * 2.0, [0, 0], out)
            return out

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
            out = self.twice(x, out)
            return out

    program = read(Double)
    assert program.entry == "main" and [f.name for f in program.functions] == ["twice", "main"]
    assert program.main.kind is FunctionKind.ORCHESTRATION


def test_text_of_jit_functions() -> None:
    text = dedent("""
        import tilewright.language as pl

        N = 16

        @pl.jit.incore
        def body(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            t = pl.load(x, [0, 0], [N, 64])
            pl.store(t, [0, 0], out)

        @pl.jit
        def entry(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
            body(x, out)
    """)
    program = parse(text)
    verify(program)
    assert program.entry == "entry" and parse(str(program)) == program


def test_spans_are_those_of_the_file() -> None:
    program = read(chain, tensor(64, 64), tensor(64, 64), tensor(64, 64))
    call = next(stmt for stmt in program.main.walk() if isinstance(stmt, Call))
    assert call.span.file == __file__
    line = Path(__file__).read_text().splitlines()[call.span.line - 1]
    assert line[call.span.column : call.span.end_column] == "add_rows(x, y, between)"
