"""Slices and indices: `a[i:i+8, :]`, `t[i, j]`, `out[i:i+8, j] = v`, and attributes such as `x.T` and `x.shape`.

A slice has constant extents and offsets that may vary. A negative constant counts from the end. Reading a slice is
the operation `slice`; one element, `read`. Writing one is `store` (a tile into a tensor), `assemble`, or `write`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, cast

from tilewright.errors import LanguageError, NonConstantShapeError, OperandError, ShapeError, SliceError, Span
from tilewright.frontend.arithmetic import apply, as_index
from tilewright.frontend.bindings import as_scalar, describe, is_number, is_scalar
from tilewright.frontend.context import Context
from tilewright.frontend.operations import finish
from tilewright.frontend.operators import level_of, make, number_for, shape_of
from tilewright.ir.dtypes import INDEX
from tilewright.ir.op import Level, is_array
from tilewright.ir.scalar import BinaryKind, Scalar, Shape, Value, dtype_of
from tilewright.ir.scalar import cast as cast_scalar
from tilewright.ir.types import MemRef, TensorType, TileType


@dataclass(frozen=True, slots=True)
class Box:
    """What a subscript selects: offset and extent per dimension, and the dimensions given by one index."""

    offsets: Shape
    extents: Shape
    single: tuple[int, ...]

    @property
    def is_element(self) -> bool:
        return len(self.single) == len(self.offsets)

    @property
    def kept(self) -> Shape:
        """The extents without the dimensions given by one index: the shape that NumPy gives."""
        return tuple(extent for axis, extent in enumerate(self.extents) if axis not in self.single)


def subscript(context: Context, owner: object, node: ast.Subscript) -> object:
    """`owner[...]`, read."""
    if isinstance(owner, tuple):
        return _item(context, cast("tuple[object, ...]", owner), node)
    if isinstance(owner, MemRef):
        return _slot(context, owner, node)
    if not is_array(owner):
        raise LanguageError("only tensors, tiles and tuples have parts", span=context.span(node), found=describe(owner))
    value = cast("Value", owner)
    box, span, level = read_box(context, value, node), context.span(node), level_of(owner)
    if box.is_element:
        return context.emit(make("read", level, value, box.offsets, span=span))
    if box.offsets == (0,) * len(box.offsets) and box.extents == shape_of(value) and not box.single:
        return value
    dropped = {"drop_dims": box.single} if box.single else {}
    if dropped and level is Level.TILE and len(box.kept) < 2:
        dropped = {}
    return context.emit(make("slice", level, value, box.extents, box.offsets, **dropped, span=span))


def _slot(context: Context, owner: MemRef, node: ast.Subscript) -> MemRef:
    """`ring[k]`, a slot of a pinned allocation. One that is picked when the kernel runs is an allocation of its own:
    the trips of a loop share it, or its copies where the loop is pipelined."""
    index, span = context.evaluate(node.slice), context.span(node)
    if not isinstance(index, int) and owner.addr is None:
        return MemRef(f"{owner.name}_{span.line}_{span.column}", None, owner.nbytes)
    if not isinstance(index, int) or not 0 <= index < owner.slots:
        raise SliceError(
            f"{owner.name!r} has no such slot, or one that is known only when the kernel runs",
            span=context.span(node.slice),
            required=f"a number from 0 to {owner.slots - 1}",
            found=context.text(node.slice),
            help=f"make the ring longer, slots={owner.slots + 1}; a slot picked at run time has no addr=",
        )
    if owner.addr is None:
        return MemRef(f"{owner.name}_{index}", None, owner.nbytes)
    if owner.nbytes is None:
        raise SliceError("a ring at an address needs the size of a slot", span=span, help="add nbytes= to pl.MemRef")
    return MemRef(f"{owner.name}_{index}", owner.addr + index * owner.nbytes, owner.nbytes)


def _item(context: Context, owner: tuple[object, ...], node: ast.Subscript) -> object:
    if isinstance(node.slice, ast.Slice):
        parts = [
            None if p is None else context.evaluate(p) for p in (node.slice.lower, node.slice.upper, node.slice.step)
        ]
        if all(part is None or isinstance(part, int) for part in parts):
            return owner[slice(*cast("list[Any]", parts))]
    else:
        index = context.evaluate(node.slice)
        if isinstance(index, int):
            if -len(owner) <= index < len(owner):
                return _read(context, owner[index], node)
            raise SliceError(f"index {index} is outside a tuple of {len(owner)}", span=context.span(node.slice))
    raise SliceError(
        "the index of a tuple must be known when the kernel is compiled",
        span=context.span(node.slice),
        found=context.text(node.slice),
    )


def _read(context: Context, item: object, node: ast.Subscript) -> object:
    """An element of a tuple, which stays what it was when its tensor is written under another name."""
    if isinstance(item, Value) and isinstance(item.type, TensorType):
        context.scope.versions.check_read(item, context.text(node), context.span(node))
    return item


# --- the box ------------------------------------------------------------------------------------------------------
def read_box(context: Context, owner: Value, node: ast.Subscript) -> Box:
    """The box that a subscript of `owner` selects. Raises `SliceError` or `NonConstantShapeError`."""
    shape = shape_of(owner)
    parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    whole = [p for p in parts if isinstance(p, ast.Constant) and p.value is Ellipsis]
    if len(whole) == 1:
        at = parts.index(whole[0])
        parts[at : at + 1] = [ast.copy_location(ast.Slice(), whole[0])] * (len(shape) - len(parts) + 1)
    if len(parts) > len(shape):
        raise SliceError(
            "more indices than dimensions",
            span=context.span(node),
            required=f"at most {len(shape)} for {owner.type!r}",
            found=str(len(parts)),
        )
    offsets: list[Scalar] = []
    extents: list[Scalar] = []
    single: list[int] = []
    for axis, limit in enumerate(shape):
        part = parts[axis] if axis < len(parts) else None
        if part is None:
            offset, extent = 0, limit
        elif isinstance(part, ast.Slice):
            offset, extent = _range(context, part, limit)
        else:
            offset, extent = _bound(context, part, limit, is_index=True), 1
            single.append(axis)
        offsets.append(offset)
        extents.append(extent)
    return Box(tuple(offsets), tuple(extents), tuple(single))


def _range(context: Context, part: ast.Slice, limit: Scalar) -> tuple[Scalar, Scalar]:
    """Offset and extent of `lower:upper`."""
    if part.step is not None and context.evaluate(part.step) != 1:
        raise SliceError(
            "a slice takes neighbours, without a step", span=context.span(part.step), help="load the whole and select"
        )
    lower = 0 if part.lower is None else _bound(context, part.lower, limit)
    upper = limit if part.upper is None else _bound(context, part.upper, limit)
    extent = context.simplified(apply(BinaryKind.SUB, upper, lower))
    if not isinstance(extent, int):
        if part.lower is None and part.upper is None:
            return lower, limit
        raise NonConstantShapeError(
            "the extent of a slice must be known when the kernel is compiled",
            span=context.span(part),
            required="an extent such as that of [i:i + 64]",
            found=context.text(part),
            help="take a constant extent, and say the part that has meaning with pl.slice(..., valid_shape=[...])",
        )
    if extent <= 0 or (isinstance(upper, int) and isinstance(limit, int) and upper > limit):
        what = "is empty" if extent <= 0 else "reaches outside its dimension"
        raise SliceError(
            f"this slice {what}",
            span=context.span(part),
            required=f"within 0:{limit}" if extent > 0 else "lower < upper",
            found=f"{lower}:{upper}" if isinstance(lower, int) and isinstance(upper, int) else context.text(part),
            help="shorten it; a last, smaller part is pl.slice(..., valid_shape=[...]) or pl.load(..., clamp=True)",
        )
    return lower, extent


def _bound(context: Context, node: ast.expr, limit: Scalar, is_index: bool = False) -> Scalar:
    """One end of a slice, or an index; a negative constant counts from the end."""
    found = context.evaluate(node)
    scalar = as_scalar(found) if not isinstance(found, float | bool) else None
    if scalar is None or not dtype_of(scalar).is_integer:
        raise SliceError("an index is an integer", span=context.span(node), found=describe(found))
    if isinstance(scalar, int) and scalar < 0:
        scalar = apply(BinaryKind.ADD, limit, scalar)
    low = isinstance(scalar, int) and scalar < 0
    high = is_index and isinstance(scalar, int) and isinstance(limit, int) and scalar >= limit
    if low or high:
        allowed = f"from {-limit} to {limit - 1}" if isinstance(limit, int) else f"from 0 to {limit!r} - 1"
        raise SliceError(
            "this index is outside its dimension",
            span=context.span(node),
            required=allowed,
            found=context.text(node),
        )
    return as_index(scalar)


# --- writing ------------------------------------------------------------------------------------------------------
def assign_subscript(context: Context, owner: object, node: ast.Subscript, value: object) -> None:
    """`owner[...] = value`."""
    if not is_array(owner):
        raise LanguageError(
            "only parts of tensors and tiles can be assigned", span=context.span(node), found=describe(owner)
        )
    target = cast("Value", owner)
    box, span, level = read_box(context, target, node), context.span(node), level_of(owner)
    assert level is not None
    if is_scalar(value):
        number = _element(value, target) if box.is_element else number_for(value, target)
        if box.is_element:
            op = make("write", level, target, box.offsets, number, span=span)
            finish(context, op, True)
            return
        dtype = target.dtype
        if isinstance(number, int) or dtype_of(number) is not dtype:
            raise OperandError(f"a number of {dtype} is wanted here", span=span, found=describe(value))
        value = context.emit(make("full", level, box.extents, dtype, number, span=span), "filled")
    if not is_array(value):
        raise OperandError("a tensor, tile or number is wanted here", span=span, found=describe(value))
    source = _fitted(context, cast("Value", value), box, target, span)
    if isinstance(target.type, TensorType) and isinstance(source.type, TileType):
        op = make("store", Level.TILE, source, box.offsets, target, span=span)
    elif level_of(source) is not level:
        raise OperandError(
            "a part of a tile takes a tile", span=span, found=describe(source), help="load the tensor with pl.load"
        )
    else:
        op = make("assemble", level, target, source, box.offsets, span=span)
    finish(context, op, True)


def _element(value: object, target: Value) -> Scalar:
    """A number as an element of `target`: an index goes into any integer that is wide enough for indices."""
    scalar = as_scalar(value)
    wide = target.dtype.is_integer and target.dtype.bits >= 32
    if wide and scalar is not None and not is_number(value) and dtype_of(scalar) is INDEX:
        return cast_scalar(scalar, target.dtype)
    return number_for(value, target)


def _fitted(context: Context, source: Value, box: Box, target: Value, span: Span) -> Value:
    """`source` with the rank of the target. Raises `ShapeError` when it has not the extents of the box."""
    type = source.type
    assert isinstance(type, TensorType | TileType)
    meant = type.valid if isinstance(type, TileType) else type.shape
    if box.extents in (type.shape, meant):
        return source
    if box.kept in (type.shape, meant) and meant == type.shape:
        level = level_of(source)
        return context.emit(make("reshape", level, source, box.extents, span=span), source.name)
    raise ShapeError(
        "the value does not fit the part that it is assigned to",
        span=span,
        required=f"shape {list(box.extents)}, the part of {target.type!r}",
        found=repr(type),
    )


# --- attributes ---------------------------------------------------------------------------------------------------
ATTRIBUTES = ("T", "shape", "dtype", "ndim", "valid_shape")


def array_attribute(context: Context, owner: Value, node: ast.Attribute) -> object:
    """`x.T`, `x.shape`, `x.dtype`, `x.ndim` of a tensor or tile."""
    shape, type = shape_of(owner), owner.type
    match node.attr:
        case "shape":
            return shape
        case "dtype":
            return owner.dtype
        case "ndim":
            return len(shape)
        case "valid_shape":
            return type.valid if isinstance(type, TileType) else shape
        case "T":
            if len(shape) != 2:
                raise ShapeError(
                    ".T transposes a matrix", span=context.span(node), found=repr(type), help="use pl.transpose"
                )
            level = level_of(owner)
            return context.emit(make("transpose", level, owner, 0, 1, span=context.span(node)))
        case _:
            raise LanguageError(
                f"tensors and tiles have no attribute {node.attr!r}",
                span=context.span(node),
                required=", ".join(ATTRIBUTES),
                found=node.attr,
                help="operations are called as pl.<operation>(x, ...)",
            )
