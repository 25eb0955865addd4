"""The same bytes seen as elements of another dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.errors import ShapeError
from tilewright.ir.dtypes import BOOL, DType
from tilewright.ir.expansion import Expansion
from tilewright.ir.loops import Index
from tilewright.ir.op import (
    Array,
    Inherit,
    LoweringContext,
    Needs,
    Op,
    Spelling,
    Work,
    attribute,
    operand,
    scalars,
)
from tilewright.ir.scalar import BinaryKind, Scalar, Shape, Value, binary
from tilewright.ir.types import TensorType, TileType, TileView, Type
from tilewright.ops.common import (
    TILE,
    check_lengths,
    check_operands,
    count,
    in_ddr,
    meaning_of,
    operand_types,
    physical_of,
    same_shape,
)
from tilewright.ops.movement import whole_load
from tilewright.ops.parts import Assemble
from tilewright.ops.shape import Reshape, reshaped_valid


def _same_place(op: ReinterpretView, *ix: Scalar) -> Shape:
    """The element of the source that holds the first byte of the one at `ix`."""
    old, new = op.data.dtype.nbytes, op.dtype.nbytes
    column = binary(BinaryKind.FLOORDIV, binary(BinaryKind.MUL, ix[-1], new), old)
    return (*ix[:-1], column)


class ReinterpretView(Op, name="reinterpret_view", result_space=Inherit("data"), view_of="data"):
    """The bytes of `data` as elements of `dtype`. Without `shape` the last dimension is scaled by the ratio of the
    sizes of the elements; `shape` states another one of as many bytes."""

    data: Value = operand(aliases=("input", "tensor", "tile"))
    dtype: DType = attribute()
    shape: Shape | None = scalars(default=None)
    spelling = Spelling()
    lowering = Needs()
    loops = Index(_same_place, "data")

    def infer(self) -> Type:
        check_operands(self)
        kind = self.data.type
        if BOOL in (kind.dtype, self.dtype) and self.dtype is not kind.dtype:
            raise self._refused("a mask has no bytes that mean something in another dtype")
        shape, valid = self._scaled(physical_of(kind)), self._scaled(meaning_of(kind))
        if self.shape is not None:
            if count(self.shape) != count(shape):
                raise self._refused("the shape has another number of bytes")
            valid = self.shape if same_shape(valid, shape) else reshaped_valid(shape, valid, self.shape)
            shape = self.shape
        if valid is None:
            raise self._refused("the valid part of the tile is no box in the new shape")
        check_lengths(self, len(shape), valid=valid)
        if isinstance(kind, TensorType):
            return TensorType(shape, self.dtype)
        assert isinstance(kind, TileType)
        return TileType(shape, self.dtype, kind.space, TileView(valid, compact=kind.view.compact))

    def _refused(self, why: str) -> ShapeError:
        found = f"{operand_types(self)} as {self.dtype}" + (f" {list(self.shape)}" if self.shape else "")
        return ShapeError(f"{self.qualified_name}: {why}", span=self.span, found=found)

    def _scaled(self, shape: Shape) -> Shape:
        old, new = self.data.dtype.nbytes, self.dtype.nbytes
        if old == new:
            return shape
        total = binary(BinaryKind.MUL, shape[-1], old)
        if new > old and (not isinstance(total, int) or total % new):
            raise self._refused("a row is no whole number of the new elements")
        return (*shape[:-1], binary(BinaryKind.FLOORDIV, total, new))

    def evaluate(self, data: Array, shape: Any) -> Array:
        rows = np.ascontiguousarray(data).view(np.dtype(self.dtype.numpy))
        return rows if shape is None else rows.reshape(tuple(shape))

    def defined(self, data: Array, shape: Any) -> Array:
        """An element is where all of its bytes are."""
        old, new = self.data.dtype.nbytes, self.dtype.nbytes
        whole = np.repeat(data, max(1, old // new), axis=-1)
        ratio = max(1, new // old)
        mask = np.asarray(whole.reshape(*whole.shape[:-1], whole.shape[-1] // ratio, ratio).all(axis=-1))
        return mask if shape is None else mask.reshape(tuple(shape))

    def work(self) -> Work:
        return Work("none")

    def lower(self, context: LoweringContext) -> Value:
        source = self.data
        if in_ddr(source):
            source = context.emit(whole_load(source, context.space), source.name)
        return context.emit(ReinterpretView(source, self.dtype, self.shape, level=TILE, span=self.span))

    @property
    def is_expanded(self) -> bool:
        """Elements of another size must lie without gaps; another shape is one more view."""
        return self.level is TILE and (self.shape is not None or self.data.dtype.nbytes != self.dtype.nbytes)

    def expand(self, to: Expansion) -> Scalar:
        data = self.data
        if data.dtype.nbytes != self.dtype.nbytes:
            data = to.op(
                Assemble(to.room(data.type), data, (0,) * len(physical_of(data.type)), level=TILE, span=self.span)
            )
        found = to.plain(ReinterpretView(data, self.dtype, level=TILE, span=self.span))
        if self.shape is None:
            return found
        kind = self.infer()
        return to.op(Reshape(found, self.shape, meaning_of(kind), level=TILE, span=self.span))
