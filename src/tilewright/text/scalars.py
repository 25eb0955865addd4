"""Scalar expressions as Python: as few parentheses as the tree needs, and constants that read back exactly.

A constant's dtype is left out where its surroundings give it: an int literal is an INDEX, or beside a value of another
integer dtype has that dtype; a float literal is FP32; and one that an operation takes in place of a tile has the tile's
dtype. Everywhere else it is written, ``pl.const(3, pl.INT32)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tilewright.ir.buffers import AddressOf, Broadcast, Extern, IfThenElse, Likely, Load, Ramp
from tilewright.ir.dtypes import BOOL, FP32, INDEX, DType
from tilewright.ir.scalar import Binary, BinaryKind, Const, Expr, Scalar, Select, Unary, UnaryKind, Value

Name = Callable[[Value], str]

_CONDITIONAL, _OR, _AND, _NOT, _COMPARE, _BIT_OR, _BIT_XOR, _BIT_AND, _SHIFT, _SUM, _PRODUCT, _NEGATIVE, _ATOM = range(
    1, 14
)

_BINDS = {
    BinaryKind.ADD: _SUM,
    BinaryKind.SUB: _SUM,
    BinaryKind.MUL: _PRODUCT,
    BinaryKind.DIV: _PRODUCT,
    BinaryKind.FLOORDIV: _PRODUCT,
    BinaryKind.MOD: _PRODUCT,
    BinaryKind.AND: _AND,
    BinaryKind.OR: _OR,
    BinaryKind.BIT_AND: _BIT_AND,
    BinaryKind.BIT_OR: _BIT_OR,
    BinaryKind.BIT_XOR: _BIT_XOR,
    BinaryKind.SHL: _SHIFT,
    BinaryKind.SHR: _SHIFT,
}


def literal(value: float | int | bool) -> str:
    """A number as a Python literal; infinities and NaN, which have none, as strings."""
    return repr(value) if math.isfinite(value) else f'"{value}"'


def quoted(text: str) -> str:
    """`text` as a string literal, in double quotes wherever that needs no escapes."""
    plain = text.isprintable() and not any(mark in text for mark in '"\\')
    return f'"{text}"' if plain else repr(text)


def typed_constant(value: float | int | bool, dtype: DType) -> str:
    """A constant that says its dtype itself."""
    if dtype is BOOL:
        return repr(bool(value))
    return f"pl.const({literal(value)}, pl.{dtype})"


def print_scalar(scalar: Scalar, name: Name, context: DType | None = None) -> str:
    """`scalar` as a Python expression. `context` is the dtype that a bare literal takes where the expression stands;
    None: a bare int is INDEX and a bare float FP32."""
    return _print(scalar, name, context)[0]


def _print(scalar: Scalar, name: Name, context: DType | None) -> tuple[str, int]:
    """The text, and how tightly its outermost operator binds."""
    if isinstance(scalar, Value):
        return name(scalar), _ATOM
    if isinstance(scalar, int):
        if context is None or context is INDEX:
            return str(scalar), _ATOM if scalar >= 0 else _NEGATIVE
        return typed_constant(scalar, INDEX), _ATOM
    if isinstance(scalar, Const):
        return _constant(scalar, context)
    if isinstance(scalar, Binary):
        return _binary(scalar, name)
    if isinstance(scalar, Unary):
        return _unary(scalar, name)
    if not isinstance(scalar, Select):
        return _of_loops(scalar, name), _ATOM
    then, condition, otherwise = (
        _wrapped(part, name, None, _OR) for part in (scalar.then, scalar.condition, scalar.otherwise)
    )
    return f"{then} if {condition} else {otherwise}", _CONDITIONAL


def _constant(scalar: Const, context: DType | None) -> tuple[str, int]:
    value, dtype = scalar.value, scalar.dtype
    bare = dtype is (context or FP32) and (dtype.is_float or dtype.is_integer) and math.isfinite(value)
    if bare and dtype.is_float is isinstance(value, float):
        return literal(value), _NEGATIVE if math.copysign(1, value) < 0 else _ATOM
    return typed_constant(value, dtype), _ATOM


def _wrapped(scalar: Scalar, name: Name, context: DType | None, at_least: int) -> str:
    text, binds = _print(scalar, name, context)
    return text if binds >= at_least else f"({text})"


def _beside(other: Scalar) -> DType | None:
    """The dtype that a literal next to `other` takes: an int follows it, a float does not."""
    return other.dtype if not isinstance(other, int | Const) and other.dtype.is_integer else None


def _binary(scalar: Binary, name: Name) -> tuple[str, int]:
    kind, lhs, rhs = scalar.kind, scalar.lhs, scalar.rhs
    left, right = _beside(rhs), _beside(lhs)
    if isinstance(lhs, Const) and isinstance(rhs, int | Const):
        # Two bare numbers would be computed when they are read.
        other = _wrapped(rhs, name, right, _ATOM)
        first = typed_constant(lhs.value, lhs.dtype)
        if kind in (BinaryKind.MIN, BinaryKind.MAX):
            return f"pl.{kind.value}({first}, {other})", _ATOM
        return f"{first} {kind.value} {other}", _BINDS.get(kind, _COMPARE)
    if kind in (BinaryKind.MIN, BinaryKind.MAX):
        return f"pl.{kind.value}({_print(lhs, name, left)[0]}, {_print(rhs, name, right)[0]})", _ATOM
    binds = _BINDS.get(kind, _COMPARE)
    # Comparisons chain in Python, so that neither side may be one; the rest group to the left.
    lowest = binds + 1 if binds == _COMPARE else binds
    return f"{_wrapped(lhs, name, left, lowest)} {kind.value} {_wrapped(rhs, name, right, binds + 1)}", binds


def _unary(scalar: Unary, name: Name) -> tuple[str, int]:
    if scalar.kind is UnaryKind.NEG:
        return f"-{_wrapped(scalar.operand, name, None, _NEGATIVE)}", _NEGATIVE
    if scalar.kind is UnaryKind.NOT:
        return f"not {_wrapped(scalar.operand, name, None, _NOT)}", _NOT
    inside = _print(scalar.operand, name, None)[0]
    if scalar.kind is UnaryKind.CAST:
        return f"pl.cast({inside}, pl.{scalar.dtype})", _ATOM
    return f"pl.{scalar.kind.value}({inside})", _ATOM


def _of_loops(scalar: Expr, name: Name) -> str:
    """What only the loop level has."""
    parts = [_print(child, name, None)[0] for child in scalar.children()]
    match scalar:
        case Load():
            return f"{parts[0]}[{', '.join(parts[1:]) or '()'}]"
        case Ramp():
            return f"pl.loop.ramp({', '.join(parts)}, {scalar.lanes})"
        case Broadcast():
            return f"pl.loop.broadcast({parts[0]}, {scalar.lanes})"
        case IfThenElse():
            return f"pl.loop.if_then_else({', '.join(parts)})"
        case Likely():
            return f"pl.loop.likely({parts[0]})"
        case AddressOf():
            named = [("offset", scalar.offset), ("extent", scalar.extent)]
            said = [f"{key}={_print(part, name, None)[0]}" for key, part in named if part is not None]
            return f"pl.loop.address_of({', '.join([parts[0], *said])})"
        case Extern():
            pure = ["pure=True"] if scalar.pure else []
            return f"pl.loop.extern({', '.join([quoted(scalar.name), *parts, f'dtype=pl.{scalar.dtype}', *pure])})"
        case _:
            raise AssertionError(f"unknown expression {type(scalar).__name__}")
