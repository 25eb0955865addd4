"""`pl.print`, `pl.assert_` and `breakpoint()`: what the author watches while `f.reference(...)` interprets a kernel.

They are statements of programs that are read for the interpreter, and nothing in programs that are compiled: there
their arguments are not even evaluated, so that looking changes nothing.
"""

from __future__ import annotations

import ast

from tilewright.errors import CallError, LanguageError
from tilewright.frontend.arithmetic import as_condition, is_static
from tilewright.frontend.bindings import Builtin, LanguageName, as_scalar, describe
from tilewright.frontend.context import Context
from tilewright.frontend.kernels import as_one
from tilewright.ir.nodes import Probe
from tilewright.ir.op import is_array
from tilewright.ir.scalar import Scalar, Value

KINDS = {"print": "print", "assert_": "assert"}


def probe_kind(called: object) -> str | None:
    """The kind of probe that a called name is."""
    if isinstance(called, Builtin):
        return "break" if called.name == "breakpoint" else None
    return KINDS.get(called.path) if isinstance(called, LanguageName) else None


def read_probe(context: Context, kind: str, node: ast.Call) -> None:
    """One probe, where the program is to have it."""
    if not context.functions.probes:
        return
    span = context.span(node)
    if node.keywords:
        raise CallError(f"{context.text(node.func)} takes no keywords", span=span, found=context.text(node))
    given = [as_one(context.evaluate(each)) for each in node.args]
    if kind == "assert":
        if not given:
            raise CallError("pl.assert_ takes a condition", span=span, required='pl.assert_(x > 0.0, "message")')
        given[0] = _condition(context, given[0], node.args[0])
    parts = tuple(_part(value) for value in given)
    context.out.append(Probe(kind, parts, span=span))


def _condition(context: Context, value: object, node: ast.expr) -> object:
    if is_array(value):
        raise LanguageError(
            "a tensor or tile is no condition", span=context.span(node), found=describe(value),
            help="read one element, t[i, j]",
        )  # fmt: skip
    if is_static(value):
        return bool(value)
    scalar = as_scalar(value)
    return value if scalar is None else as_condition(scalar)


def _part(value: object) -> str | Scalar:
    if isinstance(value, str):
        return value
    if is_array(value) and isinstance(value, Value):
        return value
    scalar = as_scalar(value)
    return describe(value) if scalar is None else scalar
