"""Elementwise functions made of simpler ones: remainders, sine and cosine, sums of three, leaky ReLU.

Their formulas are stated step by step, each step rounded to FP32, and every backend takes the same steps. So `fmod` and
`rem` of floats are ``a - trunc(a / b) * b`` and ``a - floor(a / b) * b``, exact as long as the quotient times `b` is;
`sin` and `cos` are within 2 units in the last place for arguments up to 100,000 in magnitude (measured: 1.6); above,
the absolute error is half the distance of neighbouring arguments, 0.04 at 1,000,000.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
# pi / 2 in parts of 8 bits, whose products with whole numbers below 2**16 are exact, and what is left of it.
HALF_PI = (1.5703125, 0.0004825592041015625, 1.2665987014770508e-06, 9.89530235528946e-10, 2.5579538487363607e-12,
           5.390302953474238e-15)  # fmt: skip
TWO_OVER_PI = 0.6366197723675814
# sin(r) = r + r * q * SINE(q) and cos(r) = 1 - q / 2 + q * q * COSINE(q), q = r * r, for |r| <= pi / 4: polynomials
# fitted by iteratively reweighted least squares on Chebyshev nodes, in FP32.
SINE = (-0.16666655242443085, 0.008332155644893646, -0.0001951462763827294)
COSINE = (0.04166664555668831, -0.001388736185617745, 2.44377224589698e-05)

Number = Any
"""An array of FP32 or an expression: the steps are the same."""


@dataclass(frozen=True, slots=True)
class _Steps:
    """What sine and cosine are computed with, besides ``+ - *``."""

    constant: Callable[[float], Number]
    floor: Callable[[Number], Number]
    rint: Callable[[Number], Number]
    select: Callable[[Number, Number, Number], Number]
    """the second where the first is above a half, else the third"""


def _wave(steps: _Steps, x: Number, quarters: int) -> Number:
    """``sin(x + quarters * pi / 2)``."""
    c = steps.constant
    n = steps.rint(x * c(TWO_OVER_PI))
    r = _reduced(steps, x, n)
    q = r * r
    sine = r + r * (q * ((q * c(SINE[2]) + c(SINE[1])) * q + c(SINE[0])))
    cosine = (c(1) - q * c(0.5)) + q * q * ((q * c(COSINE[2]) + c(COSINE[1])) * q + c(COSINE[0]))
    n = n + c(quarters)
    half = steps.floor(n * c(0.5))
    below = half - steps.floor(half * c(0.5)) * c(2)
    return steps.select(n - half * c(2), cosine, sine) * (c(1) - below * c(2))


def _reduced(steps: _Steps, x: Number, n: Number) -> Number:
    """``x - n * pi / 2``, rounded little more than once: what the third and fourth difference lose is added again."""
    products = [n * steps.constant(part) for part in HALF_PI]
    r = (x - products[0]) - products[1]
    lost = steps.constant(0)
    for product in products[2:4]:
        difference = r - product
        taken = difference - r
        error = (r - (difference - taken)) - (product + taken)
        lost = lost + error
        r = difference
    return r + ((lost - products[4]) - products[5])


def _numpy_select(chosen: Any, then: Any, otherwise: Any) -> Any:
    return cast("Any", np.where(chosen > np.float32(0.5), then, otherwise))


def _element_select(chosen: Scalar, then: Scalar, otherwise: Scalar) -> Scalar:
    return Select(binary(BinaryKind.GT, chosen, constant(0.5, FP32)), then, otherwise)


NUMPY = _Steps(np.float32, np.floor, np.rint, _numpy_select)
ELEMENT = _Steps(
    lambda value: constant(value, FP32),
    lambda x: unary(UnaryKind.FLOOR, x),
    lambda x: unary(UnaryKind.RINT, x),
    _element_select,
)


def _sin(x: Any) -> Any:
    return _wave(NUMPY, x, 0)


def _cos(x: Any) -> Any:
    return _wave(NUMPY, x, 1)


def _sin_element(op: Op, x: Scalar) -> Scalar:
    return _wave(ELEMENT, x, 0)


def _cos_element(op: Op, x: Scalar) -> Scalar:
    return _wave(ELEMENT, x, 1)


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
