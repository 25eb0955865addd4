"""A vector meets every row or every column.

`row_expand_*` take a column vector [M, 1], one element for each row of a [M, N] tile; `col_expand_*` a row vector
[1, N]. Only valid rows (columns) that both have are valid in the result. Arithmetic as in `elementwise`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tilewright.errors import ShapeError, ValidShapeError
from tilewright.ir.loops import COLUMN, FULL, ROW, Elementwise
from tilewright.ir.op import Access, Array, Needs, Op, Spelling, Work, operand, whole_access
from tilewright.ir.op import scalar as scalar_field
from tilewright.ir.scalar import BinaryKind, Scalar, Shape, UnaryKind, Value, binary, unary
from tilewright.ir.types import Type
from tilewright.ops.common import (
    ELEMENTS,
    FLOATS,
    NUMBERS,
    TILE,
    VEC,
    array_type,
    check_operands,
    check_scalar,
    compute,
    cropped,
    elements_of,
    join_tensor_extents,
    join_valid,
    meaning_of,
    operand_types,
    physical_of,
    rounded,
    same_extent,
)  # fmt: skip
from tilewright.ops.elementwise import ElementwiseOp, pairwise


class ExpandOp(ElementwiseOp):
    """Base: `vector_axis` is the axis along which the vector has extent 1."""

    vector_axis: ClassVar[int] = 1
    work_kind = "expand"
    dtypes = NUMBERS

    def joined(self, arrays: list[tuple[str, Value]]) -> tuple[Shape, Shape]:
        (_, tile), (_, vector) = arrays
        shape, valid = physical_of(tile.type), list(meaning_of(tile.type))
        other, other_valid = physical_of(vector.type), meaning_of(vector.type)
        rank, one = len(shape), len(shape) - 2 + self.vector_axis
        if rank < 2 or len(other) != rank or other[one] != 1:
            raise self.mismatch()
        for axis in range(rank):
            if axis == one:
                continue
            if self.level is TILE:
                if not same_extent(shape[axis], other[axis]):
                    raise self.mismatch()
                valid[axis] = join_valid(valid[axis], shape[axis], other_valid[axis], other[axis])
                continue
            joined = join_tensor_extents(shape[axis], other[axis])
            if joined is None:
                raise self.mismatch()
            valid[axis] = joined
        return shape, tuple(valid)

    def mismatch(self) -> ShapeError:
        vector = "[M, 1]" if self.vector_axis == 1 else "[1, N]"
        other = "col_expand" if self.vector_axis == 1 else "row_expand"
        return ShapeError(
            f"the vector of {self.qualified_name} does not fit",
            span=self.span,
            required=f"[M, N] and a vector {vector}",
            found=operand_types(self),
            help=f"reshape the vector; one of the other direction goes with {other}...",
        )

    def _aligned(self, operands: tuple[Any, ...]) -> tuple[Array, Array]:
        """Tile and vector, both cut to the rows (columns) that both have. Raises `ValidShapeError` for an empty one."""
        tile, vector = self._read(operands)
        if vector.shape[self.vector_axis - 2] == 0:
            raise ValidShapeError(
                f"the vector of {self.qualified_name} has no element that has meaning",
                span=self.span,
                required="one valid element along its short side",
                found=operand_types(self),
                help="leave the operation out where the vector is empty",
            )
        wide = np.broadcast_to(vector, (*vector.shape[:-1], tile.shape[-1])) if self.vector_axis == 1 else (
            np.broadcast_to(vector, (*vector.shape[:-2], tile.shape[-2], vector.shape[-1]))
        )  # fmt: skip
        tile, wide = cropped(tile, wide)
        return tile, wide

    def evaluate(self, *operands: Any, **_: Any) -> Array:
        return compute(self.result_dtype(), type(self).formula, *self._aligned(operands))

    def defined(self, *masks: Any, **_: Any) -> Array:
        return np.logical_and(*self._aligned(masks))


def _expdif(a: Any, b: Any) -> Any:
    return np.exp(a - b)


def _expdif_element(op: Any, a: Scalar, b: Scalar) -> Scalar:
    return unary(UnaryKind.EXP, binary(BinaryKind.SUB, a, b))


# --- a column vector meets each row ---------------------------------------------------------------------------------
class RowExpandOp(ExpandOp):
    """Base of the row-wise ones."""

    tile: Value = operand(spaces=(VEC,), aliases=("tensor", "input"))
    row_vec: Value = operand(spaces=(VEC,))
    lowering = Needs(tile=VEC, row_vec=VEC)


class RowExpandAdd(RowExpandOp, name="row_expand_add", result_space=VEC, inplace=True, not_aliased=("row_vec",)):
    """``out[i, j] = tile[i, j] + row_vec[i, 0]``."""

    formula = np.add
    spelling = Spelling(pto="pto.trowexpandadd")
    loops = Elementwise(pairwise(BinaryKind.ADD), maps=(FULL, ROW))


class RowExpandSub(RowExpandOp, name="row_expand_sub", result_space=VEC, inplace=True, not_aliased=("row_vec",)):
    """``out[i, j] = tile[i, j] - row_vec[i, 0]``."""

    formula = np.subtract
    spelling = Spelling(pto="pto.trowexpandsub")
    loops = Elementwise(pairwise(BinaryKind.SUB), maps=(FULL, ROW))


class RowExpandMul(RowExpandOp, name="row_expand_mul", result_space=VEC, inplace=True, not_aliased=("row_vec",)):
    """``out[i, j] = tile[i, j] * row_vec[i, 0]``."""

    formula = np.multiply
    spelling = Spelling(pto="pto.trowexpandmul")
    loops = Elementwise(pairwise(BinaryKind.MUL), maps=(FULL, ROW))


class RowExpandDiv(RowExpandOp, name="row_expand_div", result_space=VEC, inplace=True, not_aliased=("row_vec",)):
    """``out[i, j] = tile[i, j] / row_vec[i, 0]``; floats only."""

    work_kind = "expand_div"
    dtypes = FLOATS
    formula = np.divide
    spelling = Spelling(pto="pto.trowexpanddiv")
    loops = Elementwise(pairwise(BinaryKind.DIV), maps=(FULL, ROW))


class RowExpandMax(RowExpandOp, name="row_expand_max", result_space=VEC, inplace=True, not_aliased=("row_vec",)):
    """``out[i, j] = max(tile[i, j], row_vec[i, 0])``; NaN where either is NaN."""

    formula = np.maximum
    spelling = Spelling(pto="pto.trowexpandmax")
    loops = Elementwise(pairwise(BinaryKind.MAX), maps=(FULL, ROW))


class RowExpandMin(RowExpandOp, name="row_expand_min", result_space=VEC, inplace=True, not_aliased=("row_vec",)):
    """``out[i, j] = min(tile[i, j], row_vec[i, 0])``; NaN where either is NaN."""

    formula = np.minimum
    spelling = Spelling(pto="pto.trowexpandmin")
    loops = Elementwise(pairwise(BinaryKind.MIN), maps=(FULL, ROW))


class RowExpandExpdif(RowExpandOp, name="row_expand_expdif", result_space=VEC, inplace=True, not_aliased=("row_vec",)):
    """``out[i, j] = exp(tile[i, j] - row_vec[i, 0])``; the difference is rounded to FP32 before the power is taken."""

    dtypes = FLOATS
    formula = _expdif
    spelling = Spelling(pto="pto.trowexpandexpdif")
    loops = Elementwise(_expdif_element, maps=(FULL, ROW))


# --- a row vector meets each column ---------------------------------------------------------------------------------
class ColExpandOp(ExpandOp):
    """Base of the column-wise ones."""

    tile: Value = operand(spaces=(VEC,), aliases=("tensor", "input"))
    col_vec: Value = operand(spaces=(VEC,))
    vector_axis = 0
    lowering = Needs(tile=VEC, col_vec=VEC)


class ColExpandAdd(ColExpandOp, name="col_expand_add", result_space=VEC, inplace=True, not_aliased=("col_vec",)):
    """``out[i, j] = tile[i, j] + col_vec[0, j]``."""

    formula = np.add
    spelling = Spelling(pto="pto.tcolexpandadd")
    loops = Elementwise(pairwise(BinaryKind.ADD), maps=(FULL, COLUMN))


class ColExpandSub(ColExpandOp, name="col_expand_sub", result_space=VEC, inplace=True, not_aliased=("col_vec",)):
    """``out[i, j] = tile[i, j] - col_vec[0, j]``."""

    formula = np.subtract
    spelling = Spelling(pto="pto.tcolexpandsub")
    loops = Elementwise(pairwise(BinaryKind.SUB), maps=(FULL, COLUMN))


class ColExpandMul(ColExpandOp, name="col_expand_mul", result_space=VEC, inplace=True, not_aliased=("col_vec",)):
    """``out[i, j] = tile[i, j] * col_vec[0, j]``."""

    formula = np.multiply
    spelling = Spelling(pto="pto.tcolexpandmul")
    loops = Elementwise(pairwise(BinaryKind.MUL), maps=(FULL, COLUMN))


class ColExpandDiv(ColExpandOp, name="col_expand_div", result_space=VEC, inplace=True, not_aliased=("col_vec",)):
    """``out[i, j] = tile[i, j] / col_vec[0, j]``; floats only."""

    work_kind = "expand_div"
    dtypes = FLOATS
    formula = np.divide
    spelling = Spelling(pto="pto.tcolexpanddiv")
    loops = Elementwise(pairwise(BinaryKind.DIV), maps=(FULL, COLUMN))


class ColExpandMax(ColExpandOp, name="col_expand_max", result_space=VEC, inplace=True, not_aliased=("col_vec",)):
    """``out[i, j] = max(tile[i, j], col_vec[0, j])``; NaN where either is NaN."""

    formula = np.maximum
    spelling = Spelling(pto="pto.tcolexpandmax")
    loops = Elementwise(pairwise(BinaryKind.MAX), maps=(FULL, COLUMN))


class ColExpandMin(ColExpandOp, name="col_expand_min", result_space=VEC, inplace=True, not_aliased=("col_vec",)):
    """``out[i, j] = min(tile[i, j], col_vec[0, j])``; NaN where either is NaN."""

    formula = np.minimum
    spelling = Spelling(pto="pto.tcolexpandmin")
    loops = Elementwise(pairwise(BinaryKind.MIN), maps=(FULL, COLUMN))


class ColExpandExpdif(ColExpandOp, name="col_expand_expdif", result_space=VEC, inplace=True, not_aliased=("col_vec",)):
    """``out[i, j] = exp(tile[i, j] - col_vec[0, j])``; the difference is rounded to FP32 before the power is taken."""

    dtypes = FLOATS
    formula = _expdif
    spelling = Spelling(pto="pto.tcolexpandexpdif")
    loops = Elementwise(_expdif_element, maps=(FULL, COLUMN))


# --- only the vector, or only a scalar, is read -----------------------------------------------------------------------
def _second(target: Any, value: Any) -> Any:
    return value


def _second_element(op: Op, target: Scalar, value: Scalar) -> Scalar:
    return value


class FillOp(ExpandOp):
    """Base: `target` gives the shape, and its elements are not read."""

    dtypes = ELEMENTS
    formula = _second

    def defined(self, *masks: Any, **_: Any) -> Array:
        return self._aligned((np.ones_like(masks[0]), *masks[1:]))[1]

    def accesses(self) -> tuple[Access, ...]:
        name, vector = self.arrays()[1]
        return (whole_access(name, vector.type), whole_access(None, self.infer(), writes=True))


class RowExpand(FillOp, name="row_expand", result_space=VEC, inplace=True, not_aliased=("row_vec",)):
    """``out[i, j] = row_vec[i, 0]``, with the shape of `target`."""

    target: Value = operand(spaces=(VEC,), aliases=("tile", "tensor"))
    row_vec: Value = operand(spaces=(VEC,))
    lowering = Needs(target=VEC, row_vec=VEC)
    spelling = Spelling()
    loops = Elementwise(_second_element, maps=(FULL, ROW))


class ColExpand(FillOp, name="col_expand", result_space=VEC, inplace=True, not_aliased=("col_vec",)):
    """``out[i, j] = col_vec[0, j]``, with the shape of `target`."""

    target: Value = operand(spaces=(VEC,), aliases=("tile", "tensor"))
    col_vec: Value = operand(spaces=(VEC,))
    vector_axis = 0
    lowering = Needs(target=VEC, col_vec=VEC)
    spelling = Spelling()
    loops = Elementwise(_second_element, maps=(FULL, COLUMN))


class Expands(ElementwiseOp, name="expands", result_space=VEC, inplace=True):
    """``out[i, j] = scalar``, with the shape and valid shape of `target`, whose elements are not read."""

    target: Value = operand(spaces=(VEC,), aliases=("tile", "tensor", "input"))
    scalar: Scalar = scalar_field(aliases=("value",))
    work_kind = "fill"
    dtypes = ELEMENTS
    lowering = Needs(target=VEC)
    spelling = Spelling()
    loops = Elementwise(_second_element)

    def infer(self) -> Type:
        check_operands(self)
        check_scalar(self, "scalar", self.scalar, self.target.dtype)
        kind = self.target.type
        return array_type(self.level, physical_of(kind), kind.dtype, meaning_of(kind))

    def evaluate(self, *operands: Any, **_: Any) -> Array:
        target, value = operands
        return rounded(np.full(target.shape, value), self.target.dtype)

    def defined(self, *masks: Any, **_: Any) -> Array:
        return np.ones_like(masks[0])

    def accesses(self) -> tuple[Access, ...]:
        return (whole_access(None, self.infer(), writes=True),)

    def work(self) -> Work:
        elements = elements_of(self.target.type)
        return Work("fill", elements=elements, nbytes=elements * self.target.dtype.nbytes)
