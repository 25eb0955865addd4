"""Scalar expressions as numbers. Arithmetic is that of the dtype: INDEX as Python integers, floats rounded to their
dtype after each step, narrow integers wrapping."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilewright.ir.dtypes import BOOL, INDEX, DType
from tilewright.ir.scalar import Binary, BinaryKind, Const, Expr, Scalar, Select, Unary, UnaryKind, Value
from tilewright.ops.common import saturated


def _width(value: Any) -> int:
    """Bits of an integer: INDEX ones are Python's."""
    return INDEX.bits if isinstance(value, int) else 8 * int(np.asarray(value).itemsize)


def _shifted(value: int, places: int, width: int, *, left: bool) -> Any:
    """`value` shifted within `width` bits, as two's complement."""
    if not 0 <= places < width:
        return 0 if left or value >= 0 else -1
    if not left:
        return value >> places
    wrapped = (value << places) & ((1 << width) - 1)
    return wrapped - (1 << width) if wrapped >> (width - 1) else wrapped


BINARY: dict[BinaryKind, Callable[[Any, Any], Any]] = {
    BinaryKind.ADD: operator.add,
    BinaryKind.SUB: operator.sub,
    BinaryKind.MUL: operator.mul,
    BinaryKind.DIV: lambda a, b: a / b,
    BinaryKind.FLOORDIV: lambda a, b: a // b,
    BinaryKind.MOD: operator.mod,
    BinaryKind.MIN: min,
    BinaryKind.MAX: max,
    BinaryKind.LT: operator.lt,
    BinaryKind.LE: operator.le,
    BinaryKind.GT: operator.gt,
    BinaryKind.GE: operator.ge,
    BinaryKind.EQ: operator.eq,
    BinaryKind.NE: operator.ne,
    BinaryKind.AND: lambda a, b: bool(a) and bool(b),
    BinaryKind.OR: lambda a, b: bool(a) or bool(b),
    BinaryKind.BIT_AND: lambda a, b: a & b,
    BinaryKind.BIT_OR: lambda a, b: a | b,
    BinaryKind.BIT_XOR: lambda a, b: a ^ b,
    BinaryKind.SHL: lambda a, b: _shifted(int(a), int(b), _width(a), left=True),
    BinaryKind.SHR: lambda a, b: _shifted(int(a), int(b), _width(a), left=False),
}
UNARY: dict[UnaryKind, Callable[[Any], Any]] = {
    UnaryKind.NEG: operator.neg,
    UnaryKind.NOT: lambda a: not a,
    UnaryKind.ABS: abs,
    UnaryKind.EXP: np.exp,
    UnaryKind.LOG: np.log,
    UnaryKind.SQRT: np.sqrt,
    UnaryKind.RINT: np.rint,
    UnaryKind.FLOOR: np.floor,
    UnaryKind.CEIL: np.ceil,
    UnaryKind.TRUNC: np.trunc,
}


def number(value: Any, dtype: DType) -> Any:
    """`value` as a number of `dtype`; a float beyond an integer's limits is the limit, NaN is 0."""
    if dtype is INDEX:
        return int(value)
    if dtype is BOOL:
        return bool(value)
    given = np.asarray(value)
    if dtype.is_integer and given.dtype.kind not in "iub":
        return saturated(np.trunc(given.astype(np.float64)), dtype)[()]
    return given.astype(np.dtype(dtype.numpy))[()]


def evaluate_scalar(scalar: Scalar, env: Mapping[Value, Any]) -> Any:
    """The number that `scalar` stands for, its values looked up in `env`."""
    if isinstance(scalar, int):
        return scalar
    match scalar:
        case Value():
            return env[scalar]
        case Const():
            return number(scalar.value, scalar.dtype)
        case Binary():
            return number(
                BINARY[scalar.kind](evaluate_scalar(scalar.lhs, env), evaluate_scalar(scalar.rhs, env)), scalar.dtype
            )
        case Unary(kind=UnaryKind.CAST):
            return number(evaluate_scalar(scalar.operand, env), scalar.dtype)
        case Unary():
            return number(UNARY[scalar.kind](evaluate_scalar(scalar.operand, env)), scalar.dtype)
        case Select():
            taken = scalar.then if evaluate_scalar(scalar.condition, env) else scalar.otherwise
            return evaluate_scalar(taken, env)
        case Expr():
            raise AssertionError(f"unknown expression {type(scalar).__name__}")
