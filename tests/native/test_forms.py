"""Reductions, copies, updates, views and multiplications against the interpreter: small integers, so that any order of
summation is exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from native.building import TAILS, Building, compiled, draw, make, same, special
from native.test_elementwise import label, subclasses

from tilewright.ir.dtypes import BF16, BOOL, FP16, FP32, INT8, INT32, DType
from tilewright.ir.layout import Pad
from tilewright.ir.op import Level, Op
from tilewright.ir.scalar import constant
from tilewright.ops import (
    Assemble,
    Create,
    Extract,
    Matmul,
    MatmulAcc,
    MatmulBias,
    Move,
    Read,
    Reshape,
    SetValidShape,
    Slice,
    Store,
    Transpose,
    TransposeView,
    Write,
    pad,
    reduce,
)  # fmt: skip
from tilewright.ops.elementwise import Add, Mul
from tilewright.ops.reduce import ColReduce, ReduceOp

NUMBERS = (FP32, FP16, BF16, INT8, INT32)
REDUCTIONS = subclasses(reduce, ReduceOp)


@pytest.mark.parametrize("dtype", NUMBERS, ids=label)
@pytest.mark.parametrize("op", REDUCTIONS, ids=label)
def test_reductions(op: type[Op], dtype: DType) -> None:
    """Rows of up to 200, columns of up to 200, run-time extents down to none; NaN decides a maximum."""
    b = Building()
    m, n = b.scalar("m"), b.scalar("n")
    a, wide = b.tensor("a", 200, 200, dtype=dtype), issubclass(op, ColReduce)
    out = b.tensor("out", *((1, 200) if wide else (200, 1)), dtype=dtype, out=True)
    b.store(b.let(make(op, b.load(a, (m, n)))), out)
    program = b.program()
    kernel = compiled(program)
    base = draw((200, 200), dtype)
    if "prod" in op.name:  # ones and minus ones, of which any order gives the same product
        base = np.sign(draw((200, 200), INT32, 3) * 2 + 1).astype(base.dtype)
    for extent in (0, *TAILS):
        rows, columns = (extent, 65) if wide else (17, extent)
        same(program, [rows, columns, base, draw(out_shape(wide), dtype)], kernel)
    if "max" in op.name or "min" in op.name:
        same(program, [65, 65, special((200, 200), dtype), draw(out_shape(wide), dtype)], kernel)


def out_shape(wide: bool) -> tuple[int, int]:
    return (1, 200) if wide else (200, 1)


@pytest.mark.parametrize("columns", TAILS)
def test_reductions_of_constant_extent(columns: int) -> None:
    b = Building()
    a, t = b.tensor("a", 3, columns), b.tensor("t", columns, 3)
    out, turned = b.tensor("out", 3, 1, out=True), b.tensor("turned", 1, 3, out=True)
    b.store(b.let(reduce.RowSum(b.load(a))), out)
    b.store(b.let(reduce.ColMax(b.load(t))), turned)
    shapes = ((3, columns), (columns, 3), (3, 1), (1, 3))
    same(b.program(), [draw(shape, FP32, i) for i, shape in enumerate(shapes)])


@pytest.mark.parametrize("dtype", (*NUMBERS, BOOL), ids=label)
def test_rearrangements(dtype: DType) -> None:
    """Transposes, views of views, windows at run-time offsets, and copies back."""
    b = Building()
    i, n = b.scalar("i"), b.scalar("n")
    a = b.tensor("a", 48, 80, dtype=dtype)
    outs = [b.tensor(f"o{k}", *shape, dtype=dtype, out=True) for k, shape in enumerate(SHAPES)]
    x = b.load(a)
    b.store(b.let(Transpose(x)), outs[0])
    b.store(b.let(TransposeView(b.load(a, (48, n)))), outs[1])
    window = b.let(Slice(x, (16, 32), (i, 8)))
    b.store(b.let(Move(window)), outs[2])
    b.store(b.let(Reshape(x, (80, 48))), outs[3])
    b.store(b.let(Reshape(window, (32, 16))), outs[4])
    b.store(b.let(Extract(x, i, 3, (9, 17))), outs[5])
    b.store(b.load(a, (48, 80), transpose=True), outs[6])
    b.store(b.let(SetValidShape(x, i, n)), outs[7])
    program = b.program()
    kernel = compiled(program)
    for offset, extent in ((0, 80), (7, 65), (32, 1), (3, 16)):
        arrays = [special(shape, dtype, 1 + k) for k, shape in enumerate(SHAPES)]
        same(program, [offset, extent, special((48, 80), dtype), *arrays], kernel)


SHAPES = ((80, 48), (80, 48), (16, 32), (80, 48), (32, 16), (9, 17), (80, 48), (48, 80))


@pytest.mark.parametrize("columns", TAILS)
def test_strided_tensors(columns: int) -> None:
    """Arguments with gaps between rows, and between columns."""
    strides = ((columns + 10, 1), (2 * columns * 3, 3), (1, 8))
    for step in strides:
        b = Building()
        a = b.tensor("a", 5, columns, strides=step)
        out = b.tensor("out", 5, columns, strides=(columns + 7, 1), out=True)
        x = b.load(a)
        b.store(b.let(Add(x, x)), out)
        kernel = compiled(b.program())
        memory = np.full(40 * columns + 40, np.nan, np.float32)
        given = np.lib.stride_tricks.as_strided(memory, (5, columns), tuple(4 * s for s in step))
        given[...] = draw((5, columns), FP32)
        around = np.full((7, columns + 7), np.nan, np.float32)
        target = around[1:6, :columns]
        kernel.run([given, target])
        np.testing.assert_array_equal(target, given + given)
        target[...] = np.nan
        assert np.isnan(around).all()


def test_tensors_of_other_ranks() -> None:
    b = Building()
    i = b.scalar("i")
    a, v = b.tensor("a", 3, 20, 30), b.tensor("v", 60)
    out, flat = b.tensor("out", 4, 20, 30, out=True), b.tensor("flat", 100, out=True)
    x = b.load(a, shape=(20, 30), offsets=(i, 0, 0))
    b.store(b.let(Add(x, x)), out, (1, 0, 0))
    row = b.load(v, shape=(1, 60), offsets=(0,))
    total = b.let(Mul(row, row))
    b.last[flat] = b.let(Store(total, (i,), flat, (60,)))
    column = b.let(Reshape(total, (60, 1)))
    b.last[flat] = b.let(Store(column, (40,), b.last[flat], (60,)))
    same(b.program(), [2, *(draw(s, FP32, k) for k, s in enumerate(((3, 20, 30), (60,), (4, 20, 30), (100,))))])


@pytest.mark.parametrize("dtype", NUMBERS, ids=label)
def test_padding(dtype: DType) -> None:
    """Loads, moves and fillpad fill what is not valid; a wider valid shape then sees it."""
    b = Building()
    m, n = b.scalar("m"), b.scalar("n")
    a = b.tensor("a", 20, 40, dtype=dtype)
    outs = [b.tensor(f"o{k}", 20, 40, dtype=dtype, out=True) for k in range(4)]
    whole = (20, 40)
    for out, value in zip(outs, (Pad.ZERO, Pad.MAX, Pad.MIN), strict=False):
        b.store(b.let(SetValidShape(b.load(a, (m, n), pad_value=value), *whole)), out)
    filled = b.let(pad.Fillpad(b.load(a, (m, n)), Pad.MAX))
    moved = b.let(Move(b.load(a, (m, n)), pad_value=Pad.ZERO))
    b.store(b.let(Add(filled, b.let(SetValidShape(moved, *whole)))), outs[3])
    program = b.program()
    kernel = compiled(program)
    for rows, columns in ((20, 40), (1, 39), (19, 1), (0, 5), (7, 16)):
        same(program, [rows, columns, draw(whole, dtype), *(draw(whole, dtype) for _ in outs)], kernel)


def test_updates() -> None:
    """Assemble keeps the old version where it is still read; single elements; atomic stores add."""
    b = Building()
    i = b.scalar("i")
    a, s = b.tensor("a", 16, 48), b.tensor("s", 4, 20)
    outs = [b.tensor(f"o{k}", 16, 48, out=True) for k in range(3)]
    old = b.let(Add(b.load(a), b.load(a)))
    new = b.let(Assemble(old, b.load(s), (i, 17)))
    b.store(new, outs[0])
    b.store(old, outs[1])
    fresh = b.let(Create((16, 48), FP32, init_value=constant(2, FP32), level=Level.TILE))
    value = b.let(Read(old, (i, 3)))
    one = b.let(Write(fresh, (3, i), value))
    b.last[outs[2]] = b.let(Store(one, (0, 0), outs[2]))
    b.last[outs[2]] = b.let(Store(b.load(s), (i, 0), b.last[outs[2]], atomic=1))
    program = b.program(value)
    for offset in (0, 5, 12):
        arrays = [draw((16, 48), FP32, 1), draw((4, 20), FP32, 2), *(draw((16, 48), FP32, k) for k in range(3))]
        same(program, [offset, *arrays])


def product(dtype: DType, m: int, n: int, k: int, lhs_t: bool = False, rhs_t: bool = False) -> None:
    b = Building()
    a = b.tensor("a", *((k, m) if lhs_t else (m, k)), dtype=dtype)
    c = b.tensor("c", *((n, k) if rhs_t else (k, n)), dtype=dtype)
    wide = INT32 if dtype is INT8 else FP32
    bias, out = b.tensor("bias", 1, n, dtype=wide), b.tensor("out", 3 * m, n, dtype=wide, out=True)
    x = b.let(TransposeView(b.load(a))) if lhs_t else b.load(a)
    y = b.load(c, transpose=rhs_t)
    z = b.let(Matmul(x, y))
    b.store(z, out)
    b.store(b.let(MatmulBias(x, y, b.load(bias))), out, (m, 0))
    b.store(b.let(MatmulAcc(z, x, y)), out, (2 * m, 0))
    given: list[Any] = [draw(v.type.shape, v.dtype, i) for i, v in enumerate((a, c, bias, out))]  # type: ignore[union-attr]
    same(b.program(), given)


@pytest.mark.parametrize("dtype", (FP32, FP16, BF16, INT8), ids=label)
@pytest.mark.parametrize(
    "extents", ((1, 1, 1), (15, 17, 16), (16, 64, 65), (63, 15, 200), (65, 200, 17), (200, 65, 63))
)
def test_products(dtype: DType, extents: tuple[int, int, int]) -> None:
    product(dtype, *extents)


@pytest.mark.parametrize("dtype", (FP32, BF16, INT8), ids=label)
@pytest.mark.parametrize("turned", ((True, False), (False, True), (True, True)), ids=str)
def test_products_of_transposed_operands(dtype: DType, turned: tuple[bool, bool]) -> None:
    product(dtype, 17, 65, 63, *turned)


@pytest.mark.parametrize("dtype", (FP32, INT8), ids=label)
def test_large_products(dtype: DType) -> None:
    """More than one block along every dimension."""
    product(dtype, 210, 600, 800)


def test_products_of_run_time_extents() -> None:
    b = Building()
    m, n, k = (b.scalar(name) for name in "mnk")
    first = b.scalar("first", BOOL)
    a, c = b.tensor("a", 200, 200), b.tensor("c", 200, 200)
    out = b.tensor("out", 200, 200, out=True)
    start = b.let(Create((200, 200), FP32, init_value=constant(3, FP32), valid_shape=(m, n), level=Level.TILE))
    x, y = b.load(a, (m, k)), b.load(c, (k, n))
    b.store(b.let(MatmulAcc(start, x, y, init_cond=first)), out)
    program = b.program()
    kernel = compiled(program)
    for extents in ((1, 65, 17), (15, 16, 0), (200, 200, 200), (65, 1, 64), (7, 63, 15), (0, 5, 5)):
        for skip in (True, False):
            same(program, [*extents, skip, *(draw((200, 200), FP32, s) for s in range(3))], kernel)
