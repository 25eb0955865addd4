"""Arithmetic on scalars: Python numbers that are known now, and scalar expressions that are not.

A Python number has no dtype of its own: beside a scalar expression it takes that one's. Two numbers are computed
here and now, within bounds, so that no source text can keep the reader busy.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, cast

from tilewright.errors import DTypeError, LanguageError
from tilewright.frontend.bindings import as_scalar, describe, is_number
from tilewright.ir.dtypes import INDEX
from tilewright.ir.scalar import (
    Binary,
    BinaryKind,
    Expr,
    Scalar,
    UnaryKind,
    binary,
    constant_value,
    dtype_of,
    logic,
    unary,
)
from tilewright.ir.scalar import cast as convert
from tilewright.ir.types import Type

LARGEST = 2**63
"""Integers known when reading stay below this magnitude."""

KINDS: dict[type[ast.AST], BinaryKind] = {
    ast.Add: BinaryKind.ADD,
    ast.Sub: BinaryKind.SUB,
    ast.Mult: BinaryKind.MUL,
    ast.Div: BinaryKind.DIV,
    ast.FloorDiv: BinaryKind.FLOORDIV,
    ast.Mod: BinaryKind.MOD,
    ast.Lt: BinaryKind.LT,
    ast.LtE: BinaryKind.LE,
    ast.Gt: BinaryKind.GT,
    ast.GtE: BinaryKind.GE,
    ast.Eq: BinaryKind.EQ,
    ast.NotEq: BinaryKind.NE,
    ast.BitAnd: BinaryKind.BIT_AND,
    ast.BitOr: BinaryKind.BIT_OR,
    ast.BitXor: BinaryKind.BIT_XOR,
    ast.LShift: BinaryKind.SHL,
    ast.RShift: BinaryKind.SHR,
}
_OF_INTEGERS = frozenset((BinaryKind.BIT_AND, BinaryKind.BIT_OR, BinaryKind.BIT_XOR, BinaryKind.SHL, BinaryKind.SHR))


def _power(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        if b < 0:
            return float(a) ** b
        return a**b if b <= 64 or abs(a) <= 1 else 2 * LARGEST
    return a**b


def _shift(a: int, b: int) -> int:
    return a << b if 0 <= b < 64 else 2 * LARGEST


_NOW: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: _power,
    ast.LShift: _shift,
    ast.RShift: lambda a, b: a >> b,
    ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b,
    ast.BitXor: lambda a, b: a ^ b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
}


def compute(operator: ast.AST, lhs: object, rhs: object) -> object:
    """`lhs operator rhs` for two Python numbers."""
    try:
        result = _NOW[type(operator)](lhs, rhs)
    except (ZeroDivisionError, TypeError, ValueError, OverflowError) as error:
        raise LanguageError(f"this cannot be computed: {error}", found=f"{describe(lhs)} and {describe(rhs)}") from None
    return checked(result)


def checked(number: object) -> object:
    """`number`. Raises `LanguageError` for an integer of more than 64 bits."""
    if isinstance(number, int) and abs(number) > LARGEST:
        raise LanguageError("this integer does not fit 64 bits", required="at most 2 ** 63 in magnitude")
    return number


def combine(operator: ast.AST, lhs: object, rhs: object) -> object:
    """`lhs operator rhs` for two scalars, of which at least one is an expression. A number takes the other's dtype."""
    kind = KINDS.get(type(operator))
    if kind is None:
        raise LanguageError(
            "this operator does not work on scalars of the program",
            required=" ".join(k.value for k in BinaryKind),
            found=type(operator).__name__,
        )
    return apply(kind, *_alike(lhs, rhs))


def apply(kind: BinaryKind, lhs: Scalar, rhs: Scalar) -> Scalar:
    """`lhs kind rhs`. An integer read from memory is widened where it meets an index. Raises `DTypeError` for a
    quotient of integers, which is written `//`."""
    left, right = dtype_of(lhs), dtype_of(rhs)
    if left.is_integer and right.is_integer and INDEX in (left, right):
        lhs, rhs = as_index(lhs), as_index(rhs)
        left = right = INDEX
    if left is not right and INDEX in (left, right) and not (isinstance(lhs, int) or isinstance(rhs, int)):
        raise DTypeError(
            f"the operands of {kind.value!r} have two dtypes",
            found=f"{left} and {right}",
            help="an int such as 0 is an INDEX: start a sum of floats with 0.0, or cast with pl.cast(x, pl.FP32)",
        )
    if kind is BinaryKind.DIV and not dtype_of(lhs).is_float:
        raise DTypeError("/ divides floats", found=f"{dtype_of(lhs)}", help="write // for integers")
    if kind in _OF_INTEGERS and not dtype_of(lhs).is_integer:
        raise DTypeError(
            f"{kind.value} works on the bits of integers",
            found=f"{dtype_of(lhs)}",
            help="write `and`, `or` or `not` for conditions",
        )
    return binary(kind, lhs, rhs)


def _alike(lhs: object, rhs: object) -> tuple[Scalar, Scalar]:
    """Two scalars as expressions of one dtype, where one may be a number without any."""
    if is_number(lhs) and isinstance(rhs, Expr):
        return literal(lhs, rhs), rhs
    if is_number(rhs) and isinstance(lhs, Expr):
        return lhs, literal(rhs, lhs)
    left, right = as_scalar(lhs), as_scalar(rhs)
    if left is None or right is None:
        raise LanguageError("both sides must be scalars", found=f"{describe(lhs)} and {describe(rhs)}")
    return left, right


def literal(number: object, beside: Expr) -> Scalar:
    """A Python number as a constant of the dtype of the scalar beside it."""
    dtype = beside.dtype
    if isinstance(number, float) and not dtype.is_float:
        raise DTypeError(
            "a float meets an integer scalar", found=f"{number!r} and a scalar of {dtype}", help="cast one of them"
        )
    found = as_scalar(number, dtype)
    assert found is not None
    return found


def extreme(kind: BinaryKind, values: list[object]) -> object:
    """`pl.min` and `pl.max` of scalars."""
    result: Any = values[0]
    for value in values[1:]:
        if is_number(result) and is_number(value):
            smaller = min if kind is BinaryKind.MIN else max
            result = smaller(result, cast("Any", value))
        else:
            result = apply(kind, *_alike(result, value))
    return result


def as_index(scalar: Scalar) -> Scalar:
    """An integer of any width as an INDEX: offsets, extents and trip counts are computed in that, their sums too, so
    that ``m + 8 - m`` is 8 for an ``m`` that was read from memory."""
    if isinstance(scalar, Binary) and scalar.kind in (BinaryKind.ADD, BinaryKind.SUB):
        return binary(scalar.kind, as_index(scalar.lhs), as_index(scalar.rhs))
    return convert(scalar, INDEX)


def negate(value: object) -> object:
    """`-value`."""
    if isinstance(value, int | float):
        return checked(-value)
    scalar = as_scalar(value)
    assert scalar is not None
    return unary(UnaryKind.NEG, scalar)


def invert(value: object) -> object:
    """`not value`."""
    if not isinstance(value, Expr):
        return not value
    known = constant_value(value)
    return unary(UnaryKind.NOT, value) if known is None else not known


def both(kind: BinaryKind, lhs: Scalar, rhs: Scalar) -> Scalar:
    """`lhs and rhs`, `lhs or rhs`, for conditions."""
    return logic(kind, as_condition(lhs), as_condition(rhs))


def as_condition(scalar: Scalar) -> Scalar:
    """`scalar` as a condition: itself when BOOL, else whether it is not zero."""
    dtype = dtype_of(scalar)
    if dtype.kind == "bool":
        return scalar
    return binary(BinaryKind.NE, scalar, 0 if dtype is INDEX else _zero(scalar))


def _zero(scalar: Scalar) -> Scalar:
    found = as_scalar(0, dtype_of(scalar))
    assert found is not None
    return found


def is_static(binding: object) -> bool:
    """Whether a binding is known while reading."""
    return not isinstance(binding, Expr) and not isinstance(binding, Type)
