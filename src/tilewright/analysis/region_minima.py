"""The least element of a set as a scalar over the values that its parameters stand for.

[v0] -> { [(0)] : v0 = 0; [(8 v0 - 1)] : v0 > 0 }    becomes    select(h == 0, 0, h * 8 - 1)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, reduce
from typing import TYPE_CHECKING, cast

from tilewright.ir.scalar import BinaryKind, Scalar, Select, UnaryKind, Value, binary, logic, unary

if TYPE_CHECKING:
    import islpy as isl

_KINDS = {
    "add": BinaryKind.ADD, "sub": BinaryKind.SUB, "mul": BinaryKind.MUL, "div": BinaryKind.FLOORDIV,
    "fdiv_q": BinaryKind.FLOORDIV, "pdiv_q": BinaryKind.FLOORDIV, "pdiv_r": BinaryKind.MOD, "zdiv_r": BinaryKind.MOD,
    "min": BinaryKind.MIN, "max": BinaryKind.MAX, "eq": BinaryKind.EQ, "le": BinaryKind.LE, "lt": BinaryKind.LT,
    "ge": BinaryKind.GE, "gt": BinaryKind.GT, "and_": BinaryKind.AND, "and_then": BinaryKind.AND,
    "or_": BinaryKind.OR, "or_else": BinaryKind.OR,
}  # fmt: skip


@cache
def _operators() -> dict[isl.ast_expr_op_type, BinaryKind]:
    import islpy as isl

    return {getattr(isl.ast_expr_op_type, name): kind for name, kind in _KINDS.items()}


def scalar_of(least: isl.PwAff, values: Mapping[str, Value]) -> Scalar:
    """`least` as an INDEX, right wherever it is defined."""
    import islpy as isl

    build = isl.AstBuild.from_context(least.domain())
    return _translated(build.expr_from_pw_aff(least), values)


def _translated(expr: isl.AstExpr, values: Mapping[str, Value]) -> Scalar:
    import islpy as isl

    kind = expr.get_type()
    if kind == isl.ast_expr_type.int:
        return expr.get_val().to_python()
    if kind == isl.ast_expr_type.id:
        return values[expr.get_id().get_name()]
    operator = cast("isl.ast_expr_op_type", expr.get_op_type())
    parts = [_translated(expr.get_op_arg(at), values) for at in range(expr.get_op_n_arg())]
    if operator in (isl.ast_expr_op_type.cond, isl.ast_expr_op_type.select):
        return Select(*parts)
    if operator == isl.ast_expr_op_type.minus:
        return unary(UnaryKind.NEG, parts[0])
    made = _operators()[operator]
    join = logic if made in (BinaryKind.AND, BinaryKind.OR) else binary
    return reduce(lambda left, right: join(made, left, right), parts)
