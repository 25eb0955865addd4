"""What stands outside the valid part becomes a value.

Zero, or the least or greatest value of the dtype (of floats: the infinities), so that a reduction over the whole
physical shape gives what one over the valid part would.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.errors import OperandError, ShapeError
from tilewright.ir.dtypes import DType
from tilewright.ir.expansion import Expansion
from tilewright.ir.layout import Pad
from tilewright.ir.loops import Special
from tilewright.ir.op import Array, Expanded, LoweringContext, Needs, Op, Spelling, Work, attribute, operand, scalars
from tilewright.ir.scalar import Scalar, Shape, Value
from tilewright.ir.types import TileType, TileView, Type
from tilewright.ops.common import (
    NUMBERS,
    TILE,
    VEC,
    array_type,
    check_dtype,
    check_lengths,
    check_operands,
    elements_of,
    filled,
    integer_limits,
    meaning_of,
    physical_of,
    same_extent,
    same_shape,
)
from tilewright.ops.flat import check_rows, flat_shape
from tilewright.ops.parts import Assemble


def pad_value_of(pad: Pad, dtype: DType) -> float:
    """The element that `pad` stands for."""
    if pad is Pad.ZERO:
        return 0
    if dtype.is_float:
        return np.inf if pad is Pad.MAX else -np.inf
    low, high = integer_limits(dtype)
    return high if pad is Pad.MAX else low


class PadOp(Op):
    """Base: the result is valid throughout."""

    tile: Value = operand(spaces=(VEC,), aliases=("tensor", "input"))
    dtypes = NUMBERS
    lowering = Needs(tile=VEC)

    def filled_shape(self) -> Shape:
        """The physical shape of the result, all of it valid."""
        raise AssertionError(f"{self.name} states no shape")

    def value(self) -> float:
        return 0

    def check(self, pad: Pad) -> None:
        check_operands(self)
        check_dtype(self, "tile", self.tile.dtype, self.dtypes)
        if pad is Pad.NULL:
            raise OperandError(
                f"{self.qualified_name} needs a value to fill with",
                span=self.span,
                required="PadValue.zero, PadValue.max or PadValue.min",
                found="PadValue.null",
            )

    def put(self, tile: Array, shape: Any) -> Array:
        """`tile` at the top left of an array that holds the value elsewhere."""
        out = filled(shape, self.value(), self.tile.dtype)
        out[tuple(slice(0, extent) for extent in tile.shape)] = tile
        return out

    def put_mask(self, mask: Array, shape: Any) -> Array:
        out = np.ones(tuple(shape), np.bool_)
        out[tuple(slice(0, extent) for extent in mask.shape)] = mask
        return out

    def work(self) -> Work:
        elements = elements_of(self.infer())
        return Work("move", elements=elements, nbytes=elements * self.tile.dtype.nbytes)


class Fillpad(PadOp, name="fillpad", levels=(TILE,), result_space=VEC):
    """The valid part of `tile`, and `pad_value` (zero, max, min) in the rest of its physical shape, which is valid
    too from then on. Of a tensor cut by `slice(..., valid_shape=...)` it is `fillpad_expand` to what was cut."""

    pad_value: Pad = attribute(default=Pad.ZERO)
    spelling = Spelling(pto="pto.tfillpad")
    loops = Special("elements outside the valid part are constants")

    def value(self) -> float:
        return pad_value_of(self.pad_value, self.tile.dtype)

    def infer(self) -> Type:
        self.check(self.pad_value)
        return array_type(self.level, physical_of(self.tile.type), self.tile.dtype)

    def evaluate(self, tile: Array) -> Array:
        return self.put(tile, physical_of(self.tile.type))

    def defined(self, tile: Array) -> Array:
        return self.put_mask(tile, physical_of(self.tile.type))


class FillpadExpand(PadOp, name="fillpad_expand", result_space=VEC):
    """As `fillpad`, into a larger physical shape `shape`."""

    shape: Shape = scalars()
    pad_value: Pad = attribute(default=Pad.ZERO)
    spelling = Spelling(pto=Expanded("a move into a larger tile, and tfillpad"))
    loops = Special("elements outside the valid part are constants")

    def value(self) -> float:
        return pad_value_of(self.pad_value, self.tile.dtype)

    def infer(self) -> Type:
        self.check(self.pad_value)
        valid = meaning_of(self.tile.type)
        check_lengths(self, len(valid), shape=self.shape)
        for extent, limit in zip(valid, self.shape, strict=True):
            if isinstance(extent, int) and isinstance(limit, int) and extent > limit and not same_extent(extent, limit):
                raise ShapeError(
                    f"{self.qualified_name} cannot make a tile smaller",
                    span=self.span,
                    required=f"at least {list(valid)}",
                    found=str(list(self.shape)),
                )
        return array_type(self.level, self.shape, self.tile.dtype)

    def evaluate(self, tile: Array, shape: Any) -> Array:
        return self.put(tile, shape)

    def defined(self, tile: Array, shape: Any) -> Array:
        return self.put_mask(tile, shape)

    def lower(self, context: LoweringContext) -> Value:
        """In a tile that is large enough already, only the rest is filled."""
        if same_shape(physical_of(self.tile.type), self.shape):
            return context.emit(Fillpad(self.tile, self.pad_value, level=TILE, span=self.span))
        return context.emit(self.at_level(TILE))

    @property
    def is_expanded(self) -> bool:
        """Only where there is no code for the whole."""
        return False

    def expand(self, to: Expansion) -> Scalar:
        room = to.room(TileType(self.shape, self.tile.dtype, None, TileView(meaning_of(self.tile.type))))
        larger = to.op(Assemble(room, self.tile, (0,) * len(self.shape), level=TILE, span=self.span))
        if same_shape(meaning_of(self.tile.type), self.shape):
            return larger
        return to.op(Fillpad(larger, self.pad_value, level=TILE, span=self.span))

    def resized(self, shape: Shape) -> Op:
        return self.replace(shape=shape)

    def flattened(self, replace: Callable[[Value], Scalar]) -> Op:
        op = self.with_operands(replace)
        check_rows(self, op.shape, physical_of(self.tile.type))
        return op.replace(shape=flat_shape(op.shape))
