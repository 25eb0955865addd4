"""The least element of a set as a scalar over the values that its parameters stand for.

[v0] -> { [(0)] : v0 = 0; [(8 v0 - 1)] : v0 > 0 }    becomes    select(h == 0, 0, h * 8 - 1)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import cast

import islpy as isl

from tilewright.ir.scalar import BinaryKind, Scalar, Select, UnaryKind, Value, binary, logic, unary

_KINDS = {
    "add": BinaryKind.ADD, "sub": BinaryKind.SUB, "mul": BinaryKind.MUL, "div": BinaryKind.FLOORDIV,
    "fdiv_q": BinaryKind.FLOORDIV, "pdiv_q": BinaryKind.FLOORDIV, "pdiv_r": BinaryKind.MOD, "zdiv_r": BinaryKind.MOD,
    "min": BinaryKind.MIN, "max": BinaryKind.MAX, "eq": BinaryKind.EQ, "le": BinaryKind.LE, "lt": BinaryKind.LT,
    "ge": BinaryKind.GE, "gt": BinaryKind.GT, "and_": BinaryKind.AND, "and_then": BinaryKind.AND,
    "or_": BinaryKind.OR, "or_else": BinaryKind.OR,
}  # fmt: skip
_OPS = {getattr(isl.ast_expr_op_type, name): kind for name, kind in _KINDS.items()}
_COND = {isl.ast_expr_op_type.cond, isl.ast_expr_op_type.select}
_MINUS = isl.ast_expr_op_type.minus


def scalar_of(least: isl.PwAff, values: Mapping[str, Value]) -> Scalar:
    """`least` as an INDEX, right wherever it is defined."""
    build = isl.AstBuild.from_context(least.domain())
    return _translated(build.expr_from_pw_aff(least), values)


def _translated(expr: isl.AstExpr, values: Mapping[str, Value]) -> Scalar:
    kind = expr.get_type()
    if kind == isl.ast_expr_type.int:
        return expr.get_val().to_python()
    if kind == isl.ast_expr_type.id:
        return values[expr.get_id().get_name()]
    operator = cast("isl.ast_expr_op_type", expr.get_op_type())
    parts = [_translated(expr.get_op_arg(at), values) for at in range(expr.get_op_n_arg())]
    if operator in _COND:
        return Select(*parts)
    if operator == _MINUS:
        return unary(UnaryKind.NEG, parts[0])
    made = _OPS[operator]
    join = logic if made in (BinaryKind.AND, BinaryKind.OR) else binary
    return reduce(lambda left, right: join(made, left, right), parts)
