"""Scalar code around the instructions: `arith` on integers and floats, each result in its own type.

`index` is the assembler's 32-bit integer: a value that needs more is an error, not a wrapped number.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence

import numpy as np

from tilewright.codegen.pto.machine import Value, integer_of, number_of
from tilewright.codegen.pto.memory import DTYPES
from tilewright.codegen.pto.rounding import is_float
from tilewright.codegen.pto.syntax import Operation
from tilewright.errors import PTOError

Number = int | float


def constant(op: Operation) -> Number:
    """The value of an `arith.constant`."""
    kind, value = str(op.result_types[0]), op.attributes["value"]
    if isinstance(value, str):
        bits = int(value, 16)
        if is_float(kind):
            size = DTYPES[kind].itemsize
            return float(np.array(bits, f"u{size}").view(DTYPES[kind]))
        return fit(bits, kind)
    if not isinstance(value, int | float):
        raise PTOError("a constant must be a number", span=op.span, found=str(value))
    return fit(value, kind)


def fit(value: Number, kind: str) -> Number:
    """`value` in type `kind`: floats rounded, integers wrapped, `index` checked."""
    if is_float(kind):
        with np.errstate(all="ignore"):
            return float(np.asarray(value, np.float64).astype(DTYPES[kind]))
    number = int(value)
    if kind == "i1":
        return bool(number & 1)
    if kind == "index":
        if not -(1 << 31) <= number < 1 << 31:
            raise PTOError("an index leaves 32 bits", found=str(number))
        return number
    bits = 8 * DTYPES[kind].itemsize
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def _divide(a: int, b: int) -> int:
    if b == 0:
        raise PTOError("division by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _floor(a: int, b: int) -> int:
    if b == 0:
        raise PTOError("division by zero")
    return a // b


def _quotient(a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.divide(a, b))


_INTEGER: dict[str, Callable[[int, int], int]] = {
    "addi": operator.add,
    "subi": operator.sub,
    "muli": operator.mul,
    "divsi": _divide,
    "remsi": lambda a, b: a - b * _divide(a, b),
    "floordivsi": _floor,
    "ceildivsi": lambda a, b: -_floor(-a, b),
    "minsi": min,
    "maxsi": max,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
    "shli": lambda a, b: a << b,
    "shrsi": lambda a, b: a >> b,
}
_UNSIGNED: dict[str, Callable[[int, int], int]] = {
    "divui": _floor,
    "remui": lambda a, b: a - b * _floor(a, b),
    "ceildivui": lambda a, b: -_floor(-a, b),
    "minui": min,
    "maxui": max,
    "shrui": lambda a, b: a >> b,
}
_FLOAT: dict[str, Callable[[float, float], float]] = {
    "addf": operator.add,
    "subf": operator.sub,
    "mulf": operator.mul,
    "divf": _quotient,
    "maximumf": lambda a, b: float(np.maximum(a, b)),
    "minimumf": lambda a, b: float(np.minimum(a, b)),
    "maxnumf": lambda a, b: float(np.fmax(a, b)),
    "minnumf": lambda a, b: float(np.fmin(a, b)),
}
_TESTS: dict[str, Callable[[Number, Number], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_CONVERSIONS = frozenset(
    ("index_cast", "index_castui", "extsi", "extui", "trunci", "sitofp", "uitofp", "fptosi", "fptoui", "extf", "truncf")
)


def _unsigned(value: int, kind: str) -> int:
    return value & ((1 << (1 if kind == "i1" else 32 if kind == "index" else 8 * DTYPES[kind].itemsize)) - 1)


def _compare(op: Operation, ins: Sequence[Value]) -> bool:
    predicate = str(op.attributes.get("predicate", ""))
    a, b = number_of(ins[0]), number_of(ins[1])
    if op.name == "arith.cmpi":
        if predicate.startswith("u"):
            kind = str(op.operand_types[0])
            a, b = _unsigned(int(a), kind), _unsigned(int(b), kind)
        name = predicate[1:] if predicate not in ("eq", "ne") else predicate
    else:
        unordered = math.isnan(a) or math.isnan(b)
        if predicate in ("ord", "uno") or unordered:
            return (predicate == "ord" and not unordered) or (predicate.startswith("u") and unordered)
        name = predicate[1:]
    if name not in _TESTS:
        raise PTOError(f"`{predicate}` is no predicate of {op.name}", span=op.span)
    return _TESTS[name](a, b)


def arith(op: Operation, ins: Sequence[Value]) -> Value:
    """The result of one `arith` operation."""
    name, kind = op.name.removeprefix("arith."), str(op.result_types[0])
    if name == "constant":
        return constant(op)
    if name in ("cmpi", "cmpf"):
        return _compare(op, ins)
    if name == "select":
        return ins[1] if ins[0] else ins[2]
    if name == "negf":
        return fit(-number_of(ins[0]), kind)
    if name in _INTEGER:
        return fit(_INTEGER[name](integer_of(ins[0]), integer_of(ins[1])), kind)
    if name in _UNSIGNED:
        a, b = (_unsigned(integer_of(value), kind) for value in ins)
        return fit(_UNSIGNED[name](a, b), kind)
    if name in _FLOAT:
        return fit(_FLOAT[name](float(number_of(ins[0])), float(number_of(ins[1]))), kind)
    if name in _CONVERSIONS:
        value = number_of(ins[0])
        if name in ("extui", "uitofp", "index_castui"):
            value = _unsigned(int(value), str(op.operand_types[0]))
        return fit(value, kind)
    if name == "bitcast":
        return _bitcast(number_of(ins[0]), str(op.operand_types[0]), kind)
    raise PTOError(f"`{op.name}` is not an operation that scalar code may use", span=op.span)


def _bitcast(value: Number, source: str, target: str) -> Number:
    found = np.asarray(value, np.float64 if is_float(source) else np.int64).astype(DTYPES[source])
    return fit(found.view(DTYPES[target]).item(), target)
