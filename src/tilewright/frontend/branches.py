"""Branches and scopes: the values that they hand out.

Before:  if c:                After:  if c:
             x = y + 1                    x_1 = pl.yield_(y + 1)
                                      else:
                                          x_1 = pl.yield_(x)

A branch hands out each name that it binds and that is read later; so does a scope. What `pl.yield_` names explicitly
comes first. A name that has a value on one path only has none afterwards.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from tilewright.errors import DTypeError, LanguageError, Span
from tilewright.frontend.bindings import Missing, Undefined, as_scalar, describe
from tilewright.frontend.context import Context, LoopFacts, PendingYield
from tilewright.frontend.forms import condition
from tilewright.frontend.kernels import as_one
from tilewright.frontend.scope import is_hidden
from tilewright.frontend.versions import End
from tilewright.ir.nodes import If, Scope, Stmt, Yield
from tilewright.ir.op import is_array
from tilewright.ir.rewrite import type_of
from tilewright.ir.scalar import Expr, Scalar, Value, values_in
from tilewright.ir.types import TensorType, Type
from tilewright.ir.verify import same_type


@dataclass(slots=True)
class Arm:
    """One block that was read: its statements, what it yielded explicitly, and what it bound names to."""

    statements: list[Stmt]
    pending: PendingYield | None
    bound: dict[str, object]
    ended: dict[Value, End]


def read_arm(context: Context, body: Sequence[ast.stmt]) -> Arm:
    """Read a nested block. The names are afterwards what they were before."""
    outer, context.pending = context.pending, None
    context.scope.open()
    statements = context.collect(body)
    pending, context.pending = context.pending, outer
    return Arm(statements, pending, *context.scope.close())


def read_if(context: Context, node: ast.If) -> None:
    """`if`: one arm is read when the condition is known, else both, and their values joined."""
    decided = condition(context, node.test)
    if isinstance(decided, bool) and not isinstance(node.test, ast.Constant):
        context.statements(node.body if decided else node.orelse)
        given, context.pending = context.pending, None
        for name, value in zip(given.names, given.values, strict=True) if given is not None else ():
            context.scope.set(name, value)
        return
    decided = as_scalar(decided)
    assert decided is not None
    then, otherwise = read_arm(context, node.body), read_arm(context, node.orelse)
    _join(context, node, decided, (then, otherwise))


def read_scope(context: Context, node: ast.With, kind: str, options: tuple[tuple[str, Any], ...]) -> None:
    """`with pl.at(...)`: one section, whose values go on outside."""
    _join(context, node, (kind, options), (read_arm(context, node.body),))


def _join(context: Context, node: ast.stmt, head: Any, arms: tuple[Arm, ...]) -> None:
    """Append the `If` or `Scope` and bind what it hands out."""
    facts, span = context.facts[node], context.span(node)
    results, columns = _explicit(context, arms, span)
    explicit = {result.name for result in results}
    made = {value for arm in arms for stmt in arm.statements for value in stmt.defs()}
    joiner = _Joiner(context, facts, span, made, results, columns, dict(zip(columns, results, strict=True)))
    names = list(dict.fromkeys(name for arm in arms for name in arm.bound if name not in explicit))
    for name in names:
        before = context.scope.get(name)
        values = tuple(arm.bound.get(name, before) for arm in arms)
        context.scope.set(name, joiner.binding(name, values))
    for result in results[: len(explicit)]:
        context.scope.set(result.name, result)
    for arm in arms:
        for value, end in arm.ended.items():
            context.scope.end(value, end)
    blocks = [
        (*arm.statements, Yield(tuple(column[index] for column in columns), span=_end(arm, span)))
        for index, arm in enumerate(arms)
    ]
    context.out.append(
        If(head, blocks[0], blocks[1], tuple(results), span=span)
        if len(arms) == 2
        else Scope(head[0], head[1], blocks[0], tuple(results), span=span)
    )


def _end(arm: Arm, span: Span) -> Span:
    return arm.pending.span if arm.pending else (arm.statements[-1].span if arm.statements else span)


def _explicit(context: Context, arms: tuple[Arm, ...], span: Span) -> tuple[list[Value], list[tuple[Scalar, ...]]]:
    """The results of `pl.yield_`, and what each arm gives for them."""
    given = [arm.pending for arm in arms if arm.pending is not None]
    if not given:
        return [], []
    if len(given) != len(arms) or any(g.names != given[0].names for g in given):
        raise LanguageError(
            "both arms of an if yield to the same names",
            span=given[-1].span,
            required=", ".join(given[0].names),
            found=", ".join(given[-1].names) if len(given) == len(arms) else "a yield in one arm only",
            help="assign the names in both arms instead; the values are handed out without pl.yield_",
        )
    results: list[Value] = []
    columns: list[tuple[Scalar, ...]] = []
    for index, name in enumerate(given[0].names):
        column = tuple(g.values[index] for g in given)
        type = given[0].types[index] or type_of(column[0])
        for value in column[1:]:
            _same(name, type, type_of(value), given[-1].span)
        results.append(_result(context, name, type, column, span))
        columns.append(column)
    return results, columns


def _result(context: Context, name: str, type: Type, column: tuple[Scalar, ...], span: Span) -> Value:
    """The value that a statement hands out. Versions of one tensor join to its next version."""
    result, versions = Value(name, type, span), context.scope.versions
    sources = tuple(value for value in column if isinstance(value, Value))
    if isinstance(type, TensorType) and sources:
        one = len({versions.root(source) for source in sources}) == 1 and not any(map(versions.is_joined, sources))
        if len(sources) == 1 or one:
            versions.passes(result, sources)
        else:
            versions.joins(result, sources)
    return result


def _same(name: str, required: Type, found: Type, span: Span) -> None:
    if not same_type(required, found):
        raise DTypeError(
            f"{name!r} has two types where paths join",
            span=span,
            required=repr(required),
            found=repr(found),
            help="give it one type on every path, or use two names",
        )


@dataclass(slots=True)
class _Joiner:
    """What names stand for after the arms of one statement, which hands out `results`, one for each of `columns`."""

    context: Context
    facts: LoopFacts
    span: Span
    made: set[Value]
    """what the arms define"""
    results: list[Value]
    columns: list[tuple[Scalar, ...]]
    joined: dict[tuple[object, ...], Value]

    def binding(self, name: str, values: tuple[object, ...]) -> object:
        """What `name` stands for after the arms bound it to `values`."""
        if any(isinstance(value, Missing | Undefined) for value in values):
            if all(isinstance(value, Missing | Undefined) for value in values):
                return values[0]
            return Undefined("is assigned on one path only", self.span)
        if not is_hidden(name) and name in self.facts.assigned and name not in self.facts.live:
            return Undefined("is not kept after this statement", self.span)
        return self.one(name, values)

    def one(self, name: str, values: tuple[object, ...]) -> object:
        """One binding for all arms; of tuples of one length, element by element."""
        if all(value is values[0] for value in values) and not _made_in(values[0], self.made):
            return values[0]
        items = [as_one(value) for value in values]
        if all(isinstance(item, tuple) for item in items):
            rows = cast("list[tuple[object, ...]]", items)
            if len({len(row) for row in rows}) == 1:
                return tuple(self.one(f"{name}_{i}", column) for i, column in enumerate(zip(*rows, strict=True)))
        scalars = [cast("Scalar", item) if is_array(item) else as_scalar(item) for item in items]
        known = not any(isinstance(scalar, Value) or hasattr(scalar, "children") for scalar in scalars)
        if any(scalar is None for scalar in scalars) or (known and len({repr(v) for v in values}) == 1):
            if len({repr(v) for v in values}) == 1:
                return values[0]
            raise LanguageError(
                f"{name!r} is two things that do not join",
                span=self.span,
                found=" and ".join(describe(value) for value in values),
                help="use two names",
            )
        return self.result(name, cast("tuple[Scalar, ...]", tuple(scalars)))

    def result(self, name: str, column: tuple[Scalar, ...]) -> Value:
        """The result that hands out `column`."""
        for value in column:
            if isinstance(value, Value) and value not in self.made:
                self.context.scope.versions.check_read(value, name.lstrip("%"), self.span)
        if column in self.joined:
            return self.joined[column]
        type = type_of(column[0])
        for value in column[1:]:
            _same(name.lstrip("%"), type, type_of(value), self.span)
        first = column[0]
        shown = first.name if is_hidden(name) and isinstance(first, Value) else name.lstrip("%")
        result = _result(self.context, shown, type, column, self.span)
        self.results.append(result)
        self.columns.append(column)
        self.joined[column] = result
        return result


def _made_in(binding: object, made: set[Value]) -> bool:
    """Whether a binding is made of values that are defined inside the block."""
    if isinstance(binding, tuple):
        return any(_made_in(item, made) for item in cast("tuple[object, ...]", binding))
    return isinstance(binding, Expr) and any(value in made for value in values_in(binding))
