"""The head of a loop: its kind, its bounds, its variable and the names of what it carries explicitly."""

from __future__ import annotations

import ast
from typing import cast

from tilewright.errors import LanguageError
from tilewright.frontend.arithmetic import as_index
from tilewright.frontend.bindings import as_scalar, describe
from tilewright.frontend.context import Context
from tilewright.frontend.decorators import language_path
from tilewright.frontend.operations import Arguments
from tilewright.ir.nodes import LoopKind
from tilewright.ir.scalar import Scalar, dtype_of

KINDS = {
    "range": LoopKind.SEQUENTIAL,
    "parallel": LoopKind.PARALLEL,
    "spmd": LoopKind.PARALLEL,
    "unroll": LoopKind.UNROLL,
    "pipeline": LoopKind.PIPELINE,
}


def bounds(context: Context, arguments: Arguments) -> tuple[Scalar, Scalar, Scalar]:
    values = [value for value, _, _ in arguments.positional]
    scalars = [as_scalar(value) if not isinstance(value, float | bool) else None for value in values]
    if not 1 <= len(values) <= 3 or any(s is None or not dtype_of(s).is_integer for s in scalars):
        raise LanguageError(
            "a range takes one to three integers",
            span=arguments.span,
            required="pl.range(stop), pl.range(start, stop) or pl.range(start, stop, step)",
            found=describe(tuple(values)),
        )
    bounds = [as_index(scalar) for scalar in cast("list[Scalar]", scalars)]
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if step == 0:
        raise LanguageError("the step of a range is not 0", span=arguments.span)
    return start, stop, step


def targets(context: Context, node: ast.For) -> tuple[str, list[str]]:
    """The loop variable, and the names of the values that are carried explicitly."""
    match node.target:
        case ast.Name(id=name):
            return name, []
        case ast.Tuple(elts=[ast.Name(id=name), ast.Tuple(elts=carried) | ast.List(elts=carried)]):
            if all(isinstance(item, ast.Name) for item in carried):
                return name, [cast("ast.Name", item).id for item in carried]
        case _:
            pass
    raise LanguageError(
        "a loop binds its variable, and in a second place the values that it carries",
        span=context.span(node.target),
        required="for i in …, or for i, (x, y) in …",
        found=context.text(node.target),
    )


def stage_of(path: str, arguments: Arguments) -> int:
    """The depth of a pipelined loop, 1 for others. Raises for keywords that the loop does not take."""
    kind = KINDS[path]
    allowed = {"init_values"} | ({"stage"} if kind is LoopKind.PIPELINE else set[str]())
    for name, (_, span, _) in arguments.keywords.items():
        if name not in allowed and path != "spmd":
            raise LanguageError(
                f"this loop takes no {name!r}", span=span, required=", ".join(sorted(allowed)), found=name
            )
    stage = arguments.keywords.get("stage", (2 if kind is LoopKind.PIPELINE else 1, arguments.span, None))
    if not isinstance(stage[0], int) or stage[0] < 1:
        raise LanguageError("stage is a number of stages, at least 1", span=stage[1], found=describe(stage[0]))
    return stage[0]


def split_condition(context: Context, body: list[ast.stmt]) -> tuple[list[ast.stmt], ast.expr | None]:
    """The body without the `pl.cond(...)` that it starts with, and what that asks."""
    first = body[0]
    called = first.value if isinstance(first, ast.Expr) and isinstance(first.value, ast.Call) else None
    if called is None or language_path(called.func, context.source.names) != "cond":
        return body, None
    if len(called.args) != 1 or called.keywords:
        raise LanguageError(
            "pl.cond asks one condition",
            span=context.span(called),
            required="pl.cond(x < n)",
            found=context.text(called),
        )
    return body[1:], called.args[0]


def while_targets(context: Context, node: ast.For, arguments: Arguments, asked: ast.expr | None) -> list[str]:
    """The names of the values that `for (x, y) in pl.while_(...)` carries."""
    items = node.target.elts if isinstance(node.target, ast.Tuple | ast.List) else [node.target]
    if asked is None or arguments.positional or set(arguments.keywords) != {"init_values"}:
        raise LanguageError(
            "pl.while_ carries values, and asks a condition of them first",
            span=context.span(node.iter),
            required="for (x,) in pl.while_(init_values=(0,)): pl.cond(x < n)",
            found=context.text(node.iter) if asked is not None else "no pl.cond(...)",
            help="start the body with pl.cond(...), or write while x < n:",
        )
    if not all(isinstance(item, ast.Name) for item in items):
        raise LanguageError(
            "pl.while_ gives its values to names", span=context.span(node.target), found=context.text(node.target)
        )
    return [cast("ast.Name", item).id for item in items]
