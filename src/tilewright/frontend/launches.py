"""Words of one block of a launch, small arrays of scalars, and extents that get a name."""

from __future__ import annotations

from typing import cast

from tilewright.errors import CallError, LanguageError
from tilewright.frontend.bindings import DynamicSymbol, as_scalar, describe, is_number
from tilewright.frontend.context import Context
from tilewright.frontend.forms import Form
from tilewright.frontend.kernels import block_of
from tilewright.frontend.lanes import shard
from tilewright.frontend.operations import Arguments, finish
from tilewright.frontend.operators import make, number_for, shape_of
from tilewright.ir.dtypes import INDEX, INT64, DType
from tilewright.ir.op import Level, is_array
from tilewright.ir.scalar import Scalar, Value, constant_value
from tilewright.ir.scalar import cast as cast_scalar


def _block_idx(context: Context, arguments: Arguments) -> object:
    arguments.simple()
    return block_of(context, arguments.span)[0]


def _block_num(context: Context, arguments: Arguments) -> object:
    arguments.simple()
    return block_of(context, arguments.span)[1]


def _subblock_idx(context: Context, arguments: Arguments) -> object:
    arguments.simple()
    return 0 if context.lane is None else context.lane[0]


def _gathered_elsewhere(context: Context, arguments: Arguments) -> object:
    raise LanguageError(
        "pl.aic_gather is assigned, at the top of the body of pl.split_aiv",
        span=arguments.span,
        required="for lane in pl.split_aiv(2, mode=...): whole = pl.aic_gather(part)",
        found=context.text(arguments.node),
    )


# --- arrays of scalars --------------------------------------------------------------------------------------------
def _array_create(context: Context, arguments: Arguments) -> object:
    """`n` numbers that belong to one core: a tile with one dimension. An INDEX is kept as INT64."""
    extent, dtype = arguments.simple("extent", "dtype")
    if not isinstance(extent, int) or extent < 1 or not isinstance(dtype, DType):
        raise CallError(
            "pl.array.create takes a number of elements and a dtype",
            span=arguments.span,
            required="pl.array.create(4, pl.INT32)",
            found=context.text(arguments.node),
        )
    kept = INT64 if dtype is INDEX else dtype
    return context.emit(make("create", Level.TILE, (extent,), kept, span=arguments.span))


def _array_get(context: Context, arguments: Arguments) -> object:
    array, index = arguments.simple("array", "index")
    at = (_index(index, arguments),)
    return context.emit(make("read", Level.TILE, _array(array, arguments), at, span=arguments.span))


def _array_update(context: Context, arguments: Arguments) -> object:
    array, index, value = arguments.simple("array", "index", "value")
    target = _array(array, arguments)
    number = as_scalar(value)
    if number is None:
        raise CallError("an element of an array is a number", span=arguments.span, found=describe(value))
    number = number_for(value, target) if is_number(value) else cast_scalar(number, target.dtype)
    op = make("write", Level.TILE, target, (_index(index, arguments),), number, span=arguments.span)
    return finish(context, op, False)


def _array(given: object, arguments: Arguments) -> Value:
    if not is_array(given) or len(shape_of(cast("Value", given))) != 1:
        raise CallError("this is no array of pl.array.create", span=arguments.span, found=describe(given))
    return cast("Value", given)


def _index(given: object, arguments: Arguments) -> Scalar:
    index = as_scalar(given)
    if index is None:
        raise CallError("an index is an integer", span=arguments.span, found=describe(given))
    return cast_scalar(index, INDEX)


# --- dynamic extents ----------------------------------------------------------------------------------------------
def bind_dynamic(context: Context, tensor: Value, arguments: Arguments) -> None:
    """`t.bind_dynamic(axis, symbol)`: the symbol stands for that extent from here on."""
    axis, symbol = arguments.simple("dim", "symbol")
    extents = shape_of(tensor)
    if not isinstance(axis, int) or not -len(extents) <= axis < len(extents):
        raise CallError(
            f"there is no dimension {describe(axis)}", span=arguments.span, found=f"{len(extents)} dimensions"
        )
    if isinstance(symbol, DynamicSymbol):
        context.symbols[symbol.name] = extents[axis]
        return
    known = as_scalar(symbol)
    if known is None or constant_value(known) != constant_value(extents[axis]) or known != extents[axis]:
        raise CallError(
            "this extent has another value already",
            span=arguments.span,
            required=f"pl.dynamic(...), or {extents[axis]!r}",
            found=describe(symbol),
        )


def _bind_dynamic(context: Context, arguments: Arguments) -> object:
    if not arguments.positional or not is_array(arguments.positional[0][0]):
        raise CallError("pl.tensor.bind_dynamic takes a tensor first", span=arguments.span)
    tensor = cast("Value", arguments.positional.pop(0)[0])
    bind_dynamic(context, tensor, arguments)
    return None


# --- hints --------------------------------------------------------------------------------------------------------
def _hint(context: Context, arguments: Arguments) -> object:
    """A wish about scheduling that the compiler decides by itself: `pl.split(...)`, `pl.cross_core_slot(...)`."""
    return tuple(arguments.values())


LAUNCH_FORMS: dict[str, Form] = {
    **{f"{prefix}get_block_idx": _block_idx for prefix in ("", "tile.", "system.")},
    **{f"{prefix}get_block_num": _block_num for prefix in ("", "tile.", "system.")},
    **{f"{prefix}get_subblock_idx": _subblock_idx for prefix in ("", "tile.", "system.")},
    **{f"{prefix}aiv_shard": shard for prefix in ("", "tile.", "tensor.")},
    **{f"{prefix}aic_gather": _gathered_elsewhere for prefix in ("", "tile.", "tensor.")},
    "array.create": _array_create,
    "array.get_element": _array_get,
    "array.update_element": _array_update,
    "tensor.bind_dynamic": _bind_dynamic,
    "split": _hint,
    "cross_core_slot": _hint,
}
