"""Matrix multiplication. Products are summed in FP32 (INT8: INT32).

A tile form leaves the sum in its accumulator's dtype; a tensor form rounds it to `out_dtype` once, half to even.
The result is valid in the valid rows of `lhs` and the valid columns of `rhs`; only valid k take part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.errors import AccumulatorError, DTypeError, ShapeError
from tilewright.ir.dtypes import BF16, BOOL, FP16, FP32, INT8, INT32, DType
from tilewright.ir.layout import MemorySpace
from tilewright.ir.loops import COLUMN, Contract
from tilewright.ir.op import Access, Array, LoweringContext, Needs, Op, Spelling, Work, attribute, operand, whole_access
from tilewright.ir.op import scalar as scalar_field
from tilewright.ir.scalar import Scalar, Shape, Value, dtype_of
from tilewright.ir.types import TileType, Type
from tilewright.ops.cast import Cast
from tilewright.ops.common import (
    ACC,
    LEFT,
    MAT,
    RIGHT,
    TENSOR,
    TILE,
    array_type,
    check_dtype,
    check_operands,
    check_rank,
    join_valid,
    meaning_of,
    operand_types,
    physical_of,
    rounded,
    same_extent,
)  # fmt: skip

OPERANDS = (FP32, FP16, BF16, INT8)


def accumulator_of(dtype: DType) -> DType:
    """The dtype in which products of `dtype` are summed."""
    return INT32 if dtype is INT8 else FP32


def check_product(op: Matmul | MatmulBias | MatmulAcc) -> tuple[Shape, Shape]:
    """The physical and the valid [M, N] of the product. Raises with both types named."""
    check_operands(op)
    for name, value in (("lhs", op.lhs), ("rhs", op.rhs)):
        check_dtype(op, name, value.dtype, op.dtypes)
        check_rank(op, name, value.type, 2)
    if op.lhs.dtype is not op.rhs.dtype:
        raise DTypeError(
            f"the operands of {op.qualified_name} have two dtypes",
            span=op.span,
            required="one dtype",
            found=operand_types(op),
            help=f"cast one of them: pl.cast(rhs, pl.{op.lhs.dtype})",
        )
    (m, k), (n, other) = _ways(op.lhs, op.a_trans), _ways(op.rhs, not op.b_trans)
    if not same_extent(k[1], other[1]):
        raise ShapeError(
            f"the inner sizes of {op.qualified_name} differ",
            span=op.span,
            required=f"lhs [{'K, M' if op.a_trans else 'M, K'}] and rhs [{'N, K' if op.b_trans else 'K, N'}]",
            found=operand_types(op),
            help="load both with one valid extent along K"
            if op.level is TILE
            else "transpose an operand with a_trans=True or b_trans=True",
        )
    return (m[0], n[0]), (m[1], n[1])


def _ways(value: Value, transposed: bool) -> tuple[tuple[Scalar, Scalar], tuple[Scalar, Scalar]]:
    """(physical, valid) extents of the outer and of the inner dimension."""
    rows, columns = zip(physical_of(value.type), meaning_of(value.type), strict=True)
    return (columns, rows) if transposed else (rows, columns)


def _times(op: Matmul | MatmulBias | MatmulAcc, lhs: Array, rhs: Array) -> Array:
    """``lhs @ rhs`` in the accumulator's dtype."""
    wide = np.int32 if lhs.dtype.kind in "iu" else np.float32
    left, right = lhs.T if op.a_trans else lhs, rhs.T if op.b_trans else rhs
    with np.errstate(all="ignore"):
        return np.matmul(left.astype(wide), right.astype(wide), dtype=wide)


def _times_defined(op: Matmul | MatmulBias | MatmulAcc, lhs: Array, rhs: Array) -> Array:
    """Where a row of `lhs` and a column of `rhs` are defined throughout."""
    left, right = lhs.T if op.a_trans else lhs, rhs.T if op.b_trans else rhs
    return np.logical_and(left.all(axis=1, keepdims=True), right.all(axis=0, keepdims=True))


def _work(op: Matmul | MatmulBias | MatmulAcc) -> Work:
    (m, k), (n, _) = _ways(op.lhs, op.a_trans), _ways(op.rhs, not op.b_trans)
    rows, depth, columns = (
        next((extent for extent in (valid, physical) if isinstance(extent, int)), 1) for physical, valid in (m, k, n)
    )
    nbytes = (rows + columns) * depth * op.lhs.dtype.nbytes
    return Work("matmul", elements=rows * columns, macs=(rows, columns, depth), nbytes=nbytes)


def _result_dtype(op: Matmul | MatmulBias) -> DType:
    """`out_dtype`, or the default of the level. Raises `DTypeError`."""
    accumulator = accumulator_of(op.lhs.dtype)
    default = op.lhs.dtype if op.level is TENSOR and accumulator is FP32 else accumulator
    wanted = op.out_dtype or default
    check_dtype(op, "out_dtype", wanted, (INT32,) if accumulator is INT32 else (FP32, FP16, BF16))
    return wanted


def _rounded_to(op: Matmul | MatmulBias, context: LoweringContext) -> Value:
    """The tile form, and a cast where the tensor form rounds."""
    out = context.emit(op.at_level(TILE))
    wanted = _result_dtype(op)
    return out if out.dtype is wanted else context.emit(Cast(out, wanted, level=TILE, span=op.span))


class Matmul(Op, name="matmul", result_space=ACC):
    """``out[m, n] = sum_k lhs[m, k] * rhs[k, n]``. Tensors: rounded to `out_dtype` (default: the operands' float
    dtype; INT8 gives INT32); `a_trans`, `b_trans`: the operand is stored transposed. Tiles: FP32 (INT8: INT32)."""

    lhs: Value = operand(spaces=(LEFT,))
    rhs: Value = operand(spaces=(RIGHT,))
    out_dtype: DType | None = attribute(default=None, levels=(TENSOR,))
    a_trans: bool = attribute(default=False, levels=(TENSOR,))
    b_trans: bool = attribute(default=False, levels=(TENSOR,))
    dtypes = OPERANDS
    spelling = Spelling(pto="pto.tmatmul")
    lowering = Needs(lhs=(MAT, "a_trans"), rhs=(MAT, "b_trans"))
    loops = Contract()

    def infer(self) -> Type:
        shape, valid = check_product(self)
        return array_type(self.level, shape, _result_dtype(self), valid)

    def evaluate(self, lhs: Array, rhs: Array) -> Array:
        return rounded(_times(self, lhs, rhs), _result_dtype(self))

    def defined(self, lhs: Array, rhs: Array) -> Array:
        return _times_defined(self, lhs, rhs)

    def work(self) -> Work:
        return _work(self)

    def lower(self, context: LoweringContext) -> Value:
        return _rounded_to(self, context)

    def space_when_lowered(self) -> MemorySpace | None:
        return ACC if _result_dtype(self) is accumulator_of(self.lhs.dtype) else None  # a cast comes after it


class MatmulBias(Op, name="matmul_bias", result_space=ACC):
    """``out[m, n] = bias[0, n] + sum_k lhs[m, k] * rhs[k, n]``. `bias` is [1, N] of FP32 (INT8: INT32), and is where
    the sum starts. Otherwise as `matmul`."""

    lhs: Value = operand(spaces=(LEFT,))
    rhs: Value = operand(spaces=(RIGHT,))
    bias: Value = operand(spaces=(MemorySpace.BIAS,))
    out_dtype: DType | None = attribute(default=None, levels=(TENSOR,))
    a_trans: bool = attribute(default=False, levels=(TENSOR,))
    b_trans: bool = attribute(default=False, levels=(TENSOR,))
    dtypes = OPERANDS
    spelling = Spelling(pto="pto.tmatmul.bias")
    lowering = Needs(lhs=(MAT, "a_trans"), rhs=(MAT, "b_trans"), bias=MAT)
    loops = Contract(acc="bias", acc_map=COLUMN)

    def infer(self) -> Type:
        shape, valid = check_product(self)
        check_dtype(self, "bias", self.bias.dtype, (accumulator_of(self.lhs.dtype),))
        check_rank(self, "bias", self.bias.type, 2)
        rows, columns = physical_of(self.bias.type)
        if rows != 1 or not same_extent(columns, shape[1]) or not same_extent(meaning_of(self.bias.type)[1], valid[1]):
            raise ShapeError(
                f"the bias of {self.qualified_name} is not one row of the result",
                span=self.span,
                required=f"[1, {valid[1]}]",
                found=operand_types(self),
            )
        return array_type(self.level, shape, _result_dtype(self), valid)

    def evaluate(self, lhs: Array, rhs: Array, bias: Array) -> Array:
        with np.errstate(all="ignore"):
            return rounded(bias + _times(self, lhs, rhs), _result_dtype(self))

    def defined(self, lhs: Array, rhs: Array, bias: Array) -> Array:
        return bias & _times_defined(self, lhs, rhs)

    def work(self) -> Work:
        return _work(self)

    def lower(self, context: LoweringContext) -> Value:
        return _rounded_to(self, context)

    def space_when_lowered(self) -> MemorySpace | None:
        return ACC if _result_dtype(self) is accumulator_of(self.lhs.dtype) else None  # a cast comes after it


class MatmulAcc(Op, name="matmul_acc", result_space=ACC, writes="acc"):
    """``acc[m, n] += sum_k lhs[m, k] * rhs[k, n]``; the result is the accumulator's next version. `acc` is FP32
    (INT8: INT32). While `init_cond` holds, `acc` is not read: the product alone is the result."""

    acc: Value = operand(spaces=(ACC,))
    lhs: Value = operand(spaces=(LEFT,))
    rhs: Value = operand(spaces=(RIGHT,))
    a_trans: bool = attribute(default=False, levels=(TENSOR,))
    b_trans: bool = attribute(default=False, levels=(TENSOR,))
    init_cond: Scalar | None = scalar_field(default=None)
    dtypes = OPERANDS
    spelling = Spelling()
    lowering = Needs(lhs=(MAT, "a_trans"), rhs=(MAT, "b_trans"))
    loops = Contract(acc="acc", unless="init_cond")

    def infer(self) -> Type:
        shape, valid = check_product(self)
        acc, wanted = self.acc.type, accumulator_of(self.lhs.dtype)
        if acc.dtype is not wanted:
            raise AccumulatorError(
                f"{self.qualified_name} sums in {wanted}, its accumulator is of another dtype",
                span=self.span,
                required=f"an accumulator of {wanted}",
                found=operand_types(self),
                help=f"create it with dtype=pl.{wanted}, and cast the final sum",
            )
        check_rank(self, "acc", acc, 2)
        if not all(map(same_extent, physical_of(acc), shape)):
            raise ShapeError(
                f"the accumulator of {self.qualified_name} has not the shape of the product",
                span=self.span,
                required=f"[{shape[0]}, {shape[1]}]",
                found=operand_types(self),
            )
        if self.init_cond is not None and dtype_of(self.init_cond) is not BOOL:
            raise DTypeError(
                f"{self.qualified_name} takes a condition as init_cond",
                span=self.span,
                required="BOOL",
                found=dtype_of(self.init_cond).name,
                help="compare: init_cond=(k == 0)",
            )
        if not isinstance(acc, TileType):
            return acc
        given = zip(meaning_of(acc), physical_of(acc), valid, shape, strict=True)
        return acc.without_memref().with_(valid=tuple(join_valid(*extents) for extents in given))

    def evaluate(self, acc: Array, lhs: Array, rhs: Array, init_cond: Any = None) -> Array:
        total = _times(self, lhs, rhs)
        corner = acc[: total.shape[0], : total.shape[1]]
        with np.errstate(all="ignore"):
            corner[...] = total if init_cond else corner + total
        return acc

    def defined(self, acc: Array, lhs: Array, rhs: Array, init_cond: Any = None) -> Array:
        total = _times_defined(self, lhs, rhs)
        corner = acc[: total.shape[0], : total.shape[1]]
        corner[...] = total if init_cond else corner & total
        return acc

    def work(self) -> Work:
        return _work(self)

    def accesses(self) -> tuple[Access, ...]:
        reads = [whole_access(name, getattr(self, name).type) for name in ("acc", "lhs", "rhs")]
        return (*reads, whole_access("acc", self.acc.type, writes=True))
