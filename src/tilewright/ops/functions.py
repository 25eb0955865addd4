"""Elementwise functions made of simpler ones: remainders, sine and cosine, sums of three, leaky ReLU.

Their formulas are stated step by step, each step rounded to FP32, and every backend takes the same steps. So `fmod` and
`rem` of floats are ``a - trunc(a / b) * b`` and ``a - floor(a / b) * b``, exact as long as the quotient times `b` is;
`sin` and `cos` are within 2e-7 for arguments up to 1,000 in magnitude, and 1e-6 up to 100,000 (measured).
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from tilewright.ir.dtypes import FP32
from tilewright.ir.loops import Elementwise
from tilewright.ir.op import Expanded, Needs, Op, Spelling, operand
from tilewright.ir.scalar import BinaryKind, Scalar, Select, UnaryKind, Value, binary, constant, dtype_of, unary
from tilewright.ops.common import FLOATS, NUMBERS, TILE, VEC
from tilewright.ops.elementwise import BinaryOp, ElementwiseOp, UnaryOp

STEPS = Expanded("the instructions of its formula, on whole tiles")
ADD, SUB, MUL, DIV = BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL, BinaryKind.DIV


# --- remainders -------------------------------------------------------------------------------------------------------
def _fmod(a: Any, b: Any) -> Any:
    return np.fmod(a, b) if a.dtype.kind in "iu" else a - np.trunc(a / b) * b


def _rem(a: Any, b: Any) -> Any:
    return np.remainder(a, b) if a.dtype.kind in "iu" else a - np.floor(a / b) * b


def _float_rest(rounding: UnaryKind, a: Scalar, b: Scalar) -> Scalar:
    return binary(SUB, a, binary(MUL, unary(rounding, binary(DIV, a, b)), b))


def _rest(a: Scalar, b: Scalar) -> Scalar:
    """Of integers: the remainder with the sign of `b`; 0 where `b` is 0."""
    zero, one = constant(0, dtype_of(a)), constant(1, dtype_of(a))
    return binary(BinaryKind.MOD, a, Select(binary(BinaryKind.EQ, b, zero), one, b))


def _fmod_element(op: Op, a: Scalar, b: Scalar) -> Scalar:
    """Of integers: the remainder with the sign of `b`, moved by `b` where the signs of both differ."""
    if dtype_of(a).is_float:
        return _float_rest(UnaryKind.TRUNC, a, b)
    zero, rest = constant(0, dtype_of(a)), _rest(a, b)
    opposite = binary(BinaryKind.LT, binary(BinaryKind.BIT_XOR, a, b), zero)
    moved = binary(BinaryKind.AND, binary(BinaryKind.NE, rest, zero), opposite)
    return Select(moved, binary(SUB, rest, b), rest)


def _rem_element(op: Op, a: Scalar, b: Scalar) -> Scalar:
    return _float_rest(UnaryKind.FLOOR, a, b) if dtype_of(a).is_float else _rest(a, b)


class Fmod(BinaryOp, name="fmod", scalar_name="fmods", result_space=VEC):
    """``out = lhs - trunc(lhs / rhs) * rhs``: the remainder has the sign of `lhs`. Of integers 0 where `rhs` is 0."""

    work_kind = "div"
    formula = _fmod
    spelling = Spelling(pto=STEPS, pto_scalar=STEPS)
    loops = Elementwise(_fmod_element)


class Rem(BinaryOp, name="rem", scalar_name="rems", result_space=VEC):
    """``out = lhs - floor(lhs / rhs) * rhs``: the remainder has the sign of `rhs`. Of integers 0 where `rhs` is 0.
    `tmp` is not needed."""

    tmp: Value | None = operand(default=None, scratch=True, spaces=(VEC,), levels=(TILE,))
    work_kind = "div"
    formula = _rem
    spelling = Spelling(pto=STEPS, pto_scalar=STEPS)
    loops = Elementwise(_rem_element)


# --- sums of three ----------------------------------------------------------------------------------------------------
class ThreeOp(ElementwiseOp):
    """Base: `lhs`, `rhs` (in the scalar form a scalar) and `rhs2`."""

    lhs: Value = operand(spaces=(VEC,), aliases=("tile",))
    rhs: Scalar = operand(spaces=(VEC,), scalar=True, aliases=("scalar",))
    rhs2: Value = operand(spaces=(VEC,))
    lowering = Needs(lhs=VEC, rhs=VEC, rhs2=VEC)
    work_kind = "add"
    dtypes = NUMBERS
    spelling = Spelling(pto=STEPS, pto_scalar=STEPS)


def _sum_of_three(a: Any, b: Any, c: Any) -> Any:
    return a + b + c


def _difference_and_sum(a: Any, b: Any, c: Any) -> Any:
    return a - b + c


def _sum_element(op: Op, a: Scalar, b: Scalar, c: Scalar) -> Scalar:
    return binary(ADD, binary(ADD, a, b), c)


def _difference_element(op: Op, a: Scalar, b: Scalar, c: Scalar) -> Scalar:
    return binary(ADD, binary(SUB, a, b), c)


class Addc(ThreeOp, name="addc", scalar_name="addsc", result_space=VEC):
    """``out = lhs + rhs + rhs2``, from the left; narrow floats are rounded once."""

    formula = _sum_of_three
    loops = Elementwise(_sum_element)


class Subc(ThreeOp, name="subc", scalar_name="subsc", result_space=VEC):
    """``out = lhs - rhs + rhs2``, from the left; narrow floats are rounded once."""

    formula = _difference_and_sum
    loops = Elementwise(_difference_element)


# --- leaky ReLU -------------------------------------------------------------------------------------------------------
def _leaky(x: Any, slope: Any) -> Any:
    return cast("Any", np.where(x > 0, x, x * slope))


def _leaky_element(op: Op, x: Scalar, slope: Scalar) -> Scalar:
    return Select(binary(BinaryKind.GT, x, constant(0, dtype_of(x))), x, binary(MUL, x, slope))


class Lrelu(UnaryOp, name="lrelu", result_space=VEC):
    """``out = tile`` where it is above 0, elsewhere ``tile * slope``; `slope` is a number (or, as of `prelu`,
    a tile)."""

    slope: Scalar = operand(spaces=(VEC,), scalar=True, aliases=("scalar",))
    lowering = Needs(tile=VEC, slope=VEC)
    work_kind = "relu"
    formula = _leaky
    spelling = Spelling(pto=STEPS, pto_scalar="pto.tlrelu")
    loops = Elementwise(_leaky_element)


class Prelu(ElementwiseOp, name="prelu", result_space=VEC):
    """``out = tile`` where it is above 0, elsewhere ``tile * slope``, with a slope for each element. `tmp` is not
    needed."""

    tile: Value = operand(spaces=(VEC,), aliases=("input", "tensor"))
    slope: Value = operand(spaces=(VEC,))
    tmp: Value | None = operand(default=None, scratch=True, spaces=(VEC,), levels=(TILE,))
    lowering = Needs(tile=VEC, slope=VEC)
    work_kind = "select"
    dtypes = FLOATS
    formula = _leaky
    spelling = Spelling(pto=STEPS)
    loops = Elementwise(_leaky_element)


# --- sine and cosine --------------------------------------------------------------------------------------------------
# pi in three parts: the first two have so few bits that their products with integers up to 2**15 are exact.
PI_PARTS = (3.140625, 0.0009679794311523438, -3.2584136988589307e-07)
ONE_OVER_PI = 0.3183098861837907
# (sin(r) / r - 1) / r**2 as a polynomial of r**2 for |r| <= pi / 2, fitted by weighted least squares, in FP32
SINE = (-0.16666659712791443, 0.008333083242177963, -0.0001981081150006503, 2.6083105240104487e-06)


def _f(value: float) -> np.float32:
    return np.float32(value)


def _wave(n: Any, h: Any, x: Any, sign: float) -> Any:
    """``sin(x - h * pi)``, times `sign` where `n` is even and minus `sign` where it is odd."""
    r = ((x - h * _f(PI_PARTS[0])) - h * _f(PI_PARTS[1])) - h * _f(PI_PARTS[2])
    q = r * r
    p = ((q * _f(SINE[3]) + _f(SINE[2])) * q + _f(SINE[1])) * q + _f(SINE[0])
    odd = n - np.floor(n * _f(0.5)) * _f(2)
    return (p * q * r + r) * (odd * _f(-2 * sign) + _f(sign))


def _sin(x: Any) -> Any:
    n = np.rint(x * _f(ONE_OVER_PI))
    return _wave(n, n, x, 1.0)


def _cos(x: Any) -> Any:
    n = np.rint(x * _f(ONE_OVER_PI) - _f(0.5))
    return _wave(n, n + _f(0.5), x, -1.0)


def _constant(value: float) -> Scalar:
    return constant(value, FP32)


def _wave_element(n: Scalar, h: Scalar, x: Scalar, sign: float) -> Scalar:
    """`_wave`, step for step."""
    r = x
    for part in PI_PARTS:
        r = binary(SUB, r, binary(MUL, h, _constant(part)))
    q = binary(MUL, r, r)
    p: Scalar = binary(MUL, q, _constant(SINE[3]))
    for coefficient in (SINE[2], SINE[1]):
        p = binary(MUL, binary(ADD, p, _constant(coefficient)), q)
    p = binary(ADD, p, _constant(SINE[0]))
    halves = unary(UnaryKind.FLOOR, binary(MUL, n, _constant(0.5)))
    odd = binary(SUB, n, binary(MUL, halves, _constant(2)))
    signed = binary(ADD, binary(MUL, odd, _constant(-2 * sign)), _constant(sign))
    return binary(MUL, binary(ADD, binary(MUL, binary(MUL, p, q), r), r), signed)


def _sin_element(op: Op, x: Scalar) -> Scalar:
    n = unary(UnaryKind.RINT, binary(MUL, x, _constant(ONE_OVER_PI)))
    return _wave_element(n, n, x, 1.0)


def _cos_element(op: Op, x: Scalar) -> Scalar:
    n = unary(UnaryKind.RINT, binary(SUB, binary(MUL, x, _constant(ONE_OVER_PI)), _constant(0.5)))
    return _wave_element(n, binary(ADD, n, _constant(0.5)), x, -1.0)


class Sin(UnaryOp, name="sin", result_space=VEC):
    """``out = sin(tile)``, in radians."""

    work_kind = "transcendental"
    formula = _sin
    spelling = Spelling(pto=STEPS)
    loops = Elementwise(_sin_element)


class Cos(UnaryOp, name="cos", result_space=VEC):
    """``out = cos(tile)``, in radians."""

    work_kind = "transcendental"
    formula = _cos
    spelling = Spelling(pto=STEPS)
    loops = Elementwise(_cos_element)
