"""The head of a loop: its kind, its bounds, its variable and the names of what it carries explicitly."""

from __future__ import annotations

import ast
from typing import cast

from tilewright.errors import LanguageError
from tilewright.frontend.bindings import as_scalar, describe
from tilewright.frontend.context import Context
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
    bounds = cast("list[Scalar]", scalars)
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


def stage_of(kind: LoopKind, arguments: Arguments) -> int:
    allowed = {"init_values"} | ({"stage"} if kind is LoopKind.PIPELINE else set[str]())
    for name, (_, span, _) in arguments.keywords.items():
        if name not in allowed:
            raise LanguageError(
                f"this loop takes no {name!r}", span=span, required=", ".join(sorted(allowed)), found=name
            )
    stage = arguments.keywords.get("stage", (2 if kind is LoopKind.PIPELINE else 1, arguments.span, None))
    if not isinstance(stage[0], int) or stage[0] < 1:
        raise LanguageError("stage is a number of stages, at least 1", span=stage[1], found=describe(stage[0]))
    return stage[0]
