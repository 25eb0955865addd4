"""Scalar expressions: Python's own precedence, no parenthesis too many, constants that keep their dtype and bits."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tilewright.ir.dtypes import BF16, BOOL, FP32, INDEX, INT32, DType
from tilewright.ir.scalar import Binary, BinaryKind, Const, Scalar, Unary, UnaryKind, Value, binary, cast, unary
from tilewright.ir.types import ScalarType
from tilewright.text.scalars import literal, print_scalar, quoted

K = BinaryKind


def index(name: str) -> Value:
    return Value(name, ScalarType(INDEX))


def number(name: str, dtype: DType) -> Value:
    return Value(name, ScalarType(dtype))


def text(scalar: Scalar, context: DType | None = None) -> str:
    return print_scalar(scalar, lambda value: value.name, context)


A, B, C = index("a"), index("b"), index("c")
X, Y = number("x", FP32), number("y", FP32)
N = number("n", INT32)
P, Q, R = (binary(K.LT, value, 3) for value in (A, B, C))


@pytest.mark.parametrize(
    ("scalar", "expected"),
    [
        (A + B + C, "a + b + c"),
        (A + (B + C), "a + (b + c)"),
        (A - (B - C), "a - (b - c)"),
        (A - B - C, "a - b - c"),
        ((A + B) * C, "(a + b) * c"),
        (A + B * C, "a + b * c"),
        (binary(K.FLOORDIV, A * B, C), "a * b // c"),
        (A * (B // C), "a * (b // c)"),
        (A % B * 4, "a % b * 4"),
        (binary(K.MIN, A + 1, B), "pl.min(a + 1, b)"),
        (binary(K.MAX, binary(K.MIN, A, 8), B) - 1, "pl.max(pl.min(a, 8), b) - 1"),
        (-(A + B), "-(a + b)"),
        (-A * B, "-a * b"),
        (A * -3, "a * -3"),
        (A // -B, "a // -b"),
        (binary(K.AND, binary(K.AND, P, Q), R), "a < 3 and b < 3 and c < 3"),
        (binary(K.AND, P, binary(K.AND, Q, R)), "a < 3 and (b < 3 and c < 3)"),
        (binary(K.OR, binary(K.AND, P, Q), R), "a < 3 and b < 3 or c < 3"),
        (binary(K.AND, binary(K.OR, P, Q), R), "(a < 3 or b < 3) and c < 3"),
        (binary(K.EQ, P, Q), "(a < 3) == (b < 3)"),
        (unary(UnaryKind.NOT, binary(K.OR, P, Q)), "not (a < 3 or b < 3)"),
        (unary(UnaryKind.NOT, P), "not a < 3"),
        (binary(K.AND, unary(UnaryKind.NOT, P), Q), "not a < 3 and b < 3"),
        (binary(K.EQ, unary(UnaryKind.NOT, P), Q), "(not a < 3) == (b < 3)"),
        (cast(A + 1, INT32), "pl.cast(a + 1, pl.INT32)"),
        (N + 3, "n + 3"),
        (X * Const(2.0, FP32), "x * 2.0"),
        (X - Const(-0.0, FP32), "x - -0.0"),
        (number("h", BF16) + Const(2.0, BF16), "h + pl.const(2.0, pl.BF16)"),
        (Const(True, BOOL), "True"),
        (Const(3, INT32), "pl.const(3, pl.INT32)"),
        (Const(1.5, FP32), "1.5"),
        (Const(1.5, BF16), "pl.const(1.5, pl.BF16)"),
        (Const(math.inf, FP32), 'pl.const("inf", pl.FP32)'),
        (Const(-math.inf, FP32), 'pl.const("-inf", pl.FP32)'),
        (Const(math.nan, FP32), 'pl.const("nan", pl.FP32)'),
        (Unary(UnaryKind.EXP, X, FP32), "pl.exp(x)"),
    ],
)
def test_expressions(scalar: Scalar, expected: str) -> None:
    assert text(scalar) == expected


def test_a_literal_in_place_of_a_tile_has_the_tiles_dtype() -> None:
    assert text(Const(2.0, BF16), BF16) == "2.0"
    assert text(Const(3, INT32), INT32) == "3"
    assert text(Const(2.0, FP32), BF16) == "pl.const(2.0, pl.FP32)"
    assert text(3, BF16) == "pl.const(3, pl.INDEX)"
    assert text(Const(math.inf, BF16), BF16) == 'pl.const("inf", pl.BF16)'
    assert text(A + 3, BF16) == "a + 3"


def built(kind: BinaryKind, lhs: Any, rhs: Any) -> Scalar:
    return Binary(kind, lhs, rhs, INDEX)


@pytest.mark.parametrize("outer", [K.ADD, K.SUB, K.MUL, K.FLOORDIV, K.MOD])
@pytest.mark.parametrize("inner", [K.ADD, K.SUB, K.MUL, K.FLOORDIV, K.MOD])
def test_python_reads_the_same_tree(outer: BinaryKind, inner: BinaryKind) -> None:
    """Evaluating the text in Python gives the tree back, whichever side the inner operator stands on."""
    values = {"a": A, "b": B, "c": C}
    for tree in (built(outer, built(inner, A, B), C), built(outer, A, built(inner, B, C))):
        names: dict[str, Any] = {name: _Builds(value) for name, value in values.items()}
        assert eval(text(tree), names).scalar == tree


class _Builds:
    """Stands for an expression, and builds without folding."""

    def __init__(self, scalar: Scalar) -> None:
        self.scalar = scalar

    def __add__(self, other: _Builds) -> _Builds:
        return _Builds(built(K.ADD, self.scalar, other.scalar))

    def __sub__(self, other: _Builds) -> _Builds:
        return _Builds(built(K.SUB, self.scalar, other.scalar))

    def __mul__(self, other: _Builds) -> _Builds:
        return _Builds(built(K.MUL, self.scalar, other.scalar))

    def __floordiv__(self, other: _Builds) -> _Builds:
        return _Builds(built(K.FLOORDIV, self.scalar, other.scalar))

    def __mod__(self, other: _Builds) -> _Builds:
        return _Builds(built(K.MOD, self.scalar, other.scalar))


@pytest.mark.parametrize("value", [0.1, 1e-45, 3.4028234663852886e38, -0.0, 1 / 3, 5e-324])
def test_floats_keep_every_bit(value: float) -> None:
    assert repr(float(eval(literal(value)))) == repr(value)


@pytest.mark.parametrize("value", ["plain", 'a "quoted" word', "it's", "back\\slash", "line\nbreak", "größe"])
def test_strings_keep_every_letter(value: str) -> None:
    assert eval(quoted(value)) == value
    assert quoted("plain") == '"plain"'
