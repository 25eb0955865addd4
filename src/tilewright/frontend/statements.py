"""Statements: assignments, calls on lines of their own, returns; loops, branches and scopes are passed on.

A block is read in a loop, not by recursion, so that its length costs no stack.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, cast

from tilewright.errors import DTypeError, LanguageError, ReboundOutError, ReturnError, Span, TilewrightError
from tilewright.frontend.annotations import read_type
from tilewright.frontend.bindings import LanguageName, as_scalar, describe, is_number, is_scalar
from tilewright.frontend.branches import read_if
from tilewright.frontend.context import Context, PendingYield
from tilewright.frontend.expressions import binary, call
from tilewright.frontend.jumps import GuardedFor
from tilewright.frontend.kernels import Results, as_one, unpacked
from tilewright.frontend.loops import read_for, read_while
from tilewright.frontend.operations import Arguments
from tilewright.frontend.scope import hidden_name
from tilewright.frontend.sections import read_with
from tilewright.frontend.subscripts import assign_subscript
from tilewright.ir.nodes import Call, Let
from tilewright.ir.op import is_array
from tilewright.ir.rewrite import placed_like, type_of
from tilewright.ir.scalar import Const, Scalar, Value
from tilewright.ir.types import ScalarType, TileType, Type
from tilewright.ir.verify import same_type

Handler = Callable[[Context, Any], None]


def read_statements(context: Context, body: Sequence[ast.stmt]) -> None:
    """Read statements in order into `context.out`. Every error is placed, at the latest at its statement."""
    for node in body:
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise unsupported(context, node)
        if context.pending is not None:
            raise LanguageError(
                "pl.yield_ is the last statement of its block", span=context.pending.span, help="move it to the end"
            )
        try:
            handler(context, node)
        except TilewrightError as error:
            raise error.at(context.span(node)) from None


def unsupported(context: Context, node: ast.stmt) -> LanguageError:
    """The error for a statement that is Python but not the language."""
    what, instead = _UNSUPPORTED.get(type(node), (type(node).__name__, "write it with the statements of pl"))
    return LanguageError(
        f"{what} is not part of the language",
        span=_first_line(context, node),
        required="assignments, if, for over pl.range, while, with pl.at, return",
        found=context.text(node),
        help=instead,
    )


def _first_line(context: Context, node: ast.stmt) -> Span:
    span = context.span(node)
    return span if span.end_line == span.line else Span(span.file, span.line, span.column, span.line, 10**6)


_UNSUPPORTED: dict[type[ast.stmt], tuple[str, str]] = {
    ast.Try: ("try", "kernels raise nothing; check with if"),
    ast.Raise: ("raise", "check before the kernel runs, or with pl.static_assert or pl.assert_"),
    ast.Assert: ("assert", "pl.assert_ checks in kernel.reference(...), pl.static_assert when it is compiled"),
    ast.FunctionDef: ("a nested function", "define it outside with @pl.jit.inline"),
    ast.ClassDef: ("a class", "define it outside the kernel"),
    ast.Import: ("import", "import outside the kernel"),
    ast.ImportFrom: ("import", "import outside the kernel"),
    ast.Delete: ("del", "values end by themselves"),
    ast.Global: ("global", "return what the kernel computes"),
    ast.Nonlocal: ("nonlocal", "return what the kernel computes"),
    ast.Match: ("match", "use if and elif"),
    ast.AsyncFor: ("async", "use for i in pl.range(...)"),
    ast.AsyncWith: ("async", "use with pl.at(...)"),
    ast.AsyncFunctionDef: ("async", "define a kernel with @pl.jit.inline"),
}


# --- assignments --------------------------------------------------------------------------------------------------
def _assign(context: Context, node: ast.Assign) -> None:
    if is_yield(context, node.value):
        names = [name for target in node.targets for name in _names(context, target)]
        _yield(context, cast("ast.Call", node.value), names, node)
        return
    value = context.evaluate(node.value)
    for target in node.targets:
        assign(context, target, value, context.span(node))


def assign(context: Context, target: ast.expr, value: object, span: Span) -> None:
    """Bind a target to a value that was read."""
    match target:
        case ast.Name(id=name):
            value = as_one(value)
            declared = context.declared.pop(name, None) if context.declared else None
            if declared is not None and isinstance(value, Value) and value.type is not declared:
                value = _placed(context, target, value, declared)
            bind(context, name, value, span, context.span(target))
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            _unpack(context, target, targets, value, span)
        case ast.Subscript():
            assign_subscript(context, as_one(context.evaluate(target.value)), target, as_one(value))
        case _:
            raise LanguageError(
                "this cannot be assigned",
                span=context.span(target),
                required="a name, names, or a part such as out[i:i+8, :]",
                found=context.text(target),
            )


def _unpack(context: Context, target: ast.expr, targets: list[ast.expr], value: object, span: Span) -> None:
    items = unpacked(value, len(targets)) if isinstance(value, Results) else value
    if not isinstance(items, tuple):
        items = (items,) if len(targets) == 1 else None
    values = cast("tuple[object, ...] | None", items)
    if values is None or len(values) != len(targets):
        found = describe(as_one(value))
        raise LanguageError(
            f"{len(targets)} names, and not as many values",
            span=context.span(target),
            required=f"{len(targets)} values",
            found=found,
        )
    for inner, item in zip(targets, values, strict=True):
        assign(context, inner, item, span)


def bind(context: Context, name: str, value: object, span: Span, target: Span) -> None:
    """Bind a name. A scalar expression becomes a statement of its own; an output parameter may only be bound to its
    own next version."""
    if value is None and isinstance(context.scope.get(name), Value):
        raise LanguageError(f"nothing to assign to {name!r}", span=span, help="leave the assignment out")
    output = context.scope.outputs.get(name)
    if output is not None:
        if value is not context.scope.get(hidden_name(name)):
            raise ReboundOutError(
                f"output {name!r} is re-bound to something else, and nothing is written to it",
                span=span,
                required=f"{name}[:] = value, or the next version of {name} that a store or call returns",
                found=describe(value),
                help=f"write {name}[:] = ... to fill it, or use another name",
            )
    if isinstance(value, Value):
        context.christen(value, name)
    elif is_scalar(value) and not is_number(value) and not isinstance(value, Const):
        scalar = as_scalar(value)
        assert scalar is not None
        value = context.let(scalar, name.partition(".")[0], type_of(scalar), span)
        value.span = target
    context.scope.set(name, value)


def _annotated(context: Context, node: ast.AnnAssign) -> None:
    if not isinstance(node.target, ast.Name):
        raise LanguageError("only a name takes a type", span=context.span(node.target))
    if node.value is None:
        _declare(context, node.target.id, read_type(context, node.annotation), node)
        return
    if is_yield(context, node.value):
        type = read_type(context, node.annotation)
        _yield(context, cast("ast.Call", node.value), [node.target.id], node, type)
        return
    declared = read_type(context, node.annotation)
    value = as_one(context.evaluate(node.value))
    name, span = node.target.id, context.span(node)
    if isinstance(declared, ScalarType):
        scalar = as_scalar(value, declared.dtype) if is_number(value) else as_scalar(value)
        if scalar is None or type_of(scalar) is not declared:
            raise _wrong_type(context, node, declared, value)
        made = context.let(scalar, name, declared, span)
        context.scope.set(name, made)
        return
    if not isinstance(value, Value) or not is_array(value):
        raise _wrong_type(context, node, declared, value)
    if isinstance(node.value, ast.Name) and isinstance(declared, TileType) and same_type(value.type, declared):
        value = context.let(value, name, declared, span)
    if value.type is not declared:
        value = _placed(context, node, value, declared)
    bind(context, name, value, span, context.span(node.target))


def _declare(context: Context, name: str, type: Type, node: ast.AnnAssign) -> None:
    """`x: type` on a line of its own: of a value that the loop carries, at the start of its body; else of the names
    that the statement after it binds."""
    value = context.scope.get(name)
    if context.out or not isinstance(value, Value) or value not in context.carried:
        context.declared[name] = type
    elif same_type(placed_like(value.type, type), type):
        value.type = type
    else:
        raise _wrong_type(context, node, type, value)


def _placed(context: Context, node: ast.AST, value: Value, declared: Type) -> Value:
    """The value with the placement that its annotation adds. Raises `DTypeError` when the two do not agree."""
    last = context.out[-1] if context.out else None
    fresh = last is not None and value in last.defs() and isinstance(last, Let | Call)
    agrees = same_type(placed_like(value.type, declared), declared)
    if isinstance(declared, TileType) and isinstance(value.type, TileType) and agrees and fresh:
        value.type = declared
        return value
    if same_type(value.type, declared):
        return value
    raise _wrong_type(context, node, declared, value)


def _wrong_type(context: Context, node: ast.AST, declared: Type, value: object) -> DTypeError:
    target, at = (node.target, node.annotation) if isinstance(node, ast.AnnAssign) else (node, node)
    return DTypeError(
        f"{context.text(target)!r} is not of the type that it is declared with",
        span=context.span(at),
        required=repr(declared),
        found=describe(value),
    )


def _augmented(context: Context, node: ast.AugAssign) -> None:
    read = ast.copy_location(_as_read(node.target), node.target)
    old, value = as_one(context.evaluate(read)), as_one(context.evaluate(node.value))
    result = binary(context, node.op, old, value, node)
    name = node.target.id if isinstance(node.target, ast.Name) else ""
    if name in context.scope.outputs:
        whole = ast.copy_location(ast.Subscript(read, ast.copy_location(ast.Slice(), read), ast.Store()), node.target)
        assign_subscript(context, old, whole, result)
        return
    assign(context, node.target, result, context.span(node))


def _as_read(target: ast.Name | ast.Attribute | ast.Subscript) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    if isinstance(target, ast.Subscript):
        return ast.Subscript(target.value, target.slice, ast.Load())
    return ast.Attribute(target.value, target.attr, ast.Load())


# --- yields, returns, calls ---------------------------------------------------------------------------------------
def is_yield(context: Context, node: ast.expr) -> bool:
    """Whether an expression is a call of `pl.yield_`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr != "yield_":
        return False
    called = context.evaluate(node.func)
    return isinstance(called, LanguageName) and called.path == "yield_"


def _names(context: Context, target: ast.expr) -> list[str]:
    items = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    if not all(isinstance(item, ast.Name) for item in items):
        raise LanguageError("pl.yield_ gives values to names", span=context.span(target), found=context.text(target))
    return [cast("ast.Name", item).id for item in items]


def _yield(context: Context, node: ast.Call, names: list[str], at: ast.stmt, type: Type | None = None) -> None:
    arguments = Arguments(context, node)
    values = [as_one(value) for value, _, _ in arguments.positional]
    scalars = [cast("Scalar", value) if is_array(value) else as_scalar(value) for value in values]
    if arguments.keywords or any(scalar is None for scalar in scalars) or (names and len(names) != len(scalars)):
        raise LanguageError(
            "pl.yield_ hands out one tensor, tile or scalar per name",
            span=context.span(node),
            required=f"{len(names)} values",
            found=describe(tuple(values)),
        )
    names = names or [_name_of(value) for value in scalars]
    found = [type or context.declared.pop(name, None) for name in names]
    context.pending = PendingYield(names, cast("list[Scalar]", scalars), found, context.span(at))


def _name_of(value: object) -> str:
    return value.name if isinstance(value, Value) else "value"


def _expression(context: Context, node: ast.Expr) -> None:
    if isinstance(node.value, ast.Constant):
        return
    if is_yield(context, node.value):
        _yield(context, cast("ast.Call", node.value), [], node)
        return
    if not isinstance(node.value, ast.Call):
        raise LanguageError(
            "this value is not used",
            span=context.span(node),
            found=context.text(node),
            help="give it a name, or write it to an output: out[:] = ...",
        )
    call(context, node.value, statement=True)


def _return(context: Context, node: ast.Return) -> None:
    raise ReturnError(
        "return is the last statement of a kernel",
        span=context.span(node),
        help="assign the result in both branches, and return it at the end",
    )


def returned(context: Context, node: ast.Return | None) -> list[Scalar]:
    """The values that a function's final `return` hands out."""
    if node is None or node.value is None:
        return []
    value = context.evaluate(node.value)
    if isinstance(node.value, ast.Tuple):
        items = list(cast("tuple[object, ...]", value))
    else:
        value = as_one(value)
        items = list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else [value]
    found: list[Scalar] = []
    for item in items:
        scalar = cast("Scalar", item) if is_array(item) else as_scalar(item)
        if scalar is None:
            if item is None and len(items) == 1:
                return []
            raise ReturnError(
                "a kernel returns tensors, tiles and scalars", span=context.span(node), found=describe(item)
            )
        found.append(scalar)
    return found


def _pass(context: Context, node: ast.Pass) -> None:
    """Nothing."""


_HANDLERS: dict[type[ast.stmt], Handler] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Expr: _expression,
    ast.If: read_if,
    ast.For: read_for,
    GuardedFor: read_for,
    ast.While: read_while,
    ast.With: read_with,
    ast.Return: _return,
    ast.Pass: _pass,
}
