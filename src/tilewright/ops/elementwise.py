"""Elementwise arithmetic, and the base that every elementwise op builds on.

Rules that hold for all of them:
  - Operands have one dtype, which is the result's. FP16 and BF16 are computed in FP32 and rounded once, half to even.
  - Integers wrap.
  - Tensors have one shape. Tiles have one physical shape; the result is valid where both operands are.
  - In the scalar form (`adds`), the right operand is a scalar of the elements' dtype, or an int literal.
  - `high_precision` is accepted and changes nothing: results are always rounded correctly, as far as NumPy's are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from tilewright.errors import ShapeError
from tilewright.ir.dtypes import DType
from tilewright.ir.loops import Elementwise
from tilewright.ir.op import Array, Needs, Op, Spelling, Work, attribute, is_array, operand
from tilewright.ir.scalar import BinaryKind, Scalar, Shape, UnaryKind, Value, binary, constant, dtype_of, unary
from tilewright.ir.types import Type
from tilewright.ops.common import (
    FLOATS,
    NUMBERS,
    TILE,
    VEC,
    array_type,
    check_dtype,
    check_operands,
    check_same_dtype,
    check_scalar,
    compute,
    count,
    cropped,
    elements_of,
    join_tensor_extents,
    join_valid,
    meaning_of,
    operand_types,
    physical_of,
    same_shape,
)  # fmt: skip


class ElementwiseOp(Op):
    """Base: every tensor or tile operand at the same index gives one element."""

    formula: ClassVar[Callable[..., Any]]
    """the NumPy meaning on arrays of one shape; narrow floats arrive as FP32"""
    work_kind: ClassVar[str] = "binary"

    def arrays(self) -> list[tuple[str, Value]]:
        """The tensor and tile operands that are read, in order; scratch is not."""
        return [(name, value) for name, value in self.operand_items() if not self.field(name).scratch]

    def result_dtype(self) -> DType:
        return dtype_of(self.arrays()[0][1])

    def check(self) -> None:
        """Operands and dtypes."""
        check_operands(self)
        arrays = self.arrays()
        for name, value in arrays:
            check_dtype(self, name, value.dtype, self.dtypes)
        check_same_dtype(self, *(name for name, _ in arrays))
        for field in self.fields:
            value: Any = getattr(self, field.name)
            if field.scalar and not is_array(value):
                check_scalar(self, field.name, value, arrays[0][1].dtype)

    def infer(self) -> Type:
        self.check()
        shape, valid = self.joined(self.arrays())
        return array_type(self.level, shape, self.result_dtype(), valid)

    def joined(self, arrays: list[tuple[str, Value]]) -> tuple[Shape, Shape]:
        """The physical and the valid shape of the result. Raises `ShapeError`."""
        first = arrays[0][1].type
        shape: Shape = physical_of(first)
        valid: Shape = meaning_of(first)
        for _, value in arrays[1:]:
            other = physical_of(value.type)
            if self.level is TILE:
                if not same_shape(shape, other):
                    raise self.mismatch()
                ways = zip(valid, shape, meaning_of(value.type), other, strict=True)
                valid = tuple(join_valid(a, p, b, q) for a, p, b, q in ways)
                continue
            if len(shape) != len(other):
                raise self.mismatch()
            joined = [join_tensor_extents(a, b) for a, b in zip(shape, other, strict=True)]
            if any(extent is None for extent in joined):
                raise self.mismatch()
            shape = valid = tuple(extent for extent in joined if extent is not None)
        return shape, valid

    def mismatch(self) -> ShapeError:
        return ShapeError(
            f"the operands of {self.qualified_name} have different shapes",
            span=self.span,
            required="one shape",
            found=operand_types(self),
            help="slice them alike; a [M, 1] or [1, N] vector goes with row_expand_... or col_expand_...",
        )

    def evaluate(self, *operands: Any, **_: Any) -> Array:
        given = self._read(operands)
        positions = [i for i, value in enumerate(given) if np.ndim(value)]
        for i, array in zip(positions, cropped(*(given[i] for i in positions)), strict=True):
            given[i] = array
        return compute(self.result_dtype(), type(self).formula, *given)

    def _read(self, operands: tuple[Any, ...]) -> list[Any]:
        """The operands without scratch and absent ones; scalars as one element."""
        fields = [f for f in self.fields if f.kind.name != "ATTRIBUTE"]
        dtype = np.dtype(self.arrays()[0][1].dtype.numpy)
        return [
            value if is_array(getattr(self, f.name)) else np.asarray(value).astype(dtype)
            for f, value in zip(fields, operands, strict=True)
            if not f.scratch and value is not None
        ]

    def defined(self, *masks: Any, **_: Any) -> Array:
        """Where every operand is."""
        fields = [f for f in self.fields if f.kind.name != "ATTRIBUTE"]
        given = [m for f, m in zip(fields, masks, strict=True) if is_array(getattr(self, f.name)) and not f.scratch]
        return np.logical_and.reduce(cropped(*given))

    def work(self) -> Work:
        elements = elements_of(self.infer())
        reads = sum(count(physical_of(value.type)) * value.dtype.nbytes for _, value in self.arrays())
        return Work(self.work_kind, elements=elements, nbytes=reads + elements * self.result_dtype().nbytes)


def pairwise(kind: BinaryKind) -> Callable[[Op, Scalar, Scalar], Scalar]:
    """``a kind b``, for a loop form."""
    return lambda op, a, b: binary(kind, a, b)


def single(kind: UnaryKind) -> Callable[[Op, Scalar], Scalar]:
    """``kind x``, for a loop form."""
    return lambda op, x: unary(kind, x)


# --- two operands ---------------------------------------------------------------------------------------------------
class BinaryOp(ElementwiseOp):
    """Base: `lhs` and `rhs`; in the scalar form `rhs` is a scalar."""

    lhs: Value = operand(spaces=(VEC,), aliases=("tile", "input", "tensor"))
    rhs: Scalar = operand(spaces=(VEC,), scalar=True, aliases=("scalar", "other"))
    lowering = Needs(lhs=VEC, rhs=VEC)
    dtypes = NUMBERS


class Add(BinaryOp, name="add", scalar_name="adds", result_space=VEC, inplace=True):
    """``out = lhs + rhs``."""

    work_kind = "add"
    formula = np.add
    spelling = Spelling(pto="pto.tadd", pto_scalar="pto.tadds")
    loops = Elementwise(pairwise(BinaryKind.ADD))


class Sub(BinaryOp, name="sub", scalar_name="subs", result_space=VEC, inplace=True):
    """``out = lhs - rhs``."""

    work_kind = "sub"
    formula = np.subtract
    spelling = Spelling(pto="pto.tsub", pto_scalar="pto.tsubs")
    loops = Elementwise(pairwise(BinaryKind.SUB))


class Mul(BinaryOp, name="mul", scalar_name="muls", result_space=VEC, inplace=True):
    """``out = lhs * rhs``."""

    work_kind = "mul"
    formula = np.multiply
    spelling = Spelling(pto="pto.tmul", pto_scalar="pto.tmuls")
    loops = Elementwise(pairwise(BinaryKind.MUL))


class Div(BinaryOp, name="div", scalar_name="divs", result_space=VEC, inplace=True):
    """``out = lhs / rhs``, correctly rounded; a division by zero gives an infinity or NaN. Floats only: integers
    have no quotient on which the machines agree."""

    high_precision: bool = attribute(default=False)
    work_kind = "div"
    dtypes = FLOATS
    formula = np.divide
    spelling = Spelling(pto="pto.tdiv", pto_scalar="pto.tdivs")
    loops = Elementwise(pairwise(BinaryKind.DIV))


class Maximum(BinaryOp, name="maximum", scalar_name="maximums", result_space=VEC, inplace=True):
    """``out = max(lhs, rhs)``; NaN where either is NaN."""

    work_kind = "max"
    formula = np.maximum
    spelling = Spelling(pto="pto.tmax", pto_scalar="pto.tmaxs")
    loops = Elementwise(pairwise(BinaryKind.MAX))


class Minimum(BinaryOp, name="minimum", scalar_name="minimums", result_space=VEC, inplace=True):
    """``out = min(lhs, rhs)``; NaN where either is NaN."""

    work_kind = "min"
    formula = np.minimum
    spelling = Spelling(pto="pto.tmin", pto_scalar="pto.tmins")
    loops = Elementwise(pairwise(BinaryKind.MIN))


# --- one operand ----------------------------------------------------------------------------------------------------
class UnaryOp(ElementwiseOp):
    """Base: one operand."""

    tile: Value = operand(spaces=(VEC,), aliases=("input", "tensor"))
    lowering = Needs(tile=VEC)
    dtypes = FLOATS


class Neg(UnaryOp, name="neg", result_space=VEC, inplace=True):
    """``out = -tile``."""

    work_kind = "neg"
    dtypes = NUMBERS
    formula = np.negative
    spelling = Spelling(pto="pto.tneg")
    loops = Elementwise(single(UnaryKind.NEG))


class Abs(UnaryOp, name="abs", result_space=VEC, inplace=True):
    """``out = |tile|``; the smallest integer stays itself."""

    work_kind = "abs"
    dtypes = NUMBERS
    formula = np.abs
    spelling = Spelling(pto="pto.tabs")
    loops = Elementwise(single(UnaryKind.ABS))


class Exp(UnaryOp, name="exp", result_space=VEC, inplace=True):
    """``out = e ** tile``."""

    work_kind = "exp"
    formula = np.exp
    spelling = Spelling(pto="pto.texp")
    loops = Elementwise(single(UnaryKind.EXP))


class Log(UnaryOp, name="log", result_space=VEC, inplace=True):
    """``out = ln(tile)``; minus infinity at 0, NaN below."""

    high_precision: bool = attribute(default=False)
    work_kind = "log"
    formula = np.log
    spelling = Spelling(pto="pto.tlog")
    loops = Elementwise(single(UnaryKind.LOG))


class Sqrt(UnaryOp, name="sqrt", result_space=VEC, inplace=True):
    """``out = sqrt(tile)``, correctly rounded; NaN below 0."""

    work_kind = "sqrt"
    formula = np.sqrt
    spelling = Spelling(pto="pto.tsqrt")
    loops = Elementwise(single(UnaryKind.SQRT))


def _rsqrt(x: Any) -> Any:
    return np.float32(1) / np.sqrt(x)


def _recip_element(op: Op, x: Scalar) -> Scalar:
    return binary(BinaryKind.DIV, constant(1, dtype_of(x)), x)


def _rsqrt_element(op: Op, x: Scalar) -> Scalar:
    return _recip_element(op, unary(UnaryKind.SQRT, x))


class Rsqrt(UnaryOp, name="rsqrt", result_space=VEC):
    """``out = 1 / sqrt(tile)``: the root is rounded to FP32, then the quotient."""

    tmp: Value | None = operand(default=None, scratch=True, spaces=(VEC,), levels=(TILE,))
    high_precision: bool = attribute(default=False)
    work_kind = "rsqrt"
    formula = _rsqrt
    spelling = Spelling(pto="pto.trsqrt")
    loops = Elementwise(_rsqrt_element)


def _recip(x: Any) -> Any:
    return np.float32(1) / x


class Recip(UnaryOp, name="recip", result_space=VEC):
    """``out = 1 / tile``, correctly rounded; an infinity at 0."""

    high_precision: bool = attribute(default=False)
    work_kind = "recip"
    formula = _recip
    spelling = Spelling(pto="pto.trecip")
    loops = Elementwise(_recip_element)


def _relu(x: Any) -> Any:
    return np.maximum(x, np.zeros((), x.dtype))


def _relu_element(op: Op, x: Scalar) -> Scalar:
    return binary(BinaryKind.MAX, x, constant(0, dtype_of(x)))


class Relu(UnaryOp, name="relu", result_space=VEC, inplace=True):
    """``out = max(tile, 0)``; NaN stays NaN."""

    work_kind = "relu"
    dtypes = NUMBERS
    formula = _relu
    spelling = Spelling(pto="pto.trelu")
    loops = Elementwise(_relu_element)
