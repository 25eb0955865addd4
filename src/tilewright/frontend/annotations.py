"""Types as they are written: `pl.Tensor[[64, n], pl.FP32]`, `pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec]`."""

from __future__ import annotations

import ast
from typing import Any, cast

from tilewright.errors import LanguageError, NonConstantShapeError, TilewrightError, UnknownDTypeError
from tilewright.frontend.bindings import DynamicSymbol, LanguageName, as_scalar, describe
from tilewright.frontend.context import Context
from tilewright.ir.dtypes import DType
from tilewright.ir.layout import BLayout, Compact, Layout, MemorySpace, Pad, SLayout
from tilewright.ir.scalar import Scalar
from tilewright.ir.types import DEFAULT_VIEW, MemRef, ScalarType, TensorType, TileType, TileView, TupleType, Type
from tilewright.text.names import TensorLayout, TileLayout

Extent = Scalar | DynamicSymbol


class TensorPattern:
    """A declared tensor whose extents may be symbols that each call binds."""

    __slots__ = ("dtype", "shape", "strides")

    def __init__(self, shape: tuple[Extent, ...], dtype: DType, strides: tuple[Scalar, ...] | None) -> None:
        self.shape = shape
        self.dtype = dtype
        self.strides = strides

    def __repr__(self) -> str:
        extents = ", ".join(e.name if isinstance(e, DynamicSymbol) else repr(e) for e in self.shape)
        return f"pl.Tensor[[{extents}], {self.dtype}]"


Declared = Type | TensorPattern | None


def read_type(context: Context, node: ast.expr) -> Type:
    """The complete type that an annotation says. Raises `LanguageError` and its kin."""
    found = read_declared(context, node)
    if isinstance(found, Type):
        return found
    raise NonConstantShapeError(
        "this type must say its shape and dtype",
        span=context.span(node),
        required="pl.Tensor[[64, 64], pl.FP32]",
        found=context.text(node),
    )


def read_declared(context: Context, node: ast.expr) -> Declared:
    """What an annotation says; None for a bare `pl.Tensor`, which takes any."""
    head = node.value if isinstance(node, ast.Subscript) else node
    word = context.evaluate(head)
    if isinstance(word, DType):
        return ScalarType(word)
    path = word.path if isinstance(word, LanguageName) else ""
    if not isinstance(node, ast.Subscript):
        if path in ("Tensor", "Tile", "Scalar"):
            return None
        raise _not_a_type(context, node)
    items = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    match path:
        case "Tensor":
            return _tensor(context, node, items)
        case "Tile":
            return _tile(context, node, items)
        case "Scalar":
            return ScalarType(read_dtype(context, items[0]))
        case "Tuple":
            return TupleType(tuple(read_type(context, item) for item in items))
        case _:
            raise _not_a_type(context, node)


def _not_a_type(context: Context, node: ast.expr) -> LanguageError:
    return LanguageError(
        "this is not a type of the language",
        span=context.span(node),
        required="pl.Tensor[...], pl.Tile[...], pl.Scalar[...], pl.Out[...], pl.InOut[...]",
        found=context.text(node),
    )


def read_dtype(context: Context, node: ast.expr) -> DType:
    found = context.evaluate(node)
    if isinstance(found, DType):
        return found
    raise UnknownDTypeError(
        "this is not a dtype", span=context.span(node), found=context.text(node), help="write one such as pl.FP32"
    )


def _tensor(context: Context, node: ast.Subscript, items: list[ast.expr]) -> Declared:
    if len(items) not in (2, 3):
        raise LanguageError(
            "a tensor type has a shape and a dtype",
            span=context.span(node),
            required="pl.Tensor[[64, 64], pl.FP32]",
            found=context.text(node),
        )
    shape, dtype = _shape(context, items[0]), read_dtype(context, items[1])
    strides = None
    if len(items) == 3:
        strides = _tensor_view(context, items[2])
    if any(isinstance(extent, DynamicSymbol) for extent in shape):
        return TensorPattern(shape, dtype, strides)
    return TensorType(cast("tuple[Scalar, ...]", shape), dtype, strides)


def _shape(context: Context, node: ast.expr) -> tuple[Extent, ...]:
    found = context.evaluate(node)
    if not isinstance(found, tuple):
        raise LanguageError("a shape is a list", span=context.span(node), required="[64, 64]", found=context.text(node))
    nodes = node.elts if isinstance(node, ast.List | ast.Tuple) else []
    extents: list[Extent] = []
    for index, item in enumerate(cast("tuple[object, ...]", found)):
        at = nodes[index] if index < len(nodes) else node
        if isinstance(item, DynamicSymbol):
            extents.append(item)
            continue
        scalar = as_scalar(item) if not isinstance(item, bool | float) else None
        if scalar is None or (isinstance(scalar, int) and scalar < 0):
            raise NonConstantShapeError(
                "an extent is a whole number, known when the kernel is compiled",
                span=context.span(at),
                found=describe(item),
                help='use a number, a closure constant, or pl.dynamic("n")',
            )
        extents.append(scalar)
    return tuple(extents)


def _scalars(context: Context, value: Any, node: ast.expr) -> tuple[Scalar, ...]:
    items = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (None,)
    scalars = tuple(as_scalar(item) for item in items)
    if any(scalar is None for scalar in scalars):
        raise LanguageError(
            "a list of integers is wanted here", span=context.span(node), found=describe(cast("object", value))
        )
    return cast("tuple[Scalar, ...]", scalars)


def _tensor_view(context: Context, node: ast.expr) -> tuple[Scalar, ...] | None:
    """The strides that the third item of a tensor type says; a row-major layout says none."""
    if isinstance(node, ast.Call):
        fields = _keywords(context, node, "TensorView", ("stride", "layout"))
        _check_layout(context, node, fields.get("layout"))
        stride = fields.get("stride")
        return None if stride is None else _scalars(context, stride, node)
    _check_layout(context, node, context.evaluate(node))
    return None


def _check_layout(context: Context, node: ast.expr, layout: object) -> None:
    if layout is not None and layout is not TensorLayout.ND:
        raise LanguageError(
            "a tensor in DDR is row-major here",
            span=context.span(node),
            required="pl.TensorLayout.ND, or pl.TensorView(stride=[...])",
            found=context.text(node),
        )


def _keywords(context: Context, node: ast.Call, word: str, names: tuple[str, ...]) -> dict[str, Any]:
    """The keywords of a constructor that is written inside a type."""
    called = context.evaluate(node.func)
    if not isinstance(called, LanguageName) or called.path != word or node.args:
        raise LanguageError(
            f"pl.{word}(...) with keywords is wanted here", span=context.span(node), found=context.text(node)
        )
    for keyword in node.keywords:
        if keyword.arg not in names:
            raise LanguageError(
                f"pl.{word} has no argument {keyword.arg!r}",
                span=context.span(keyword),
                required=", ".join(names),
            )
    return {str(keyword.arg): context.evaluate(keyword.value) for keyword in node.keywords}


# --- tiles --------------------------------------------------------------------------------------------------------
_VIEW_FIELDS = ("valid_shape", "stride", "start_offset", "blayout", "slayout", "fractal", "pad", "compact")


def _tile(context: Context, node: ast.Subscript, items: list[ast.expr]) -> TileType:
    """The items after the dtype are told apart by what they are."""
    if len(items) < 2:
        raise LanguageError("a tile type has a shape and a dtype", span=context.span(node))
    shape, dtype = _shape(context, items[0]), read_dtype(context, items[1])
    if any(isinstance(extent, DynamicSymbol) for extent in shape):
        raise NonConstantShapeError(
            "a tile has a constant shape", span=context.span(items[0]), help="give the run-time part as valid_shape"
        )
    space, memref, view = None, None, DEFAULT_VIEW
    for item in items[2:]:
        if isinstance(item, ast.Call) and _path(context, item.func) == "TileView":
            view = _view(context, item)
            continue
        found = context.evaluate(item)
        if isinstance(found, MemorySpace):
            space = found
        elif isinstance(found, MemRef):
            memref = found
        else:
            raise LanguageError(
                "this does not belong in a tile type",
                span=context.span(item),
                required="pl.Mem.<space>, pl.MemRef(...), pl.TileView(...)",
                found=context.text(item),
            )
    try:
        return TileType(cast("tuple[Scalar, ...]", shape), dtype, space, view, memref)
    except TilewrightError as error:
        raise error.at(context.span(node)) from None


def _path(context: Context, node: ast.expr) -> str | None:
    found = context.evaluate(node)
    return found.path if isinstance(found, LanguageName) else None


def _view(context: Context, node: ast.Call) -> TileView:
    fields = _keywords(context, node, "TileView", _VIEW_FIELDS)
    valid, stride = fields.get("valid_shape"), fields.get("stride")
    pad, compact = fields.get("pad", Pad.NULL), fields.get("compact", Compact.NULL)
    if not isinstance(pad, Pad) or not isinstance(compact, Compact):
        raise LanguageError("pad and compact are of pl.PadValue and pl.CompactMode", span=context.span(node))
    return TileView(
        None if valid is None else _scalars(context, valid, node),
        None if stride is None else _scalars(context, stride, node),
        as_scalar(fields["start_offset"]) if fields.get("start_offset") is not None else None,
        read_layout(context, node, fields),
        pad,
        compact,
    )


def read_layout(context: Context, node: ast.expr, fields: dict[str, Any]) -> Layout | None:
    """The layout that `blayout`, `slayout` and `fractal` say together; None when none is given."""
    blayout, slayout, fractal = fields.get("blayout"), fields.get("slayout"), fields.get("fractal", 512)
    if blayout is None and slayout is None:
        return None
    blayout = blayout.block if isinstance(blayout, TileLayout) and blayout.value != "none_box" else blayout
    slayout = slayout.box if isinstance(slayout, TileLayout) else slayout
    blayout = BLayout.ROW_MAJOR if blayout is None else blayout
    slayout = SLayout.NONE_BOX if slayout is None else slayout
    if isinstance(blayout, BLayout) and isinstance(slayout, SLayout) and isinstance(fractal, int):
        return Layout(blayout, slayout, fractal)
    raise LanguageError(
        "a layout is made of pl.BLayout, pl.SLayout and a number of bytes",
        span=context.span(node),
        found=context.text(node),
    )
