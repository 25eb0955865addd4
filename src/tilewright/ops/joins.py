"""Tiles put together out of others, or filled in place: `concat`, `expand_clone`, `fillpad_inplace`, `view`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.errors import OperandError, ShapeError
from tilewright.ir.expansion import Expansion
from tilewright.ir.layout import Pad
from tilewright.ir.loops import Special
from tilewright.ir.op import (
    Array,
    Expanded,
    Inherit,
    LoweringContext,
    Needs,
    Op,
    Spelling,
    Work,
    attribute,
    operand,
    scalars,
)  # fmt: skip
from tilewright.ir.scalar import BinaryKind, Scalar, Shape, Value, binary
from tilewright.ir.types import Type
from tilewright.ops.broadcast import ColExpand, Expands, RowExpand
from tilewright.ops.common import (
    NUMBERS,
    TENSOR,
    TILE,
    VEC,
    array_type,
    check_dtype,
    check_operands,
    check_rank,
    check_same_dtype,
    elements_of,
    meaning_of,
    operand_types,
    physical_of,
    same_extent,
    same_shape,
)  # fmt: skip
from tilewright.ops.pad import Fillpad
from tilewright.ops.parts import Assemble
from tilewright.ops.shape import Reshape
from tilewright.ops.single import element

ADD = BinaryKind.ADD


class Concat(Op, name="concat", result_space=VEC):
    """The columns of `src0`, then those of `src1`. Of tiles, the columns of `src1` follow the valid ones of `src0`."""

    src0: Value = operand(spaces=(VEC,), aliases=("lhs", "tile", "tensor", "input"))
    src1: Value = operand(spaces=(VEC,), aliases=("rhs",))
    lowering = Needs(src0=VEC, src1=VEC)
    dtypes = NUMBERS
    spelling = Spelling(pto=Expanded("a move of each part into the whole"))
    loops = Special("rows, the columns of both", rowwise=True)

    def infer(self) -> Type:
        check_operands(self)
        check_dtype(self, "src0", self.src0.dtype, self.dtypes)
        check_same_dtype(self, "src0", "src1")
        shapes: list[Shape] = []
        for name, value in self.operand_items():
            check_rank(self, name, value.type, 2)
            shapes += [physical_of(value.type), meaning_of(value.type)]
        first, first_valid, second, second_valid = shapes
        if not same_extent(first_valid[0], second_valid[0]) or not same_extent(first[0], second[0]):
            raise ShapeError(
                f"the operands of {self.qualified_name} have different rows", span=self.span, found=operand_types(self)
            )
        columns = (binary(ADD, a[1], b[1]) for a, b in ((first, second), (first_valid, second_valid)))
        physical, valid = columns
        return array_type(self.level, (first[0], physical), self.src0.dtype, (first_valid[0], valid))

    def evaluate(self, src0: Array, src1: Array) -> Array:
        return np.concatenate((src0, src1), axis=1)

    def defined(self, src0: Array, src1: Array) -> Array:
        return np.concatenate((src0, src1), axis=1)

    def work(self) -> Work:
        elements = elements_of(self.infer())
        return Work("move", elements=elements, nbytes=2 * elements * self.src0.dtype.nbytes)

    def expand(self, to: Expansion) -> Scalar:
        out = to.op(Assemble(to.room(self.infer()), self.src0, (0, 0), level=TILE, span=self.span))
        return to.op(Assemble(out, self.src1, (0, meaning_of(self.src0.type)[1]), level=TILE, span=self.span))


class ExpandClone(Op, name="expand_clone", result_space=VEC):
    """`src`, [1, N], [M, 1] or [1, 1], repeated to the shape of `target`, whose elements are not read."""

    src: Value = operand(spaces=(VEC,), aliases=("input", "tile", "tensor"))
    target: Value = operand(spaces=(VEC,))
    lowering = Needs(src=VEC, target=VEC)
    dtypes = NUMBERS
    spelling = Spelling(pto=Expanded("trowexpand or tcolexpand"))
    loops = Special("as target")

    def infer(self) -> Type:
        check_operands(self)
        check_dtype(self, "src", self.src.dtype, self.dtypes)
        check_same_dtype(self, "target", "src")
        kind = self.target.type
        for name, value in self.operand_items():
            check_rank(self, name, value.type, 2)
        pairs = zip(physical_of(self.src.type), physical_of(kind), strict=True)
        if any(a != 1 and not same_extent(a, b) for a, b in pairs):
            raise ShapeError(
                f"{self.qualified_name} repeats dimensions of extent 1",
                span=self.span,
                required="src [1, N], [M, 1] or [1, 1] of target [M, N]",
                found=operand_types(self),
            )
        return array_type(self.level, physical_of(kind), self.src.dtype, meaning_of(kind))

    def evaluate(self, src: Array, target: Array) -> Array:
        return np.broadcast_to(src, target.shape).copy()

    def defined(self, src: Array, target: Array) -> Array:
        return np.broadcast_to(src, target.shape).copy()

    def work(self) -> Work:
        elements = elements_of(self.target.type)
        return Work("expand", elements=elements, nbytes=elements * self.src.dtype.nbytes)

    def expand(self, to: Expansion) -> Scalar:
        """A row goes down the columns, a column along the rows, a single element everywhere."""
        target, made = self.target, self.src
        rows, columns = physical_of(made.type)
        if same_shape((rows, columns), physical_of(target.type)):
            return to.op(Assemble(to.room(self.infer()), made, (0, 0), level=TILE, span=self.span))
        if rows == 1 and columns == 1:
            return to.op(Expands(target, element(to, made, (0, 0)), level=TILE, span=self.span))
        cls = RowExpand if columns == 1 else ColExpand
        return to.op(cls(target, made, level=TILE, span=self.span))


class FillpadInplace(Op, name="fillpad_inplace", levels=(TILE,), writes="tile"):
    """As `fillpad`; the result is the next version of `tile`, valid throughout."""

    tile: Value = operand(spaces=(VEC,), aliases=("input",))
    pad_value: Pad = attribute(default=Pad.ZERO)
    dtypes = NUMBERS
    spelling = Spelling(pto=Expanded("tfillpad"))
    loops = Special("all")

    def _filled(self) -> Fillpad:
        return Fillpad(self.tile, self.pad_value, level=TILE, span=self.span)

    def infer(self) -> Type:
        return self._filled().infer()

    def evaluate(self, tile: Array) -> Array:
        valid = meaning_of(self.tile.type)
        return self._filled().evaluate(_corner(tile, valid))

    def defined(self, tile: Array) -> Array:
        return self._filled().defined(_corner(tile, meaning_of(self.tile.type)))

    def work(self) -> Work:
        return self._filled().work()

    def expand(self, to: Expansion) -> Scalar:
        return to.op(self._filled())


def _corner(array: Array, valid: Shape) -> Array:
    return array[tuple(slice(0, extent) for extent in valid if isinstance(extent, int))]


class View(Op, name="view", levels=(TENSOR,), result_space=Inherit("tensor"), view_of="tensor"):
    """The same tensor in another shape, row-major, as `reshape` sees it. `layout` may only be ND, in which tensors
    are."""

    tensor: Value = operand(aliases=("input",))
    shape: Shape | None = scalars(default=None)
    valid_shape: Shape | None = scalars(default=None)
    layout: Any = attribute(default=None)
    spelling = Spelling()
    lowering = Needs()
    loops = Special("as reshape")

    def as_reshape(self) -> Reshape:
        """The reshape that it is. Raises `OperandError`."""
        if self.layout is not None and self.layout.name != "ND":
            raise OperandError(
                f"{self.qualified_name}: a tensor lies row by row",
                span=self.span,
                required="layout ND",
                found=str(self.layout),
                help="pl.transpose gives the tensor with its last two dimensions exchanged",
            )
        shape = physical_of(self.tensor.type) if self.shape is None else self.shape
        return Reshape(self.tensor, shape, self.valid_shape, level=TENSOR, span=self.span)

    def infer(self) -> Type:
        return self.as_reshape().infer()

    def evaluate(self, tensor: Array, shape: Any, valid_shape: Any) -> Array:
        return self.as_reshape().evaluate(tensor, tensor.shape if shape is None else shape, valid_shape)

    def defined(self, tensor: Array, shape: Any, valid_shape: Any) -> Array:
        return self.evaluate(tensor, shape, valid_shape)

    def work(self) -> Work:
        return Work("none")

    def lower(self, context: LoweringContext) -> Value:
        return self.as_reshape().lower(context)
