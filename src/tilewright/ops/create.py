"""Tensors and tiles out of nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.errors import OperandError
from tilewright.ir.dtypes import BOOL, DType
from tilewright.ir.layout import MemorySpace
from tilewright.ir.loops import Elementwise, Special
from tilewright.ir.op import (
    Access,
    Array,
    FromAttribute,
    LoweringContext,
    Needs,
    Op,
    Spelling,
    Work,
    attribute,
    scalars,
    whole_access,
)
from tilewright.ir.op import scalar as scalar_field
from tilewright.ir.scalar import Scalar, Shape, Value
from tilewright.ir.types import Type
from tilewright.ops.common import TENSOR, TILE, VEC, array_type, check_lengths, check_scalar, elements_of, filled
from tilewright.ops.flat import flat_shape, flat_valid


class Create(Op, name="create", result_space=FromAttribute("target_memory")):
    """A new tensor in DDR, or a new tile. Its elements are undefined, or all `init_value`.

    `valid_shape` of a tile: the part that has meaning (default: all)."""

    shape: Shape = scalars()
    dtype: DType = attribute()
    target_memory: MemorySpace | None = attribute(default=None, levels=(TILE,))
    init_value: Scalar | None = scalar_field(default=None)
    valid_shape: Shape | None = scalars(default=None, levels=(TILE,))
    spelling = Spelling()
    lowering = Needs()
    loops = Special("it allocates, and fills only where it has an initial value")

    def infer(self) -> Type:
        check_lengths(self, len(self.shape), valid_shape=self.valid_shape)
        _check_extents(self, self.shape)
        if self.init_value is not None:
            check_scalar(self, "init_value", self.init_value, self.dtype)
        return array_type(self.level, self.shape, self.dtype, self.valid_shape, self.target_memory)

    def evaluate(self, shape: Any, init_value: Any, valid_shape: Any) -> Array:
        return filled(valid_shape or shape, init_value or 0, self.dtype)

    def defined(self, shape: Any, init_value: Any, valid_shape: Any) -> Array:
        return filled(valid_shape or shape, init_value is not None, BOOL)

    def accesses(self) -> tuple[Access, ...]:
        return () if self.init_value is None else (whole_access(None, self.infer(), writes=True),)

    def work(self) -> Work:
        elements = 0 if self.init_value is None else elements_of(self.infer())
        return Work("fill" if elements else "none", elements=elements, nbytes=elements * self.dtype.nbytes)

    def lower(self, context: LoweringContext) -> Value:
        if self.init_value is not None:
            return context.emit(Full(self.shape, self.dtype, self.init_value, level=TILE, span=self.span))
        return context.emit(self.at_level(TILE))

    def resized(self, shape: Shape) -> Op:
        return self.replace(shape=shape, valid_shape=self.shape if self.valid_shape is None else self.valid_shape)

    def flattened(self, replace: Callable[[Value], Scalar]) -> Op:
        op = self.with_operands(replace)
        valid = None if op.valid_shape is None else flat_valid(op.shape, op.valid_shape)
        return op.replace(shape=flat_shape(op.shape), valid_shape=valid)


def _value(op: Full, *fields: Scalar) -> Scalar:
    return op.value


class Full(Op, name="full", result_space=VEC):
    """A tensor or tile whose elements all are `value`. `valid_shape` as in `create`."""

    shape: Shape = scalars()
    dtype: DType = attribute()
    value: Scalar = scalar_field()
    valid_shape: Shape | None = scalars(default=None, levels=(TILE,))
    spelling = Spelling()
    lowering = Needs()
    loops = Elementwise(_value)

    def infer(self) -> Type:
        check_lengths(self, len(self.shape), valid_shape=self.valid_shape)
        _check_extents(self, self.shape)
        check_scalar(self, "value", self.value, self.dtype)
        return array_type(self.level, self.shape, self.dtype, self.valid_shape)

    def evaluate(self, shape: Any, value: Any, valid_shape: Any) -> Array:
        return filled(valid_shape or shape, value, self.dtype)

    def defined(self, shape: Any, value: Any, valid_shape: Any) -> Array:
        return filled(valid_shape or shape, True, BOOL)

    def accesses(self) -> tuple[Access, ...]:
        return (whole_access(None, self.infer(), writes=True),)

    def work(self) -> Work:
        elements = elements_of(self.infer())
        return Work("fill", elements=elements, nbytes=elements * self.dtype.nbytes)

    def resized(self, shape: Shape) -> Op:
        return self.replace(shape=shape, valid_shape=self.shape if self.valid_shape is None else self.valid_shape)

    def flattened(self, replace: Callable[[Value], Scalar]) -> Op:
        op = self.with_operands(replace)
        valid = None if op.valid_shape is None else flat_valid(op.shape, op.valid_shape)
        return op.replace(shape=flat_shape(op.shape), valid_shape=valid)


def _check_extents(op: Op, shape: Shape) -> None:
    for extent in shape:
        if isinstance(extent, int) and extent <= 0:
            what = "tensor" if op.level is TENSOR else "tile"
            raise OperandError(
                f"{op.qualified_name}: a {what} needs extents of at least 1", span=op.span, found=str(list(shape))
            )
