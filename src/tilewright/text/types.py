"""Types and static data as the language writes them: ``pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec]``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import Enum
from typing import cast

from tilewright.ir.dtypes import DType
from tilewright.ir.layout import Compact, Layout, Pad
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import MemRef, ScalarType, TensorType, TileType, TupleType, Type
from tilewright.text.names import spelling
from tilewright.text.scalars import Name, print_scalar, quoted


def print_shape(shape: Iterable[Scalar], name: Name) -> str:
    """Extents, offsets or strides as a list."""
    return f"[{', '.join([print_scalar(extent, name) for extent in shape])}]"


def print_type(type: Type, name: Name, explicit_layout: bool = False) -> str:
    """`type` in full, so that reading it gives the same object. `explicit_layout` adds the layout that a tile's
    space implies."""
    if isinstance(type, TileType):
        return _tile(type, name, explicit_layout)
    if isinstance(type, TensorType):
        view = "" if type.strides is None else f", pl.TensorView(stride={print_shape(type.strides, name)})"
        return f"pl.Tensor[{print_shape(type.shape, name)}, pl.{type.dtype}{view}]"
    if isinstance(type, TupleType):
        return f"pl.Tuple[{', '.join(print_type(element, name, explicit_layout) for element in type.elements)}]"
    assert isinstance(type, ScalarType)
    return f"pl.Scalar[pl.{type.dtype}]"


def _tile(type: TileType, name: Name, explicit_layout: bool) -> str:
    parts = [print_shape(type.shape, name), f"pl.{type.dtype}"]
    if type.memref is not None:
        parts.append(print_memref(type.memref))
    if type.space is not None:
        parts.append(spelling(type.space))
    view, layout = type.view, type.view.layout
    if explicit_layout and all(isinstance(extent, int) for extent in type.shape):
        layout = type.layout
    fields: list[str] = []
    if view.valid_shape is not None:
        fields.append(f"valid_shape={print_shape(view.valid_shape, name)}")
    if view.stride is not None:
        fields.append(f"stride={print_shape(view.stride, name)}")
    if view.start_offset is not None:
        fields.append(f"start_offset={print_scalar(view.start_offset, name)}")
    if layout is not None:
        fields.append(_layout_fields(layout))
    if view.pad is not Pad.NULL:
        fields.append(f"pad={spelling(view.pad)}")
    if view.compact is not Compact.NULL:
        fields.append(f"compact={spelling(view.compact)}")
    if fields:
        parts.append(f"pl.TileView({', '.join(fields)})")
    return f"pl.Tile[{', '.join(parts)}]"


def _layout_fields(layout: Layout) -> str:
    return f"blayout={spelling(layout.blayout)}, slayout={spelling(layout.slayout)}, fractal={layout.fractal}"


def print_memref(memref: MemRef) -> str:
    """A buffer; what is at its default is left out."""
    parts = [quoted(memref.name)]
    if memref.addr is not None:
        parts.append(f"addr={memref.addr}")
    if memref.nbytes is not None:
        parts.append(f"nbytes={memref.nbytes}")
    if memref.slots != 1:
        parts.append(f"slots={memref.slots}")
    return f"pl.MemRef({', '.join(parts)})"


def print_static(value: object, name: Name | None = None) -> str:
    """An attribute: a number, flag or string, an enum, a dtype, a type, or a tuple of them (printed as a list)."""
    match value:
        case None | bool():
            return repr(value)
        case str():
            return quoted(value)
        case int() | float():
            return _number(value)
        case Enum() | DType():
            return spelling(value)
        case Layout():
            return f"pl.Layout({_layout_fields(value)})"
        case MemRef():
            return print_memref(value)
        case Type():
            return print_type(value, name or _no_name)
        case tuple():
            items = cast("tuple[object, ...]", value)
            return f"[{', '.join(print_static(item, name) for item in items)}]"
        case _:
            raise AssertionError(f"an attribute of type {type(value).__name__} has no text")


def _number(value: float) -> str:
    """A number outside of scalar expressions; a literal too large for a float reads as infinity."""
    if math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    return repr(value) if math.isfinite(value) else 'float("nan")'


def _no_name(value: Value) -> str:
    return value.name
