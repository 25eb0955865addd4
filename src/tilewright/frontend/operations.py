"""Calls of operations: `pl.tile.load(a, [0, 0], [64, 64])`, `pl.add(x, 2.0)`.

Arguments go to the fields of the op's class: by position in their order, by keyword under the field's name or one of
its aliases. Whatever a form does not take is refused; nothing is dropped.
"""

from __future__ import annotations

import ast
from difflib import get_close_matches
from typing import Any, cast

from tilewright.errors import CallError, OperandError, Span, TilewrightError
from tilewright.frontend.arithmetic import as_index
from tilewright.frontend.bindings import MISSING, as_scalar, describe, is_number, is_scalar
from tilewright.frontend.context import Context
from tilewright.frontend.operators import array_fields, level_of, number_for, stretched
from tilewright.ir.dtypes import INDEX, DType
from tilewright.ir.function import FunctionKind
from tilewright.ir.layout import BLayout, MemorySpace, Pad, SLayout
from tilewright.ir.op import Field, Kind, Level, Op, is_array, lookup
from tilewright.ir.scalar import Scalar, Shape, Value
from tilewright.ir.storage import written_operand
from tilewright.ir.types import TensorType, TupleType


class Arguments:
    """What a call gives, evaluated: by position and by keyword, each with its place in the source."""

    def __init__(self, context: Context, node: ast.Call) -> None:
        self.node = node
        self.span = context.span(node)
        self.positional: list[tuple[object, Span, ast.expr]] = []
        self.keywords: dict[str, tuple[object, Span, ast.expr]] = {}
        for given in node.args:
            if isinstance(given, ast.Starred):
                values = context.evaluate(given.value)
                if not isinstance(values, tuple):
                    raise CallError("only a tuple or list can be spread", span=context.span(given))
                items = cast("tuple[object, ...]", values)
                self.positional += [(item, context.span(given), given.value) for item in items]
                continue
            self.positional.append((context.evaluate(given), context.span(given), given))
        for keyword in node.keywords:
            if keyword.arg is None:
                raise CallError(
                    "keywords cannot be spread with **", span=context.span(keyword), help="write each keyword"
                )
            self.keywords[keyword.arg] = (context.evaluate(keyword.value), context.span(keyword.value), keyword.value)

    def values(self) -> list[object]:
        """Every value given."""
        return [value for value, _, _ in (*self.positional, *self.keywords.values())]

    def simple(self, *names: str, required: int | None = None) -> list[Any]:
        """The values of a form whose parameters are `names`; `MISSING` for what is left out. Raises `CallError`."""
        if len(self.positional) > len(names):
            raise CallError(
                f"too many arguments: {', '.join(names) or 'none'} expected",
                span=self.span,
                required=f"{len(names)}",
                found=str(len(self.positional)),
            )
        found: list[Any] = [value for value, _, _ in self.positional]
        found += [MISSING] * (len(names) - len(found))
        for name, (value, span, _) in self.keywords.items():
            if name not in names or found[names.index(name)] is not MISSING:
                raise CallError(f"there is no argument {name!r}, or it is given twice", span=span)
            found[names.index(name)] = value
        for name, value in list(zip(names, found, strict=True))[: len(names) if required is None else required]:
            if value is MISSING:
                raise CallError(f"argument {name!r} is missing", span=self.span, required=", ".join(names))
        return found


def call_operation(context: Context, name: str, level: Level | None, arguments: Arguments, statement: bool) -> object:
    """The result of the operation `name`. `statement`: the call stands alone, so that what it writes is re-bound.
    Raises `CallError`, `UnknownOpError`, or what the operation itself refuses."""
    level = level or _level(context, lookup(name), arguments)
    try:
        cls = lookup(name, level)
        values = bind(cls, level, arguments)
    except TilewrightError as error:
        raise error.at(arguments.span) from None
    fields = array_fields(cls, level)
    operands = [values.get(field) for field in fields]
    if len(operands) > 1 and all(operand is not None for operand in operands):
        cls, operands = stretched(context, cls, operands, level, arguments.span)
        names = array_fields(cls, level)
        values = {f: v for f, v in values.items() if f not in fields} | dict(zip(names, operands, strict=True))
    op = cls(**values, level=level, span=arguments.span)
    if name == cls.scalar_name and not op.is_scalar_form:
        raise OperandError(
            f"{op.level.value}.{name} takes a number on the right",
            span=arguments.span,
            help=f"use pl.{op.level.value}.{cls.name} for two operands",
        )
    return finish(context, op, statement)


def finish(context: Context, op: Op, statement: bool) -> object:
    """Append `op`. As a statement of its own it re-binds the operand that it writes."""
    result = context.emit(op)
    written = getattr(op, op.writes) if statement and op.writes else None
    if isinstance(written, Value) and written_operand(op) is None:
        context.scope.rebind(written, result)
    return None if isinstance(result.type, TupleType) else result


def _level(context: Context, cls: type[Op], arguments: Arguments) -> Level:
    """The form that `pl.<op>` picks: by its operands; without any, tiles in a device kernel and tensors elsewhere."""
    if len(cls.levels) == 1:
        return cls.levels[0]
    found = level_of(*arguments.values())
    if found is not None:
        return found
    return Level.TILE if context.kind is FunctionKind.INCORE else Level.TENSOR


# --- arguments to fields ------------------------------------------------------------------------------------------
def bind(cls: type[Op], level: Level, arguments: Arguments) -> dict[str, Any]:
    """The value of each field that the call gives. Raises `CallError` or `OperandError`."""
    fields = [field for field in cls.fields if level in field.levels]
    label = f"pl.{cls.name}"
    if len(arguments.positional) > len(fields):
        raise CallError(
            f"{label} takes at most {len(fields)} arguments",
            required=signature(cls, level),
            found=f"{len(arguments.positional)} by position",
        )
    given: dict[str, tuple[object, Span, ast.expr]] = {
        field.name: value for field, value in zip(fields, arguments.positional, strict=False)
    }
    for keyword, value in arguments.keywords.items():
        field = _field(cls, fields, keyword, level, value[1])
        if field.name in given:
            raise CallError(f"{label} is given {field.name!r} twice", span=value[1], required=signature(cls, level))
        given[field.name] = value
    missing = [field.name for field in fields if field.required and field.name not in given]
    if missing:
        raise CallError(
            f"{label} lacks {' and '.join(map(repr, missing))}",
            required=signature(cls, level),
            found=", ".join(given) or "no arguments",
        )
    first = next((v for v, _, _ in given.values() if is_array(v)), None)
    return {
        field.name: convert(field, *given[field.name][:2], label, cast("Value | None", first))
        for field in fields
        if field.name in given
    }


def _field(cls: type[Op], fields: list[Field], keyword: str, level: Level, span: Span) -> Field:
    """The field that a keyword names."""
    for field in fields:
        if keyword == field.name or keyword in field.aliases:
            return field
    names = [field.name for field in fields]
    near = get_close_matches(keyword, names, 1)
    elsewhere = any(keyword in (f.name, *f.aliases) for f in cls.fields)
    raise CallError(
        f"pl.{level.value}.{cls.name} has no argument {keyword!r}",
        span=span,
        required=signature(cls, level),
        found=keyword,
        help=f"did you mean {near[0]}?"
        if near
        else ("only the other form of the operation has it" if elsewhere else "leave it out"),
    )


def signature(cls: type[Op], level: Level) -> str:
    """``pl.tile.load(tensor, offsets, shapes, valid_shape=None)``: how a form is called."""
    parts = [
        f.name if f.required else f"{f.name}={f.default!r}" for f in cls.fields if level in f.levels and not f.scratch
    ]
    return f"pl.{level.value}.{cls.name}({', '.join(parts)})"


def convert(field: Field, value: object, span: Span, label: str, first: Value | None) -> Any:
    """`value` as what the field holds. `first` is the call's first tensor or tile, whose dtype a number takes."""
    if field.kind is Kind.ATTRIBUTE:
        return _attribute(field, value, span, label)
    if value is None and not field.required:
        return None
    if field.kind is Kind.SCALARS:
        return _scalars(field, value, span, label)
    if field.kind is Kind.SCALAR:
        if is_number(value) and isinstance(value, float) and first is not None:
            return number_for(value, first)
        scalar = as_scalar(value)
        if scalar is not None:
            return scalar
        raise OperandError(f"{label} takes a scalar as {field.name}", span=span, found=describe(value))
    if is_array(value):
        return value
    if field.scalar and is_scalar(value):
        return number_for(value, first) if first is not None else as_scalar(value)
    raise OperandError(
        f"{label} takes a tensor or tile{' or a number' if field.scalar else ''} as {field.name}",
        span=span,
        found=describe(value),
    )


def _scalars(field: Field, value: Any, span: Span, label: str) -> Shape:
    items = cast("tuple[object, ...]", value) if isinstance(value, tuple) else None
    scalars = [as_scalar(item) for item in items] if items is not None else [None]
    if any(scalar is None for scalar in scalars):
        raise OperandError(
            f"{label} takes a list of integers as {field.name}",
            span=span,
            required="[i, j]",
            found=describe(cast("object", value)),
        )
    return tuple(_index(cast("Scalar", scalar), field, span, label) for scalar in scalars)


def _index(scalar: Scalar, field: Field, span: Span, label: str) -> Scalar:
    dtype = INDEX if isinstance(scalar, int) else scalar.dtype
    if not dtype.is_integer:
        raise OperandError(f"{label} takes integers in {field.name}", span=span, found=f"a scalar of {dtype}")
    return as_index(scalar)


def _attribute(field: Field, value: object, span: Span, label: str) -> Any:
    if is_array(value) or (isinstance(value, Value)):
        raise OperandError(
            f"{label} wants {field.name} known when the kernel is compiled", span=span, found=describe(value)
        )
    kinds = field.annotation.split(" | ")
    if not any(_is_of(value, kind) for kind in kinds):
        wanted = " or ".join(kind for kind in kinds if kind != "None")
        raise OperandError(f"{label} takes {wanted} as {field.name}", span=span, found=describe(value))
    return value


ATTRIBUTE_TYPES: dict[str, type | tuple[type, ...]] = {
    "None": type(None), "Any": object, "bool": (bool, int), "int": int, "str": str, "DType": DType,
    "MemorySpace": MemorySpace, "Pad": Pad, "BLayout": BLayout, "SLayout": SLayout,
}  # fmt: skip
"""By the annotation of an attribute: what it may be."""


def _is_of(value: Any, kind: str) -> bool:
    """Whether `value` is what an annotation says."""
    if kind == "tuple[int, ...]":
        return isinstance(value, tuple) and all(isinstance(item, int) for item in cast("tuple[object, ...]", value))
    return isinstance(value, ATTRIBUTE_TYPES[kind])


def is_tensor(value: object) -> bool:
    """Whether `value` is a tensor in DDR."""
    return isinstance(value, Value) and isinstance(value.type, TensorType)
