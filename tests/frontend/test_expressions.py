"""Operators, slices, calls of operations: which operation each becomes."""

from __future__ import annotations

import pytest

from tilewright.errors import (
    CallError,
    DTypeError,
    LanguageError,
    NonConstantShapeError,
    OperandError,
    ShapeError,
    SliceError,
    TilewrightError,
    UnknownDTypeError,
    UnknownOpError,
)  # fmt: skip
from tilewright.frontend import parse
from tilewright.ir.function import Program
from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.ir.verify import verify

HEAD = """import tilewright.language as pl

@pl.jit.{kind}
def f(a: pl.Tensor[[64, 32], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32], h: pl.Tensor[[64, 32], pl.BF16],
      k: pl.Tensor[[64, 32], pl.INT32], v: pl.Tensor[[64, 1], pl.FP32], w: pl.Tensor[[1, 32], pl.FP32],
      t: pl.Tensor[[128], pl.FP32], n: pl.Scalar[pl.INDEX], s: pl.Scalar[pl.FP32]):
"""


def parsed(setup: str, expression: str) -> Program:
    """The program that returns an expression."""
    lines = [*setup.splitlines(), f"result = {expression}", "return result"]
    return parse(HEAD.format(kind="incore") + "".join(f"    {line}\n" for line in lines))


def ops(expression: str, kind: str = "incore", setup: str = "") -> list[str]:
    """The operations that an expression becomes, as text without what their operands are made of."""
    lines = [*setup.splitlines(), f"result = {expression}", "return result"]
    program = parse(HEAD.format(kind=kind) + "".join(f"    {line}\n" for line in lines))
    verify(program)
    assert parse(str(program)) == program
    body = str(program).split("):\n")[1].splitlines()
    return [line.split(" = ")[-1].removeprefix("pl.").strip() for line in body if " = pl." in line]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a + b", ["tensor.add(a, b)"]),
        ("a + 2", ["tensor.adds(a, 2.0)"]),
        ("h * 0.5", ["tensor.muls(h, 0.5)"]),
        ("k + 3", ["tensor.adds(k, 3)"]),
        ("2 * a", ["tensor.muls(a, 2.0)"]),
        ("1.0 - a", ["tensor.expands(a, 1.0)", "tensor.sub(filled, a)"]),
        ("1 / a", ["tensor.expands(a, 1.0)", "tensor.div(filled, a)"]),
        ("a * s", ["tensor.muls(a, s)"]),
        ("-a", ["tensor.neg(a)"]),
        ("+a", []),
        ("a @ b.T", ["tensor.transpose(b)", "tensor.matmul(a, transpose)"]),
        ("a < b", ["tensor.cmp(a, b, cmp_type=2)"]),
        ("a >= 0.0", ["tensor.cmps(a, 0.0, cmp_type=5)"]),
        ("0.0 < a", ["tensor.cmps(a, 0.0, cmp_type=4)"]),
        ("a - v", ["tensor.row_expand_sub(a, v)"]),
        ("a / w", ["tensor.col_expand_div(a, w)"]),
        ("v - a", ["tensor.row_expand(a, v)", "tensor.sub(v_1, a)"]),
        ("pl.maximum(a, w)", ["tensor.col_expand_max(a, w)"]),
        ("a < v", ["tensor.row_expand(a, v)", "tensor.cmp(a, v_1, cmp_type=2)"]),
        ("pl.add(a, 1)", ["tensor.adds(a, 1.0)"]),
        ("pl.tensor.adds(input=a, rhs=1)", ["tensor.adds(a, 1.0)"]),
        ("pl.max(a, b)", ["tensor.maximum(a, b)"]),
        ("pl.cast(a, pl.BF16)", ["tensor.cast(a, pl.BF16)"]),
        ("pl.cast(a, target_type=pl.INT32, mode='floor')", ['tensor.cast(a, pl.INT32, mode="floor")']),
        ("a[16:32, :]", ["tensor.slice(a, [16, 32], [16, 0])"]),
        ("a[n:n + 8]", ["tensor.slice(a, [8, 32], [n, 0])"]),
        ("a[-8:, 1:-1]", ["tensor.slice(a, [8, 30], [56, 1])"]),
        ("a[..., 4:8]", ["tensor.slice(a, [64, 4], [0, 4])"]),
        ("a[:]", []),
        ("a[3, -1]", ["tensor.read(a, [3, 31])"]),
        ("t[n]", ["tensor.read(t, [n])"]),
        ("t[8:16]", ["tensor.slice(t, [8], [8])"]),
        ("pl.load(a, [n, 0], [8, 32], target_memory=pl.Mem.Vec)",
         ["tile.load(a, [n, 0], [8, 32], target_memory=pl.Mem.Vec)"]),
        ("pl.full([8, 8], pl.FP32, 0.0)", ["tile.full([8, 8], pl.FP32, 0.0)"]),
        ("pl.create_tensor([8, 8], dtype=pl.FP32)", ["tensor.create([8, 8], pl.FP32)"]),
        ("pl.load(*args)", ["tile.load(a, [0, 0], [8, 8])"]),
    ],
)  # fmt: skip
def test_operations(expression: str, expected: list[str]) -> None:
    assert ops(expression, setup="args = (a, [0, 0], [8, 8])") == expected


def test_the_same_operators_on_tiles() -> None:
    setup = "x = pl.load(a, [0, 0], [16, 32])\nm = pl.row_max(x)"
    assert ops("pl.exp(x - m) * 2", setup=setup)[2:] == [
        "tile.row_expand_sub(x, m)", "tile.exp(row_expand_sub)", "tile.muls(exp, 2.0)",
    ]  # fmt: skip
    assert ops("x[0:8, :]", setup=setup)[2:] == ["tile.slice(x, [8, 32], [0, 0])"]


def test_creation_is_of_tensors_outside_device_kernels() -> None:
    assert ops("pl.full([8, 8], pl.FP32, 0.0)", kind="inline") == ["tensor.full([8, 8], pl.FP32, 0.0)"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("n * 2 + 1", "n * 2 + 1"),
        ("pl.min(n, 8) // 2 % 3", "pl.min(n, 8) // 2 % 3"),
        ("n < 4 and not n == 2 or n > 9", "n < 4 and not n == 2 or n > 9"),
        ("0 <= n < 4", "0 <= n and n < 4"),
        ("s * 2 + 1", "s * 2.0 + 1.0"),
        ("pl.cast(n, pl.FP32) / s", "pl.cast(n, pl.FP32) / s"),
        ("-n", "-n"),
        ("(n + 64) - n + n", "n + 64"),
        ("pl.tensor.dim(a, 0) + n", "64 + n"),
        ("n if n < 4 else 4", "n if n < 4 else 4"),
    ],
)
def test_scalars(expression: str, expected: str) -> None:
    program = parse(HEAD.format(kind="incore") + f"    x = {expression}\n    return x\n")
    assert parse(str(program)) == program
    let = next(stmt for stmt in program.main.walk() if isinstance(stmt, Let))
    assert not isinstance(let.value, Op)
    line = next(line for line in str(program).splitlines() if " x = " in line)
    shown = line.split(" = ", 1)[1]
    assert shown == expected or (expected == "n + 64" and shown in ("64 + n", "n + 64"))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 ** 3 + 7 // 2 % 3", 8),
        ("len(a.shape) + a.ndim", 4),
        ("min(3, 4) + max([1, 2])", 5),
        ("int(2.5) + abs(-3) + round(1.2)", 6),
        ("1 if a.dtype is pl.FP32 else 2", 1),
        ("1 if pl.FP32 == pl.BF16 else 2", 2),
        ("a.shape[-1] >> 1", 16),
        ("3 if 'x' in ('x', 'y') else 4", 3),
        ("(1, 2, 3)[1:][0]", 2),
    ],
)
def test_what_is_known_is_computed(expression: str, value: int) -> None:
    program = parse(HEAD.format(kind="incore") + f"    x = {expression}\n    return x\n")
    assert program.main.results == (value,)


@pytest.mark.parametrize(
    ("expression", "error", "message"),
    [
        ("pl.tensor.addd(a, b)", UnknownOpError, "pl.tensor.add"),
        ("pl.exq(a)", UnknownOpError, "did you mean pl.exp"),
        ("pl.tensor.relu6(a)", UnknownOpError, "there is|has no"),
        ("pl.cast(a, pl.FP33)", UnknownDTypeError, "pl.FP32"),
        ("pl.load(a, [0, 0], [8, 8], target_memory=pl.Mem.Vex)", UnknownOpError, "pl.Mem.Vec"),
        ("pl.exp(a, b, a)", CallError, "takes at most"),
        ("pl.add(a)", CallError, "lacks 'rhs'"),
        ("pl.add(a, rsh=b)", CallError, "did you mean rhs"),
        ("pl.add(a, b, rhs=b)", CallError, "'rhs' twice"),
        ("pl.tensor.adds(a, b)", OperandError, "takes a number on the right"),
        ("pl.exp(3.0)", OperandError, "tensor or tile"),
        ("pl.load(a, 0, [8, 8])", OperandError, "a list of integers"),
        ("k + 0.5", DTypeError, "INT32"),
        ("a + h", DTypeError, "two dtypes"),
        ("a + t", ShapeError, "different shapes"),
        ("a @ b", ShapeError, "inner"),
        ("a[0:70, :]", SliceError, "outside its dimension"),
        ("a[8:8, :]", SliceError, "empty"),
        ("a[64, 0]", SliceError, "outside its dimension"),
        ("a[0, 0, 0]", SliceError, "more indices"),
        ("a[::2]", SliceError, "without a step"),
        ("a[0:n]", NonConstantShapeError, "extent of a slice"),
        ("a[0.5, 0]", SliceError, "an index is an integer"),
        ("n / 2", DTypeError, "write //"),
        ("n + 0.5", DTypeError, "integer scalar"),
        ("a ** 2", LanguageError, "no operator Pow"),
        ("a.foo", LanguageError, "no attribute 'foo'"),
        ("[x for x in a]", LanguageError, "a comprehension"),
        ("lambda: a", LanguageError, "a lambda"),
        ("f'{n}'", LanguageError, "an f-string"),
        ("n ** n", LanguageError, "does not work on scalars"),
        ("10 ** 100", LanguageError, "64 bits"),
        ("9 ** 9 ** 9", LanguageError, "64 bits|cannot be computed"),
        ("1 // 0", LanguageError, "cannot be computed"),
        ("range(4)", LanguageError, "does not make a loop"),
        ("print(a)", LanguageError, "static_print"),
        ("a if a else b", LanguageError, "no condition"),
        ("pl.while_(n)", LanguageError, r"pl\.cond"),
        ("pl.cond(n < 3)", LanguageError, "first statement"),
        ("pl.yield_(a)", LanguageError, "pl.yield_"),
    ],
)
def test_what_is_refused(expression: str, error: type[TilewrightError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        ops(expression)
    span = caught.value.span
    assert span is not None and span.file == "<text>" and span.line in (7, 8)


def test_writing_parts() -> None:
    text = """import tilewright.language as pl

@pl.jit.incore
def f(a: pl.Tensor[[64, 32], pl.FP32], t: pl.Tensor[[8], pl.FP32], out: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
    x = pl.load(a, [0, 0], [8, 32])
    out[8:16] = x
    out[0:8, 3] = t
    out[0, 0] = 2
    out[16:24, :] = 0.0
    x[0:1, :] = x[1:2, :]
    x[0, 1] = a[0, 1]
    out[24:32, :] = x
"""
    program = parse(text)
    verify(program)
    assert parse(str(program)) == program
    found = [s.value.qualified_name for s in program.main.walk() if isinstance(s, Let) and isinstance(s.value, Op)]
    assert found == [
        "tile.load", "tile.store", "tensor.reshape", "tensor.assemble", "tensor.write", "tensor.full",
        "tensor.assemble", "tile.slice", "tile.assemble", "tensor.read", "tile.write", "tile.store",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("out[0:8, :] = a", ShapeError, "does not fit the part"),
        ("out[0:8, :] = h[0:8, :]", TilewrightError, "dtype|FP32"),
        ("n[0] = 1", LanguageError, "only parts of tensors"),
        ("out.x = a", LanguageError, "this cannot be assigned"),
    ],
)
def test_writes_that_are_refused(statement: str, error: type[TilewrightError], message: str) -> None:
    head = HEAD.format(kind="incore").replace("s: pl.Scalar[pl.FP32])", "out: pl.Out[pl.Tensor[[64, 32], pl.FP32]])")
    with pytest.raises(error, match=message):
        parse(head + f"    {statement}\n")


@pytest.mark.parametrize(
    "use",
    [
        "a[m, 0]",
        "a[m + n, 0]",
        "a[n - m, 0]",
        "pl.slice(a, [8, 8], [m, 0])",
        "pl.max(m, n)",
        "a[0:8, 0:8] + a[m : m + 8, 0:8]",
    ],
)
def test_an_integer_read_from_memory_is_an_index(use: str) -> None:
    """It is widened once, where it becomes an offset or meets one."""
    found = ops(use, setup="m = k[0, 0]")
    assert "pl.cast(m, pl.INDEX)" in str(parsed("m = k[0, 0]", use)), found


def test_trips_read_from_memory_are_an_index() -> None:
    program = parsed("m = k[0, 0]\nfor i in pl.range(m):\n    n = n + m", "n")
    assert "pl.range(pl.cast(m, pl.INDEX)" in str(program)
    verify(program)
    assert parse(str(program)) == program
