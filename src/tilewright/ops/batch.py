"""Products with one row, and products of several matrices at once.

`gemv` is `matmul` with a left side of one row. A batch multiplies matrix by matrix; the products stand in one tile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.errors import DTypeError, ShapeError
from tilewright.ir.expansion import Expansion
from tilewright.ir.loops import COLUMN, Contract, Special
from tilewright.ir.op import Access, Array, Expanded, Op, Spelling, Work, attribute, operand, whole_access
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import TileType, TileView, Type
from tilewright.ops.common import (
    ACC,
    LEFT,
    MAT,
    RIGHT,
    TILE,
    VEC,
    check_dtype,
    check_operands,
    check_rank,
    count,
    meaning_of,
    operand_types,
    physical_of,
    same_extent,
    same_shape,
)  # fmt: skip
from tilewright.ops.elementwise import Add
from tilewright.ops.matmul import OPERANDS, Matmul, MatmulAcc, MatmulBias, accumulator_of
from tilewright.ops.movement import Move
from tilewright.ops.parts import Assemble
from tilewright.ops.scatter import next_version
from tilewright.ops.shape import Slice


# --- one row ----------------------------------------------------------------------------------------------------------
class VectorOp(Op):
    """Base: `as_product` is the multiplication of matrices that it is."""

    dtypes = OPERANDS
    spelling = Spelling(pto=Expanded("tmatmul"))

    def as_product(self) -> Op:
        raise AssertionError(f"{self.name} states no product")

    def infer(self) -> Type:
        lhs: Value = getattr(self, "lhs")  # noqa: B009
        check_operands(self)
        check_rank(self, "lhs", lhs.type, 2)
        if physical_of(lhs.type)[0] != 1:
            raise ShapeError(
                f"{self.qualified_name} multiplies one row",
                span=self.span,
                required="lhs [1, K]",
                found=operand_types(self),
                help="use the multiplication of matrices",
            )
        return self.as_product().infer()

    def evaluate(self, *operands: Any, **_: Any) -> Array:
        return self.as_product().evaluate(*operands)

    def defined(self, *masks: Any, **_: Any) -> Array | None:
        return self.as_product().defined(*masks)

    def accesses(self) -> tuple[Access, ...]:
        return self.as_product().accesses()

    def work(self) -> Work:
        return self.as_product().work()

    def expand(self, to: Expansion) -> Scalar:
        return to.op(self.as_product())


class Gemv(VectorOp, name="gemv", levels=(TILE,), result_space=ACC):
    """``out[0, n] = sum_k lhs[0, k] * rhs[k, n]``. `acc_phase` changes nothing."""

    lhs: Value = operand(spaces=(LEFT,))
    rhs: Value = operand(spaces=(RIGHT,))
    acc_phase: str = attribute(default="unspecified")
    loops = Contract()

    def as_product(self) -> Matmul:
        return Matmul(self.lhs, self.rhs, level=TILE, span=self.span)


class GemvAcc(VectorOp, name="gemv_acc", levels=(TILE,), result_space=ACC, writes="acc"):
    """``acc[0, n] += sum_k lhs[0, k] * rhs[k, n]``; the result is the accumulator's next version."""

    acc: Value = operand(spaces=(ACC,))
    lhs: Value = operand(spaces=(LEFT,))
    rhs: Value = operand(spaces=(RIGHT,))
    acc_phase: str = attribute(default="unspecified")
    loops = Contract(acc="acc")

    def as_product(self) -> MatmulAcc:
        return MatmulAcc(self.acc, self.lhs, self.rhs, level=TILE, span=self.span)


class GemvBias(VectorOp, name="gemv_bias", levels=(TILE,), result_space=ACC):
    """``out[0, n] = bias[0, n] + sum_k lhs[0, k] * rhs[k, n]``."""

    lhs: Value = operand(spaces=(LEFT,))
    rhs: Value = operand(spaces=(RIGHT,))
    bias: Value = operand()
    acc_phase: str = attribute(default="unspecified")
    loops = Contract(acc="bias", acc_map=COLUMN)

    def as_product(self) -> MatmulBias:
        return MatmulBias(self.lhs, self.rhs, self.bias, level=TILE, span=self.span)


# --- several matrices -------------------------------------------------------------------------------------------------
class BatchOp(Op):
    """Base: `lhs` [B, M, K] and `rhs` [B, K, N]; one of them may have the batch 1."""

    dtypes = OPERANDS
    spelling = Spelling(pto=Expanded("tmatmul, once for each matrix"))
    loops = Special("rows of lhs, columns of rhs")

    def product_type(self, lhs: Value, rhs: Value) -> TileType:
        """The type of the products. Raises with both types named."""
        check_operands(self)
        for name, value in (("lhs", lhs), ("rhs", rhs)):
            check_dtype(self, name, value.dtype, self.dtypes)
            check_rank(self, name, value.type, 3)
        if lhs.dtype is not rhs.dtype:
            raise DTypeError(
                f"the operands of {self.qualified_name} have two dtypes", span=self.span, found=operand_types(self)
            )
        (b, m, k), (c, other, n) = physical_of(lhs.type), physical_of(rhs.type)
        valid, right = meaning_of(lhs.type), meaning_of(rhs.type)
        known = isinstance(b, int) and isinstance(c, int) and (b == c or 1 in (b, c))
        if not known or not same_extent(k, other) or not same_extent(valid[2], right[1]):
            raise ShapeError(
                f"the operands of {self.qualified_name} do not fit",
                span=self.span,
                required="[B, M, K] and [B, K, N]",
                found=operand_types(self),
            )
        batch = max(b, c) if isinstance(b, int) and isinstance(c, int) else b
        return TileType((batch, m, n), accumulator_of(lhs.dtype), None, TileView((batch, valid[1], right[2])))

    def products(self, lhs: Array, rhs: Array) -> Array:
        wide = np.int32 if lhs.dtype.kind in "iu" else np.float32
        with np.errstate(all="ignore"):
            return np.matmul(lhs.astype(wide), rhs.astype(wide), dtype=wide)

    def known(self, lhs: Array, rhs: Array) -> Array:
        return np.asarray(lhs.all(axis=2, keepdims=True) & rhs.all(axis=1, keepdims=True))

    def one_of(self, to: Expansion, batch: Value, number: int) -> Value:
        """Matrix `number` of a batch."""
        shape, valid = physical_of(batch.type), meaning_of(batch.type)
        where = (0 if shape[0] == 1 else number, 0, 0)
        window = Slice(batch, (1, *shape[1:]), where, (1, *valid[1:]), (0,), level=TILE, span=self.span)
        return to.op(window, batch.name)

    def product_of(self, to: Expansion, lhs: Value, rhs: Value, number: int) -> Value:
        """Product `number`, of two dimensions."""
        whole = (to.op(Move(batch, MAT, span=self.span), batch.name) for batch in (lhs, rhs))
        left, right = (self.one_of(to, batch, number) for batch in whole)
        return to.op(Move(to.op(Matmul(left, right, level=TILE, span=self.span)), VEC, span=self.span))

    def macs(self, lhs: Value, rhs: Value) -> Work:
        """What all products cost."""
        kind = self.product_type(lhs, rhs)
        depth = physical_of(lhs.type)[2]
        rows = count(kind.shape[:2])
        return Work(
            "matmul",
            elements=count(kind.shape),
            macs=(rows, count(kind.shape[2:]), depth if isinstance(depth, int) else 1),
            nbytes=(count(physical_of(lhs.type)) + count(physical_of(rhs.type))) * lhs.dtype.nbytes,
        )


class BatchMatmul(BatchOp, name="batch_matmul", levels=(TILE,)):
    """``out[b, m, n] = sum_k lhs[b, m, k] * rhs[b, k, n]``, summed in FP32 (INT8: INT32), which the result is."""

    lhs: Value = operand(spaces=())
    rhs: Value = operand(spaces=())

    def infer(self) -> Type:
        return self.product_type(self.lhs, self.rhs)

    def evaluate(self, lhs: Array, rhs: Array) -> Array:
        return self.products(lhs, rhs)

    def defined(self, lhs: Array, rhs: Array) -> Array:
        return self.known(lhs, rhs)

    def work(self) -> Work:
        return self.macs(self.lhs, self.rhs)

    def expand(self, to: Expansion) -> Scalar:
        kind = self.product_type(self.lhs, self.rhs)
        out = to.room(kind.with_(space=VEC))
        for number in range(count(kind.shape[:1])):
            product = self.product_of(to, self.lhs, self.rhs, number)
            out = to.op(Assemble(out, product, (number, 0, 0), level=TILE, span=self.span))
        return out


class BatchMatmulAcc(BatchOp, name="batch_matmul_acc", levels=(TILE,), writes="acc"):
    """``acc[b, m, n] += sum_k lhs[b, m, k] * rhs[b, k, n]``; the result is the next version of `acc`, which is FP32
    (INT8: INT32)."""

    acc: Value = operand(spaces=())
    lhs: Value = operand(spaces=())
    rhs: Value = operand(spaces=())

    def infer(self) -> Type:
        kind = self.product_type(self.lhs, self.rhs)
        acc = self.acc.type
        check_dtype(self, "acc", acc.dtype, (kind.dtype,))
        check_rank(self, "acc", acc, 3)
        if not same_shape(physical_of(acc), kind.shape) or not same_shape(meaning_of(acc), kind.valid):
            raise ShapeError(
                f"the accumulator of {self.qualified_name} has not the shape of the products",
                span=self.span,
                required=repr(kind),
                found=operand_types(self),
            )
        return next_version(acc)

    def evaluate(self, acc: Array, lhs: Array, rhs: Array) -> Array:
        total = self.products(lhs, rhs)
        corner = acc[tuple(slice(0, extent) for extent in total.shape)]
        with np.errstate(all="ignore"):
            corner[...] = corner + total
        return acc

    def defined(self, acc: Array, lhs: Array, rhs: Array) -> Array:
        total = self.known(lhs, rhs)
        corner = acc[tuple(slice(0, extent) for extent in total.shape)]
        corner[...] = corner & total
        return acc

    def accesses(self) -> tuple[Access, ...]:
        reads = [whole_access(name, value.type) for name, value in self.operand_items()]
        return (*reads, whole_access("acc", self.acc.type, writes=True))

    def work(self) -> Work:
        return self.macs(self.lhs, self.rhs)

    def expand(self, to: Expansion) -> Scalar:
        out = self.acc
        for number in range(count(physical_of(self.acc.type)[:1])):
            product = self.product_of(to, self.lhs, self.rhs, number)
            total = to.op(Add(self.one_of(to, out, number), product, level=TILE, span=self.span))
            out = to.op(Assemble(out, total, (number, 0, 0), level=TILE, span=self.span))
        return out
