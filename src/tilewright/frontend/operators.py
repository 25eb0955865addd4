"""Operators on tensors and tiles: `a + b`, `a @ b`, `-a`, `2 * a`, `a < b`, and vectors stretched to matrices.

An operator is spelled by one operation; what that operation can do is read from its class. Where an elementwise
operation meets a column vector [M, 1] or a row vector [1, N], the operation that stretches it on the way is used if
there is one, else the vector is stretched first.
"""

from __future__ import annotations

import ast
from typing import Any

from tilewright.errors import LanguageError, OperandError, Span
from tilewright.frontend.bindings import as_scalar, describe, is_number, is_scalar
from tilewright.frontend.context import Context
from tilewright.ir.loops import COLUMN, FULL, ROW, Elementwise, Map
from tilewright.ir.op import Kind, Level, Op, is_array, lookup, registry
from tilewright.ir.scalar import Scalar, Shape, Value
from tilewright.ir.types import TensorType, TileType

BINARY: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.MatMult: "matmul",
    ast.Mod: "fmod",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "shr",
}
COMPARISONS: dict[type[ast.AST], int] = {
    ast.Eq: 0,
    ast.NotEq: 1,
    ast.Lt: 2,
    ast.LtE: 3,
    ast.Gt: 4,
    ast.GtE: 5,
}
"""`cmp_type` by operator."""

_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Add,
    ast.Mult: ast.Mult,
    ast.BitAnd: ast.BitAnd,
    ast.BitOr: ast.BitOr,
    ast.BitXor: ast.BitXor,
    ast.Eq: ast.Eq,
    ast.NotEq: ast.NotEq,
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}
"""`x operator y` is `y swapped x`."""


def shape_of(value: Value) -> Shape:
    """The physical shape of a tensor or tile."""
    type = value.type
    assert isinstance(type, TensorType | TileType)
    return type.shape


def level_of(*values: object) -> Level | None:
    """TILE when one of the values is a tile, else TENSOR when one is a tensor."""
    kinds = {isinstance(value.type, TileType) for value in values if is_array(value) and isinstance(value, Value)}
    if not kinds:
        return None
    return Level.TILE if True in kinds else Level.TENSOR


def operate(context: Context, operator: ast.AST, lhs: object, rhs: object, span: Span) -> object:
    """`lhs operator rhs`, at least one of which is a tensor or tile."""
    name, extra = _spelling(operator), {}
    if type(operator) in COMPARISONS:
        extra = {"cmp_type": COMPARISONS[type(operator)]}
    if not is_array(lhs):
        if not is_scalar(lhs):
            raise _mixed(operator, lhs, rhs, span)
        swapped = _SWAPPED.get(type(operator))
        if swapped is not None:
            return operate(context, swapped(), rhs, lhs, span)
        assert isinstance(rhs, Value)
        filled = number_for(lhs, rhs)
        level = level_of(rhs)
        lhs = context.emit(_make(lookup("expands", level), [rhs, filled], level, span, {}), "filled")
    if not is_array(rhs) and not is_scalar(rhs):
        raise _mixed(operator, lhs, rhs, span)
    return elementwise(context, lookup(name, level_of(lhs, rhs)), [lhs, rhs], extra, span)


def _spelling(operator: ast.AST) -> str:
    if type(operator) in COMPARISONS:
        return "cmp"
    name = BINARY.get(type(operator))
    if name is None or name not in registry():
        raise LanguageError(
            f"tensors and tiles have no operator {type(operator).__name__}",
            required="+ - * / @ and comparisons",
            help="call the operation by name, pl.<operation>",
        )
    return name


def _mixed(operator: ast.AST, lhs: object, rhs: object, span: Span) -> OperandError:
    return OperandError(
        "an operator takes tensors, tiles and numbers",
        span=span,
        found=f"{describe(lhs)} {type(operator).__name__} {describe(rhs)}",
    )


def number_for(number: object, array: Value) -> Scalar:
    """A scalar that stands beside the elements of `array`: a Python number takes their dtype."""
    if is_number(number) and not (isinstance(number, float) and not array.dtype.is_float):
        found = as_scalar(number, array.dtype)
    else:
        found = as_scalar(number)
    assert found is not None
    return found


def unary(context: Context, name: str, value: Value, span: Span) -> object:
    """The operation `name` of one operand."""
    level = level_of(value)
    return context.emit(_make(lookup(name, level), [value], level, span, {}))


def _make(cls: Any, operands: list[Any], level: Level | None, span: Span, extra: dict[str, Any]) -> Op:
    """An op from its fields in order."""
    return cls(*operands, **extra, level=level, span=span)


def make(name: str, level: Level | None, *operands: Any, span: Span, **extra: Any) -> Op:
    """The form at `level` of the operation `name`, from its fields in order."""
    return _make(lookup(name, level), list(operands), level, span, extra)


def elementwise(context: Context, cls: type[Op], operands: list[Any], extra: dict[str, Any], span: Span) -> object:
    """The operation on operands in order of its fields, vectors stretched where it is elementwise."""
    level = level_of(*operands)
    operands = [number_for(o, operands[0]) if not is_array(o) else o for o in operands]
    cls, operands = stretched(context, cls, operands, level, span)
    return context.emit(_make(cls, operands, level, span, {} if cls.name != "cmp" else extra))


# --- vectors beside matrices --------------------------------------------------------------------------------------
def stretched(
    context: Context, cls: type[Op], operands: list[Any], level: Level | None, span: Span
) -> tuple[type[Op], list[Any]]:
    """The class and operands with every vector stretched to the shape of the matrix beside it; unchanged where there
    is nothing to stretch."""
    if not isinstance(cls.loops, Elementwise) or cls.loops.maps:
        return cls, operands
    arrays = [o for o in operands if is_array(o)]
    shapes = {shape_of(array) for array in arrays}
    if len(shapes) < 2:
        return cls, operands
    full = next((array for array in arrays if all(_vector(shape, shape_of(array)) for shape in shapes)), None)
    if full is None:
        full = _spanned(context, arrays, level, span)
    if full is None:
        return cls, operands
    maps = [_vector(shape_of(o), shape_of(full)) if is_array(o) else FULL for o in operands]
    fused = _fused(cls, tuple(maps), level)
    if fused is not None:
        return fused, operands
    result = [
        operand if map is FULL or map is None else _expand(context, operand, full, map, level, span)
        for operand, map in zip(operands, maps, strict=True)
    ]
    return cls, result


def _spanned(context: Context, arrays: list[Value], level: Level | None, span: Span) -> Value | None:
    """A matrix of the shape that a column [M, 1] and a row [1, N] span; None where there are other shapes too."""
    shapes = [shape_of(array) for array in arrays]
    if any(len(shape) != 2 or 1 not in shape for shape in shapes):
        return None
    column = next((shape for shape in shapes if shape[0] != 1), None)
    row = next((shape for shape in shapes if shape[1] != 1), None)
    if column is None or row is None:
        return None
    shape = (column[0], row[1])
    if not all(_vector(found, shape) for found in shapes):
        return None
    cls: Any = lookup("full", level)
    dtype = arrays[-1].dtype
    return context.emit(cls(shape, dtype, as_scalar(0, dtype), level=level, span=span), "spanned")


def _vector(shape: Shape, full: Shape) -> Map | None:
    """How an operand of `shape` is read for a result of shape `full`; None when they do not go together."""
    if shape == full:
        return FULL
    if len(shape) != 2 or len(full) != 2:
        return None
    if shape[1] == 1 and shape[0] == full[0]:
        return ROW
    return COLUMN if shape[0] == 1 and shape[1] == full[1] else None


def _fused(cls: type[Op], maps: tuple[Map | None, ...], level: Level | None) -> type[Op] | None:
    """The operation that does what `cls` does and reads its second operand as a vector."""
    if maps not in ((FULL, ROW), (FULL, COLUMN)):
        return None
    prefix = "row_expand_" if maps[1] is ROW else "col_expand_"
    for name in (cls.name, cls.name.removesuffix("imum")):
        found = registry().get(prefix + name)
        if found is not None and isinstance(found.loops, Elementwise) and found.loops.maps == maps:
            return found if level is None or level in found.levels else None
    return None


def _expand(context: Context, vector: Value, full: Value, map: Map, level: Level | None, span: Span) -> Value:
    cls = lookup("row_expand" if map is ROW else "col_expand", level)
    return context.emit(_make(cls, [full, vector], level, span, {}), vector.name)


def array_fields(cls: type[Op], level: Level) -> list[str]:
    """The fields of an op's form that hold what it computes on, in order."""
    return [f.name for f in cls.fields if f.kind is Kind.OPERAND and level in f.levels and not f.scratch]
