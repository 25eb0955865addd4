"""Reductions. `row_*` reduce each row: [M, N] gives [M, 1]; `col_*` each column: [M, N] gives [1, N].

Only valid elements take part. Sums run in index order; FP16 and BF16 are summed in FP32 and rounded once, integers
wrap. The maximum (minimum) is NaN where an element is; of no elements it is minus (plus) infinity, or the least
(greatest) integer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from tilewright.errors import ShapeError
from tilewright.ir.loops import Reduce
from tilewright.ir.op import Array, Needs, Op, Spelling, Work, operand
from tilewright.ir.scalar import BinaryKind, Shape, Value
from tilewright.ir.types import TileType, Type
from tilewright.ops.common import (
    NUMBERS,
    TILE,
    VEC,
    array_type,
    check_dtype,
    check_operands,
    check_rank,
    compute,
    elements_of,
    meaning_of,
    physical_of,
)  # fmt: skip


class ReduceOp(Op):
    """Base of the reductions: `axis` 1 reduces rows, 0 columns."""

    tile: Value = operand(spaces=(VEC,), aliases=("input", "tensor"))
    axis: ClassVar[int] = 1
    formula: ClassVar[Callable[[Any, int], Any]]
    """the reduction of an array along an axis, which is kept with extent 1; narrow floats arrive as FP32"""
    lowering = Needs(tile=VEC)
    dtypes = NUMBERS

    def infer(self) -> Type:
        check_operands(self)
        check_dtype(self, "tile", self.tile.dtype, self.dtypes)
        kind = self.tile.type
        if self.axis == 0:
            check_rank(self, "tile", kind, 2)
        if len(physical_of(kind)) < 2:
            raise ShapeError(
                f"{self.qualified_name} takes at least two dimensions",
                span=self.span,
                found=repr(kind),
                help="reshape it to [1, N] first",
            )
        return array_type(self.level, self._reduced(physical_of(kind)), kind.dtype, self._reduced(meaning_of(kind)))

    def _reduced(self, shape: Shape) -> Shape:
        return (*shape[:-1], 1) if self.axis == 1 else (1, shape[1])

    def evaluate(self, *operands: Any, **_: Any) -> Array:
        axis = -1 if self.axis == 1 else 0
        return compute(self.tile.dtype, type(self).formula, operands[0], axis=axis)

    def defined(self, *masks: Any, **_: Any) -> Array:
        """Where every element along the axis is."""
        return np.asarray(masks[0].all(axis=-1 if self.axis == 1 else 0, keepdims=True))

    def work(self) -> Work:
        elements = elements_of(self.tile.type)
        return Work("reduce", elements=elements, nbytes=elements * self.tile.dtype.nbytes)


class RowReduce(ReduceOp):
    """Base of `row_*`: hardware wants a scratch tile like the source."""

    tmp_tile: Value | None = operand(default=None, scratch=True, spaces=(VEC,), levels=(TILE,), aliases=("tmp",))

    def scratch(self) -> dict[str, TileType]:
        kind = self.tile.type
        assert isinstance(kind, TileType)
        return {"tmp_tile": TileType(kind.shape, kind.dtype, VEC)}


class ColReduce(ReduceOp):
    """Base of `col_*`."""

    axis = 0


def running_sum(array: Any, axis: int) -> Any:
    """The sum along `axis`, element after element, that axis kept with extent 1."""
    if array.shape[axis] == 0:
        return np.sum(array, axis=axis, keepdims=True, dtype=array.dtype)
    return np.take(np.add.accumulate(array, axis=axis, dtype=array.dtype), [-1], axis=axis)


def _limit(array: Any, largest: bool) -> Any:
    if array.dtype.kind in "iu":
        info = np.iinfo(array.dtype)
        return info.max if largest else info.min
    return np.inf if largest else -np.inf


def _maximum(array: Any, axis: int) -> Any:
    return np.maximum.reduce(array, axis=axis, keepdims=True, initial=_limit(array, False))


def _minimum(array: Any, axis: int) -> Any:
    return np.minimum.reduce(array, axis=axis, keepdims=True, initial=_limit(array, True))


class RowSum(RowReduce, name="row_sum", result_space=VEC):
    """``out[i, 0] = sum_j tile[i, j]``, in order of j."""

    formula = running_sum
    spelling = Spelling()
    loops = Reduce(BinaryKind.ADD, axis=1)


def running_product(array: Any, axis: int) -> Any:
    """The product along `axis`, element after element, that axis kept with extent 1; 1 of no elements."""
    if array.shape[axis] == 0:
        return np.prod(array, axis=axis, keepdims=True, dtype=array.dtype)
    return np.take(np.multiply.accumulate(array, axis=axis, dtype=array.dtype), [-1], axis=axis)


class RowMax(RowReduce, name="row_max", result_space=VEC):
    """``out[i, 0] = max_j tile[i, j]``."""

    formula = _maximum
    spelling = Spelling()
    loops = Reduce(BinaryKind.MAX, axis=1)


class RowMin(RowReduce, name="row_min", result_space=VEC):
    """``out[i, 0] = min_j tile[i, j]``."""

    formula = _minimum
    spelling = Spelling()
    loops = Reduce(BinaryKind.MIN, axis=1)


class RowProd(RowReduce, name="row_prod", result_space=VEC):
    """``out[i, 0]`` is the product of ``tile[i, j]``, in order of j; FP16 and BF16 in FP32, rounded once."""

    formula = running_product
    spelling = Spelling()
    loops = Reduce(BinaryKind.MUL, axis=1)


class ColSum(ColReduce, name="col_sum", result_space=VEC):
    """``out[0, j] = sum_i tile[i, j]``, in order of i. `tmp_tile`, if given, is not needed."""

    tmp_tile: Value | None = operand(default=None, scratch=True, spaces=(VEC,), levels=(TILE,), aliases=("tmp",))
    formula = running_sum
    spelling = Spelling(pto="pto.tcolsum")
    loops = Reduce(BinaryKind.ADD, axis=0)


class ColMax(ColReduce, name="col_max", result_space=VEC):
    """``out[0, j] = max_i tile[i, j]``."""

    formula = _maximum
    spelling = Spelling(pto="pto.tcolmax")
    loops = Reduce(BinaryKind.MAX, axis=0)


class ColMin(ColReduce, name="col_min", result_space=VEC):
    """``out[0, j] = min_i tile[i, j]``."""

    formula = _minimum
    spelling = Spelling(pto="pto.tcolmin")
    loops = Reduce(BinaryKind.MIN, axis=0)


class ColProd(ColReduce, name="col_prod", result_space=VEC):
    """``out[0, j]`` is the product of ``tile[i, j]``, in order of i; FP16 and BF16 in FP32, rounded once."""

    formula = running_product
    spelling = Spelling(pto="pto.tcolprod")
    loops = Reduce(BinaryKind.MUL, axis=0)
