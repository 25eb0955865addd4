"""Elementwise operations, expansions, comparisons, selections and conversions: equal to the interpreter bit for bit,
for every dtype and every tail, with special values; exp and log within 2 units of FP32, 1 of a narrow float."""

from __future__ import annotations

import numpy as np
import pytest
from native.building import TAILS, Building, compiled, draw, make, same, special

from tilewright.ir.dtypes import (
    BF16,
    BOOL,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DType,
)  # fmt: skip
from tilewright.ir.op import Level, Op
from tilewright.ir.scalar import Value, constant
from tilewright.ops import Cast, Cmp, Expands, Full, RowExpand, Sel, broadcast, elementwise
from tilewright.ops.broadcast import ColExpandOp, RowExpandOp
from tilewright.ops.elementwise import BinaryOp, UnaryOp

ROWS, COLUMNS = 5, 200
FLOATS = (FP32, FP16, BF16)
NUMBERS = (*FLOATS, INT8, INT32)
MORE = (INT16, INT64, UINT8, UINT16, UINT32, UINT64)
ALL = (*NUMBERS, *MORE)


def subclasses(module: object, base: type[Op]) -> list[type[Op]]:
    found = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, base) and c.__dict__.get("name")]
    return [c for c in found if c is not base]


BINARY = subclasses(elementwise, BinaryOp)
UNARY = [c for c in subclasses(elementwise, UnaryOp) if c is not Cast]
ROW = subclasses(broadcast, RowExpandOp)
COLUMN = subclasses(broadcast, ColExpandOp)


def cases(classes: list[type[Op]]) -> list[tuple[type[Op], DType]]:
    return [(c, d) for c in classes for d in (c.dtypes or NUMBERS)]


def label(value: object) -> str:
    return value.name if isinstance(value, DType) else getattr(value, "name", str(value))


def tolerance(op: type[Op], dtype: DType) -> float:
    """Units in the last place: what polynomials may be off."""
    if not any(word in op.name for word in ("exp", "log")) or op.name in ("expands", "row_expand", "col_expand"):
        return 0
    return 0 if "expand" in op.name and "expdif" not in op.name else (2 if dtype is FP32 else 1)


def through(op: type[Op], dtype: DType, vectors: tuple[tuple[int, int], ...]) -> None:
    """`op` on tiles of 5 x 200 whose valid extents come when running; `vectors` are the shapes of the operands."""
    b = Building()
    m, n = b.scalar("m"), b.scalar("n")
    tensors = [b.tensor(f"a{i}", *shape, dtype=dtype) for i, shape in enumerate(vectors)]
    tiles: list[Value] = []
    for tensor, (rows, columns) in zip(tensors, vectors, strict=True):
        tiles.append(b.load(tensor, (m if rows > 1 else 1, n if columns > 1 else 1)))
    result = b.let(make(op, *tiles))
    out = b.tensor("out", ROWS, COLUMNS, dtype=result.dtype, out=True)
    b.store(result, out)
    program = b.program()
    kernel = compiled(program)
    for seed, columns in enumerate(TAILS):
        for drawn in (draw, special):
            inputs = [drawn(shape, dtype, seed + 10 * i) for i, shape in enumerate(vectors)]
            rows = ROWS if columns > 16 else 3
            same(program, [rows, columns, *inputs, draw((ROWS, COLUMNS), result.dtype)], kernel, tolerance(op, dtype))


@pytest.mark.parametrize(("op", "dtype"), cases(BINARY), ids=label)
def test_two_operands(op: type[Op], dtype: DType) -> None:
    through(op, dtype, ((ROWS, COLUMNS), (ROWS, COLUMNS)))


@pytest.mark.parametrize(("op", "dtype"), cases(UNARY), ids=label)
def test_one_operand(op: type[Op], dtype: DType) -> None:
    through(op, dtype, ((ROWS, COLUMNS),))


@pytest.mark.parametrize(("op", "dtype"), cases(ROW), ids=label)
def test_a_column_vector_meets_rows(op: type[Op], dtype: DType) -> None:
    through(op, dtype, ((ROWS, COLUMNS), (ROWS, 1)))


@pytest.mark.parametrize(("op", "dtype"), cases(COLUMN), ids=label)
def test_a_row_vector_meets_columns(op: type[Op], dtype: DType) -> None:
    through(op, dtype, ((ROWS, COLUMNS), (1, COLUMNS)))


@pytest.mark.parametrize("columns", TAILS)
@pytest.mark.parametrize("dtype", NUMBERS, ids=label)
def test_constant_extents(columns: int, dtype: DType) -> None:
    """Extents known when compiling: the loops for full vectors and tails are then chosen by the emitter."""
    b = Building()
    a, c = b.tensor("a", 3, columns, dtype=dtype), b.tensor("c", columns, 1, dtype=dtype)
    out = b.tensor("out", 3, columns, dtype=dtype, out=True)
    tall = b.tensor("tall", columns, 1, dtype=dtype, out=True)
    x = b.load(a)
    b.store(b.let(elementwise.Add(x, b.let(elementwise.Mul(x, x)))), out)
    y = b.load(c)
    b.store(b.let(elementwise.Sub(y, constant(3, dtype))), tall)
    shapes = ((3, columns), (columns, 1), (3, columns), (columns, 1))
    same(b.program(), [draw(shape, dtype, i) for i, shape in enumerate(shapes)])


@pytest.mark.parametrize("dtype", ALL, ids=label)
@pytest.mark.parametrize("op", BINARY, ids=label)
def test_scalar_forms(op: type[Op], dtype: DType) -> None:
    """The right operand a constant, a literal and a run-time scalar."""
    if dtype not in (op.dtypes or NUMBERS):
        with pytest.raises(Exception, match="does not take"):
            Building().let(make(op, Building().tensor("a", 2, 2, dtype=dtype), 2))
        return
    b = Building()
    s = b.scalar("s", dtype)
    a, out = b.tensor("a", 4, 37, dtype=dtype), b.tensor("out", 12, 37, dtype=dtype, out=True)
    x = b.load(a)
    for row, value in enumerate((s, constant(3, dtype), 2)):
        b.store(b.let(make(op, x, value)), out, (4 * row, 0))
    scalar = np.dtype(dtype.numpy).type(5)
    same(b.program(), [scalar, special((4, 37), dtype), draw((12, 37), dtype)])


@pytest.mark.parametrize("cmp_type", range(6))
@pytest.mark.parametrize("dtype", ALL, ids=label)
def test_comparisons_and_selection(cmp_type: int, dtype: DType) -> None:
    b = Building()
    n = b.scalar("n")
    a, c = b.tensor("a", 3, 65, dtype=dtype), b.tensor("c", 3, 65, dtype=dtype)
    flags, out = b.tensor("flags", 3, 65, dtype=BOOL, out=True), b.tensor("out", 6, 65, dtype=dtype, out=True)
    x, y = b.load(a, (3, n)), b.load(c, (3, n))
    mask = b.let(Cmp(x, y, cmp_type))
    b.store(mask, flags)
    b.store(b.let(Sel(mask, x, y)), out)
    b.store(b.let(Sel(mask, x, 1)), out, (3, 0))
    for columns in (1, 16, 17, 64, 65):
        for drawn in (draw, special):
            arrays = [drawn((3, 65), dtype, 1), drawn((3, 65), dtype, 2)]
            same(b.program(), [columns, *arrays, draw((3, 65), BOOL), draw((6, 65), dtype)])


MODES = ("round", "floor", "ceil", "trunc", "odd")


@pytest.mark.parametrize("to", (*ALL, BOOL), ids=label)
@pytest.mark.parametrize("source", (*ALL, BOOL), ids=label)
def test_conversions(source: DType, to: DType) -> None:
    modes = MODES if source.is_float else MODES[:1]
    b = Building()
    n = b.scalar("n")
    a, out = b.tensor("a", 4, 200, dtype=source), b.tensor("out", 4 * len(modes), 200, dtype=to, out=True)
    x = b.load(a, (4, n))
    for row, mode in enumerate(modes):
        b.store(b.let(Cast(x, to, mode)), out, (4 * row, 0))
    program = b.program()
    kernel = compiled(program)
    for columns in TAILS:
        values = special((4, 200), source, columns)
        halves = (np.arange(-400, 400).reshape(4, 200) / 2).astype(np.dtype(source.numpy))
        for given in (values, halves):
            same(program, [columns, given, draw((4 * len(modes), 200), to)], kernel)


def test_fills() -> None:
    """Results that read no element: full, expands, and a vector expanded."""
    for dtype in (*NUMBERS, BOOL):
        b = Building()
        n = b.scalar("n")
        a, v = b.tensor("a", 4, 65, dtype=dtype), b.tensor("v", 4, 1, dtype=dtype)
        out = b.tensor("out", 12, 65, dtype=dtype, out=True)
        x = b.load(a, (4, n))
        b.store(b.let(Full((4, 65), dtype, constant(1, dtype), (4, n), level=Level.TILE)), out)
        b.store(b.let(Expands(x, constant(0, dtype))), out, (4, 0))
        b.store(b.let(RowExpand(x, b.load(v))), out, (8, 0))
        for columns in (1, 16, 63, 65):
            same(b.program(), [columns, draw((4, 65), dtype), draw((4, 1), dtype), draw((12, 65), dtype)])


def test_results_of_bfloat_keep_denormal_numbers_and_nan() -> None:
    """The processor's own conversion would lose the former."""
    b = Building()
    a, out = b.tensor("a", 1, 256), b.tensor("out", 1, 256, dtype=BF16, out=True)
    b.store(b.let(Cast(b.load(a), BF16)), out)
    bits = [np.arange(end - 2**23, end, 2**16, dtype=np.uint32) for end in (2**23, 2**31)]
    same(b.program(), [np.concatenate(bits).view(np.float32).reshape(1, 256), np.zeros((1, 256), np.dtype(BF16.numpy))])
