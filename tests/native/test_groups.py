"""Operations that become loops together: what memory is left, and the same numbers as one operation at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import pytest
from native.building import TAILS, Building, compiled, draw, host, same, special
from support import Array

from tilewright.codegen.native import emit_llvm
from tilewright.codegen.native.groups import LONGEST, Group
from tilewright.codegen.native.llvm import processor_of
from tilewright.codegen.native.storage import plan_storage
from tilewright.execute.interpreter import interpret
from tilewright.execute.loops import interpret_loops
from tilewright.ir.buffers import buffer_type
from tilewright.ir.dtypes import BF16, BOOL, FP16, FP32, INT8, INT32, DType
from tilewright.ir.function import Direction, Param, Program
from tilewright.ir.loop_level import Allocate, Loop, LoopFunction
from tilewright.ir.nodes import Let, walk
from tilewright.ir.scalar import Scalar, Value, constant
from tilewright.ops import Cast, Cmp, Sel, Slice, Transpose
from tilewright.ops.broadcast import ColExpandMul, RowExpandDiv, RowExpandMul, RowExpandSub
from tilewright.ops.elementwise import Abs, Add, Exp, Maximum, Mul, Neg, Relu, Rsqrt, Sub
from tilewright.ops.reduce import ColMax, ColSum, RowMax, RowMin, RowSum
from tilewright.passes.loop.lower_tiles import lower_tiles
from tilewright.targets import Target, load_target

WIDE = replace(host(), vector_bytes=64)
"""This machine with vectors of 64 bytes and lanes left out, which LLVM makes of what there is."""


def groups_of(program: Program) -> list[Group]:
    """The groups of a program's entry."""
    return list(dict.fromkeys(plan_storage(program.main, program, False).groups.values()))


def kept_in_memory(function: LoopFunction) -> list[tuple[str, tuple[Scalar, ...]]]:
    """The allocations of more than one element that are no registers."""
    found = [stmt for stmt in walk(function.body) if isinstance(stmt, Allocate) and not stmt.annotations]
    shapes = [(stmt.buffer.name, buffer_type(stmt.buffer).shape) for stmt in found]
    return [(name, shape) for name, shape in shapes if prod(e for e in shape if isinstance(e, int)) > 1]


def softmax(rows: int, columns: int, dtype: DType = FP32, extents: int = 0) -> Program:
    b = Building()
    valid = tuple(b.scalar(name) for name in "mn"[:extents]) or None
    a, out = b.tensor("a", rows, columns, dtype=dtype), b.tensor("out", rows, columns, dtype=dtype, out=True)
    x = b.load(a, valid)
    e = b.let(Exp(b.let(RowExpandSub(x, b.let(RowMax(x))))), "e")
    b.store(b.let(RowExpandDiv(e, b.let(RowSum(e)))), out)
    return b.program()


def rmsnorm(rows: int, columns: int) -> Program:
    b = Building()
    a, w = b.tensor("a", rows, columns), b.tensor("w", 1, columns)
    out = b.tensor("out", rows, columns, out=True)
    x = b.load(a)
    mean = b.let(Mul(b.let(RowSum(b.let(Mul(x, x)))), constant(1 / columns, FP32)))
    y = b.let(RowExpandMul(x, b.let(Rsqrt(b.let(Add(mean, constant(1e-6, FP32)))))))
    b.store(b.let(ColExpandMul(y, b.load(w))), out)
    return b.program()


def chain(rows: int, columns: int, dtype: DType = FP32, extents: int = 0) -> Program:
    """Six elementwise operations."""
    b = Building()
    valid = tuple(b.scalar(name) for name in "mn"[:extents]) or None
    a, c = b.tensor("a", rows, columns, dtype=dtype), b.tensor("c", rows, columns, dtype=dtype)
    out = b.tensor("out", rows, columns, dtype=dtype, out=True)
    x, y = b.load(a, valid), b.load(c, valid)
    z = b.let(Maximum(b.let(Sub(b.let(Mul(b.let(Add(x, y)), x)), y)), b.let(Abs(b.let(Neg(x))))))
    b.store(z, out)
    return b.program()


# --- memory that is left ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("make", "most"), [(softmax, 1), (rmsnorm, 1)])
def test_a_row_kernel_keeps_at_most_one_row(make: Callable[[int, int], Program], most: int) -> None:
    """Everything is one group, one loop over the rows, and what lies between passes over a row is one row."""
    program = make(8, 1024)
    (group,) = groups_of(program)
    final = group.final(processor_of(host()))[0]
    assert [type(stmt) for stmt in final.body] == [Loop]
    assert not group.kept
    kept = kept_in_memory(final)
    assert len(kept) <= most and all(shape == (1, 1024) for _, shape in kept)
    assert plan_storage(program.main, program, False).nbytes == 0


def test_a_chain_of_elementwise_operations_keeps_nothing() -> None:
    program = chain(16, 1024)
    (group,) = groups_of(program)
    assert len(group.stmts) == 7
    for function in (group.fused, group.final(processor_of(host()))[0]):
        assert not kept_in_memory(function)
        assert sum(isinstance(stmt, Loop) for stmt in function.body) == 1


@pytest.mark.parametrize("columns", [2, 3, 5, 12, 17])
def test_narrow_rows_without_gaps_are_one_loop(columns: int) -> None:
    """All elements together: what is left over is left over once, not once per row."""
    program = chain(64, columns)
    (group,) = groups_of(program)
    function, flat = group.final(processor_of(WIDE), group.fused.params)
    assert len(flat) == 3
    assert all(loop.start == 0 for loop in function.body if isinstance(loop, Loop))
    given = [draw((64, columns), FP32, seed) for seed in range(3)]
    for target in (None, WIDE):
        same(program, given, compiled(program, target))
    text = emit_llvm(program, host())
    assert text.count("phi i64") == 2  # one loop, and the way out


def test_rows_with_gaps_stay_rows() -> None:
    b = Building()
    a, out = b.tensor("a", 64, 30), b.tensor("out", 64, 30, out=True)
    x = b.load(a, shape=(64, 12), offsets=(0, 7))
    b.store(b.let(Add(b.let(Mul(x, x)), x)), out, (0, 3))
    same(b.program(), [draw((64, 30), FP32), draw((64, 30), FP32)])


def test_a_tile_that_is_read_elsewhere_keeps_its_memory() -> None:
    """By a statement that is no part of the group; the transpose of it is a loop nest of its own."""
    b = Building()
    a, out = b.tensor("a", 40, 24), b.tensor("out", 24, 40, out=True)
    x = b.load(a)
    y = b.let(Add(b.let(Mul(x, x)), x), "y")
    b.store(b.let(Transpose(y)), out)
    program = b.program()
    kept = [value.name for group in groups_of(program) for value in group.kept]
    assert kept in ([], ["y"])
    same(program, [draw((40, 24), FP32), draw((24, 40), FP32)])


def test_long_runs_are_cut() -> None:
    b = Building()
    a, out = b.tensor("a", 4, 20, dtype=INT32), b.tensor("out", 4, 20, dtype=INT32, out=True)
    x = y = b.load(a)
    for _ in range(3 * LONGEST):
        y = b.let(Sub(y, x))
    b.store(y, out)
    program = b.program()
    assert [len(group.stmts) for group in groups_of(program)] == [LONGEST] * 3
    same(program, [draw((4, 20), INT32), draw((4, 20), INT32)])


# --- each form of the loops -------------------------------------------------------------------------------------------
def test_every_step_of_the_loops_gives_the_same_numbers() -> None:
    """As lowered, joined, and in vectors with and without lanes left out, in the interpreter of loops."""
    for columns in (1, 7, 16, 17, 70, 100):
        program = softmax(3, columns)
        x, out = draw((3, columns), FP32), np.zeros((3, columns), np.float32)
        interpret(program, [x, out])
        (group,) = groups_of(program)
        narrow, wide = processor_of(host()), processor_of(WIDE)
        for function in (group.lowered.function, group.fused, group.final(narrow)[0], group.final(wide)[0]):
            given: dict[Value, Array] = dict.fromkeys(group.lowered.tiles.values(), x)
            found = np.zeros_like(out)
            given |= {window.buffer: found for window in group.lowered.windows if window.tensor.name == "out"}
            given |= {window.buffer: x for window in group.lowered.windows if window.tensor.name == "a"}
            interpret_loops(
                function, [given[param].copy() if given[param] is x else found for param in function.params]
            )
            assert np.allclose(found, out, rtol=2e-6, atol=0)


# --- numbers ----------------------------------------------------------------------------------------------------------
def mixture(dtype: DType) -> Program:
    """Statistics of rows and columns, masks, cast and back, with run-time extents; exact on small integers."""
    b = Building()
    m, n = b.scalar("m"), b.scalar("n")
    a, c = b.tensor("a", 9, 200, dtype=dtype), b.tensor("c", 9, 200, dtype=dtype)
    out, sums = b.tensor("out", 18, 200, dtype=dtype, out=True), b.tensor("sums", 9, 1, dtype=dtype, out=True)
    x, y = b.load(a, (m, n)), b.load(c, (m, n))
    mask = b.let(Cmp(x, y, 2))
    chosen = b.let(Sel(mask, x, y))
    spread = b.let(RowExpandSub(chosen, b.let(RowMax(y))))
    low = b.let(RowMin(spread))
    by_column = b.let(ColExpandMul(spread, b.let(ColMax(x))))
    b.store(by_column, out)
    b.store(b.let(Add(b.let(RowExpandMul(x, low)), b.let(Relu(y)))), out, (9, 0))
    b.store(b.let(RowSum(b.let(Sub(x, y)))), sums)
    return b.program()


@pytest.mark.parametrize("target", [None, "generic", "x86_avx2", "wide"])
@pytest.mark.parametrize("dtype", [FP32, BF16, FP16, INT32, INT8], ids=lambda d: d.name)
def test_tails_and_run_time_extents(dtype: DType, target: str | None) -> None:
    program = mixture(dtype)
    kernel = compiled(program, machine(target))
    if not kernel.runnable:
        pytest.skip("this machine has no such vectors")
    assert len(groups_of(program)) == 1
    for rows, columns in [(9, columns) for columns in TAILS] + [(1, 17), (0, 5), (3, 0), (2, 100)]:
        arrays = [draw(shape, dtype, seed) for seed, shape in enumerate([(9, 200), (9, 200), (18, 200), (9, 1)])]
        same(program, [rows, columns, *arrays], kernel)


def machine(name: str | None) -> Target:
    return WIDE if name == "wide" else host() if name is None else load_target(name)


@pytest.mark.parametrize("dtype", [FP32, BF16, FP16, INT32, INT8], ids=lambda d: d.name)
def test_each_operation_of_a_chain_rounds(dtype: DType) -> None:
    """What lies in a register has been rounded to its dtype, with NaN, infinities and denormal numbers."""
    for columns in TAILS:
        program = chain(5, columns, dtype)
        for target in (None, WIDE):
            kernel = compiled(program, target)
            arrays = [special((5, columns), dtype, 1), special((5, columns), dtype, 2)]
            same(program, [*arrays, draw((5, columns), dtype)], kernel)


def test_softmax_with_tails() -> None:
    kernel = compiled(softmax(9, 200, extents=2))
    for columns in TAILS:
        x = np.random.default_rng(0).standard_normal((9, 200)).astype(np.float32)
        out = np.zeros_like(x)
        kernel.run([9, columns, x, out])
        e = np.exp(x[:, :columns].astype(np.float64) - x[:, :columns].max(1, keepdims=True))
        assert np.allclose(out[:, :columns], e / e.sum(1, keepdims=True), rtol=1e-6, atol=0)
        assert not out[:, columns:].any()


def test_masks_stay_one_bit() -> None:
    b = Building()
    a, out = b.tensor("a", 6, 77), b.tensor("out", 6, 77, dtype=BOOL, out=True)
    x = b.load(a)
    b.store(b.let(Cmp(b.let(Mul(x, x)), b.let(Abs(x)), 4)), out)
    same(b.program(), [draw((6, 77), FP32), draw((6, 77), BOOL)])


# --- what must not be joined ------------------------------------------------------------------------------------------
def test_a_tensor_that_is_read_and_written_in_a_run() -> None:
    """In place; and moved by rows, where a joined loop would read what it wrote."""
    for offset in (0, 1, 3):
        b = Building()
        io = b.tensor("io", 16, 40, out=True)
        b.params[-1] = Param(io, Direction.INOUT)
        x = b.load(io, shape=(8, 40))
        b.store(b.let(Add(b.let(Mul(x, x)), x)), io, (offset, 0))
        y = b.let(Slice(b.load(b.last[io], shape=(8, 40), offsets=(2, 0)), (8, 40), (0, 0)))
        b.store(b.let(Neg(b.let(Add(y, y)))), io, (4, 0))
        same(b.program(), [draw((16, 40), FP32)])


def test_columns_before_rows() -> None:
    """A statistic of columns needs every row before the first row can go on."""
    b = Building()
    a, out = b.tensor("a", 30, 50, dtype=INT32), b.tensor("out", 30, 50, dtype=INT32, out=True)
    x = b.load(a)
    y = b.let(ColExpandMul(x, b.let(ColSum(b.let(Add(x, x))))))
    b.store(b.let(RowExpandSub(y, b.let(RowSum(y)))), out)
    same(b.program(), [draw((30, 50), INT32), draw((30, 50), INT32)])


def test_casts_between_widths() -> None:
    """Lanes of one loop: as many as hold the widest of its elements."""
    for narrow in (BF16, FP16, INT8):
        b = Building()
        a, out = b.tensor("a", 5, 83, dtype=narrow), b.tensor("out", 5, 83, dtype=narrow, out=True)
        x = b.let(Cast(b.load(a), FP32))
        b.store(b.let(Cast(b.let(Add(b.let(Mul(x, x)), x)), narrow)), out)
        for target in (None, WIDE):
            same(b.program(), [draw((5, 83), narrow), draw((5, 83), narrow)], compiled(b.program(), target))


def test_elements_that_lie_apart() -> None:
    """A transposed operand is read lane by lane, with lanes left out too."""
    for rows, columns in ((5, 33), (16, 16), (17, 3)):
        b = Building()
        a, c = b.tensor("a", columns, rows), b.tensor("c", rows, columns)
        out = b.tensor("out", rows, columns, out=True)
        x = b.load(a, transpose=True)
        b.store(b.let(Add(b.let(Mul(x, x)), b.load(c))), out)
        given = [draw((columns, rows), FP32), draw((rows, columns), FP32), draw((rows, columns), FP32)]
        for target in (None, WIDE):
            same(b.program(), given, compiled(b.program(), target))


def test_the_page_of_lower_tiles_shows_what_it_does() -> None:
    b = Building()
    a, out = b.tensor("a", 8, 64), b.tensor("out", 8, 1, out=True)
    e = b.let(Exp(b.load(a)), "e")
    s = b.let(RowSum(e), "s")
    lowered = lower_tiles([stmt for stmt in b.body[-2:] if isinstance(stmt, Let)], {s})
    b.store(s, out)
    page = (Path(__file__).parents[2] / "docs" / "passes" / "lower_tiles.md").read_text()
    _, after = re.findall(r"^```python\n(.*?)^```", page, re.S | re.M)
    assert str(lowered.function).split("@pl.loop.function\n", 1)[1].strip() == after.strip()
