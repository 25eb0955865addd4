"""The bits of integers: and, or, xor, not, and shifts.

Operands have one integer dtype, which is the result's. A shift by at least the width of the dtype, or by a negative
number of places, leaves nothing of its left side but the sign, which `shr` keeps. A machine without an instruction for
them does them element by element.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ir.loops import Elementwise
from tilewright.ir.op import Expanded, Needs, Op, Spelling, operand
from tilewright.ir.scalar import BinaryKind, Scalar, Value, binary, constant, dtype_of
from tilewright.ops.common import INTEGERS, TILE, VEC
from tilewright.ops.elementwise import BinaryOp, UnaryOp, pairwise

ONE_BY_ONE = Expanded("a loop over single elements")


class BitwiseOp(BinaryOp):
    """Base: two integers."""

    work_kind = "bitwise"
    dtypes = INTEGERS
    spelling = Spelling(pto=ONE_BY_ONE, pto_scalar=ONE_BY_ONE)


class And(BitwiseOp, name="and", scalar_name="ands", result_space=VEC):
    """``out = lhs & rhs``."""

    formula = np.bitwise_and
    loops = Elementwise(pairwise(BinaryKind.BIT_AND))


class Or(BitwiseOp, name="or", scalar_name="ors", result_space=VEC):
    """``out = lhs | rhs``."""

    formula = np.bitwise_or
    loops = Elementwise(pairwise(BinaryKind.BIT_OR))


class Xor(BitwiseOp, name="xor", scalar_name="xors", result_space=VEC):
    """``out = lhs ^ rhs``. `tmp` is not needed."""

    tmp: Value | None = operand(default=None, scratch=True, spaces=(VEC,), levels=(TILE,))
    formula = np.bitwise_xor
    loops = Elementwise(pairwise(BinaryKind.BIT_XOR))


def _width(array: Any) -> int:
    return 8 * array.dtype.itemsize


def _shl(a: Any, b: Any) -> Any:
    inside = (b >= 0) & (b < _width(a))
    return np.where(inside, a << np.where(inside, b, 0).astype(a.dtype), 0).astype(a.dtype)


def _shr(a: Any, b: Any) -> Any:
    inside = (b >= 0) & (b < _width(a))
    return a >> np.where(inside, b, _width(a) - 1).astype(a.dtype)


class Shl(BitwiseOp, name="shl", scalar_name="shls", result_space=VEC):
    """``out = lhs << rhs``."""

    formula = _shl
    loops = Elementwise(pairwise(BinaryKind.SHL))


class Shr(BitwiseOp, name="shr", scalar_name="shrs", result_space=VEC):
    """``out = lhs >> rhs``: the sign moves in from the left."""

    formula = _shr
    loops = Elementwise(pairwise(BinaryKind.SHR))


def _not_element(op: Op, x: Scalar) -> Scalar:
    return binary(BinaryKind.BIT_XOR, x, constant(-1, dtype_of(x)))


class Not(UnaryOp, name="not", result_space=VEC):
    """``out = ~tile``."""

    work_kind = "bitwise"
    dtypes = INTEGERS
    lowering = Needs(tile=VEC)
    formula = np.bitwise_not
    spelling = Spelling(pto=ONE_BY_ONE)
    loops = Elementwise(_not_element)
