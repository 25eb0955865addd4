"""The words of the language that are called and are no operations: `pl.const`, `pl.min`, `pl.cast` of a scalar, …"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import cast

from tilewright.errors import CallError, LanguageError, OperandError
from tilewright.frontend.annotations import read_layout
from tilewright.frontend.arithmetic import as_condition, checked, extreme, is_static
from tilewright.frontend.bindings import MISSING, DynamicSymbol, as_scalar, describe, is_scalar
from tilewright.frontend.context import Context
from tilewright.frontend.operations import Arguments, call_operation
from tilewright.frontend.operators import shape_of
from tilewright.ir.dtypes import BOOL, DType
from tilewright.ir.op import is_array
from tilewright.ir.scalar import BinaryKind, Value, constant, constant_value
from tilewright.ir.scalar import cast as cast_scalar
from tilewright.ir.types import MemRef

Form = Callable[[Context, Arguments], object]


def _const(context: Context, arguments: Arguments) -> object:
    """A constant of a given dtype."""
    value, dtype = arguments.simple("value", "dtype")
    if isinstance(value, str) and value in ("inf", "-inf", "nan"):
        value = float(value)
    if not isinstance(value, int | float) or not isinstance(dtype, DType):
        raise CallError(
            "pl.const takes a number and a dtype",
            span=arguments.span,
            required="pl.const(3, pl.INT32)",
            found=context.text(arguments.node),
        )
    if not dtype.is_float and isinstance(value, float) and not value.is_integer():
        raise OperandError(f"{value!r} is not a value of {dtype}", span=arguments.span)
    return constant(checked(value), dtype)  # pyright: ignore[reportArgumentType]


def _extreme(kind: BinaryKind) -> Form:
    def form(context: Context, arguments: Arguments) -> object:
        values = arguments.values()
        if len(values) == 1 and isinstance(values[0], tuple):
            values = list(cast("tuple[object, ...]", values[0]))
        if any(is_array(value) for value in values):
            name = "minimum" if kind is BinaryKind.MIN else "maximum"
            return call_operation(context, name, None, arguments, False)
        if not values or not all(is_scalar(value) for value in values):
            raise CallError(f"pl.{kind.value} takes scalars", span=arguments.span, found=describe(tuple(values)))
        return extreme(kind, values)

    return form


def _cast(context: Context, arguments: Arguments) -> object:
    """A cast of a scalar; of a tensor or tile it is the operation."""
    values = arguments.values()
    if values and is_array(values[0]):
        return call_operation(context, "cast", None, arguments, False)
    value, dtype = arguments.simple("input", "target_type")
    scalar = as_scalar(value)
    if scalar is None or not isinstance(dtype, DType):
        raise CallError("pl.cast takes a value and a dtype", span=arguments.span, found=context.text(arguments.node))
    known = constant_value(scalar)
    if isinstance(known, float) and not dtype.is_float:
        if not math.isfinite(known):
            raise OperandError(f"{known} has no value of {dtype}", span=arguments.span)
        return constant(int(known), dtype)
    return cast_scalar(scalar, dtype)


def _dim(context: Context, arguments: Arguments) -> object:
    """An extent of a tensor."""
    array, axis = arguments.simple("tensor", "axis")
    if not is_array(array) or not isinstance(axis, int):
        raise CallError("pl.tensor.dim takes a tensor and a number", span=arguments.span)
    shape = shape_of(cast("Value", array))
    if not -len(shape) <= axis < len(shape):
        raise CallError(f"there is no dimension {axis}", span=arguments.span, found=f"{len(shape)} dimensions")
    return shape[axis]


def _memref(context: Context, arguments: Arguments) -> object:
    name, addr, nbytes, slots = arguments.simple("name", "addr", "nbytes", "slots", required=1)
    addr, nbytes, slots = (None if v is MISSING else v for v in (addr, nbytes, slots))
    numbers = all(v is None or isinstance(v, int) for v in (addr, nbytes, slots))
    if not isinstance(name, str) or not numbers:
        raise CallError("pl.MemRef takes a name and whole numbers", span=arguments.span)
    return MemRef(name, cast("int | None", addr), cast("int | None", nbytes), cast("int | None", slots) or 1)


def _layout(context: Context, arguments: Arguments) -> object:
    fields = {name: value for name, (value, _, _) in arguments.keywords.items()}
    return read_layout(context, arguments.node, fields)


def _dynamic(context: Context, arguments: Arguments) -> object:
    (name,) = arguments.simple("name")
    if not isinstance(name, str):
        raise CallError("pl.dynamic takes a name", span=arguments.span)
    return DynamicSymbol(name)


def _static_print(context: Context, arguments: Arguments) -> object:
    """Prints when the kernel is read."""
    print(*[_shown(value) for value in arguments.values()])
    return None


def _shown(value: object) -> str:
    return value if isinstance(value, str) else describe(value)


def _static_assert(context: Context, arguments: Arguments) -> object:
    condition, message = arguments.simple("condition", "message", required=1)
    known = condition if is_static(condition) else constant_value(condition)
    if known is None:
        raise LanguageError(
            "a static_assert must be known when the kernel is compiled",
            span=arguments.span,
            found=context.text(arguments.node),
        )
    if not known:
        raise LanguageError(
            "a static_assert does not hold" if message is MISSING else f"a static_assert does not hold: {message}",
            span=arguments.span,
            found=context.text(arguments.node),
        )
    return None


def _func_attr(context: Context, arguments: Arguments) -> object:
    """Attributes of the function."""
    (given,) = arguments.simple("attrs")
    if not isinstance(given, tuple):
        raise CallError('pl.func_attr takes a dict: pl.func_attr({"key": 1})', span=arguments.span)
    for key, value in cast("tuple[tuple[str, object], ...]", given):
        context.attrs[key] = value
    return None


FORMS: dict[str, Form] = {
    "const": _const,
    "min": _extreme(BinaryKind.MIN),
    "max": _extreme(BinaryKind.MAX),
    "cast": _cast,
    "tensor.dim": _dim,
    "MemRef": _memref,
    "Layout": _layout,
    "dynamic": _dynamic,
    "static_print": _static_print,
    "static_assert": _static_assert,
    "func_attr": _func_attr,
}


def call_builtin(context: Context, name: str, arguments: Arguments) -> object:
    """One of Python's builtins on what is known while reading."""
    values = arguments.values()
    if name in ("min", "max"):
        return FORMS[name](context, arguments)
    if name == "range":
        raise LanguageError(
            "Python's range does not make a loop of the program",
            span=arguments.span,
            required="pl.range, pl.parallel, pl.unroll, pl.pipeline or pl.static_range",
            found=context.text(arguments.node),
            help="write pl.range(...)",
        )
    if name == "len" and len(values) == 1 and isinstance(values[0], tuple):
        return len(cast("tuple[object, ...]", values[0]))
    if name in ("int", "float", "bool", "abs", "round") and len(values) == 1:
        value = values[0]
        allowed = isinstance(value, int | float) or (name == "float" and value in ("inf", "-inf", "nan"))
        if allowed:
            try:
                return checked({"int": int, "float": float, "bool": bool, "abs": abs, "round": round}[name](value))  # pyright: ignore[reportArgumentType, reportCallIssue]
            except (ValueError, OverflowError) as error:
                raise LanguageError(f"this cannot be computed: {error}", span=arguments.span) from None
    raise LanguageError(
        f"Python's {name} is not part of the language here",
        span=arguments.span,
        found=context.text(arguments.node),
        help=_INSTEAD.get(name, "use an operation of pl, or compute it outside the kernel"),
    )


_INSTEAD = {
    "print": "pl.print shows values in kernel.reference(...); pl.static_print, what is known when it is compiled",
    "abs": "use pl.abs on tensors and tiles",
    "int": "use pl.cast(x, pl.INT32)",
    "float": "use pl.cast(x, pl.FP32)",
    "bool": "compare with 0",
    "enumerate": "use pl.range and an index",
    "zip": "use pl.range and an index",
}


def condition(context: Context, node: ast.expr) -> object:
    """What an `if` or a conditional expression decides by: a bool that is known, or a BOOL scalar."""
    value = context.evaluate(node)
    if is_array(value):
        raise LanguageError(
            "a tensor or tile is no condition",
            span=context.span(node),
            found=describe(value),
            help="read one element, t[i, j], or select elementwise with pl.sel",
        )
    if is_static(value):
        return bool(value)
    scalar = as_scalar(value)
    if scalar is None:
        raise LanguageError("this is no condition", span=context.span(node), found=describe(value))
    scalar = as_condition(scalar)
    known = constant_value(scalar)
    if known is not None and not isinstance(node, ast.Constant):
        return bool(known)
    assert isinstance(scalar, int) or scalar.dtype is BOOL
    return scalar
