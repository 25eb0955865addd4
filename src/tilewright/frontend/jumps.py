"""`while`, `break` and `continue` as what the rest of the reader knows: conditions, and loops that carry one.

Before:  while x < n:              After:  go = x < n
             if x == s:                    while go:
                 break                         if x == s:
             x = x + 1                             go = False
                                               else:
                                                   x = x + 1
                                               if go:
                                                   go = x < n

A jump leaves the rest of its block to the paths that do not jump: it goes into the other arm, or where some paths
through an arm jump and some do not, under a flag. The rewriting is of the syntax tree, before anything else looks at
it, so that liveness and the joining of paths need no case for jumps.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeVar, cast

from tilewright.errors import LanguageError, ReturnError
from tilewright.frontend.syntax import span_of

S = TypeVar("S", bound=ast.stmt)
PathOf = Callable[[ast.expr], str | None]
"""The name of the language that an expression is, after ``pl.``, if it is one."""

UNORDERED = ("parallel", "spmd", "split_aiv")
"""Loops without an order of trips, in which none can be the last."""


MOST_COPIED = 50_000
"""Nodes of the syntax tree that returns may double."""


class Condition(ast.expr):
    """An expression as what a branch decides by: a bool that is known, or a BOOL scalar."""

    _fields = ("test",)

    test: ast.expr


def _condition(test: ast.expr) -> Condition:
    made = Condition()
    made.test = test
    return ast.copy_location(made, test)


class GuardedFor(ast.For):
    """A `for` that ends when the flag called `guard` does not hold."""

    guard: str


def guard_of(node: ast.AST) -> str | None:
    """The flag that a loop asks before each trip, if it has one."""
    if isinstance(node, GuardedFor):
        return node.guard
    return node.test.id if isinstance(node, ast.While) and isinstance(node.test, ast.Name) else None


class _End(Enum):
    """How a block ends: by falling through always, sometimes, or never."""

    FALLS = auto()
    SOME_JUMP = auto()
    JUMPS = auto()


@dataclass(slots=True)
class _Loop:
    """The loop whose body is being rewritten. `go`: whether there is another trip; `on`: whether this one goes on."""

    node: ast.For | ast.While
    go: str
    on: str
    breaks: bool = False
    tests: bool = False
    """`on` is asked somewhere"""
    marks: list[ast.stmt] = field(default_factory=list[ast.stmt])
    """the statements that set `on`"""


def without_jumps(body: Sequence[ast.stmt], file: str, path_of: PathOf) -> list[ast.stmt]:
    """`body` without jumps; the same statements where it has none. Raises `LanguageError`."""
    return _Rewriter(file, path_of).block(body, None)[0]


def with_one_return(
    body: Sequence[ast.stmt], last: ast.Return | None, file: str
) -> tuple[list[ast.stmt], ast.Return | None]:
    """A function's body and its final `return`, where others stood in branches and sections: each gives its values to
    names, and the last statement returns those. Raises `ReturnError` unless all paths return as much. Loops have none
    (`frontend.returns`)."""
    early = [node for stmt in body for node in returns_of(stmt)]
    if not early:
        return [*body], last
    whole, returns = _Returns(file).block([*body, *([last] if last is not None else [])])
    given = [*early, *([last] if last is not None else [])]
    counts = {len(_values(node)) for node in given}
    if len(counts) > 1 or (not returns and counts != {0}):
        raise ReturnError(
            "some paths through the kernel return more than others",
            span=span_of(file, early[0]),
            required="a return of equally many values at the end of every path",
            help="end the kernel with a return as well",
        )
    at = given[-1]
    names: list[ast.expr] = [named(f"result.{i}", at) for i in range(counts.pop())]
    if not names:
        return whole, None
    value = names[0] if len(names) == 1 else ast.copy_location(ast.Tuple(names, ast.Load()), at)
    return whole, ast.copy_location(ast.Return(value), at)


def returns_of(stmt: ast.AST) -> Iterator[ast.Return]:
    """The returns of a statement, without those of functions that it defines."""
    if isinstance(stmt, ast.Return):
        yield stmt
    elif not isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        for part in ("body", "handlers", "orelse", "finalbody", "cases"):
            for inner in cast("list[ast.AST]", getattr(stmt, part, ())):
                yield from returns_of(inner)


def _values(node: ast.Return) -> list[ast.expr]:
    if node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None):
        return []
    return node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]


class _Rewriter:
    def __init__(self, file: str, path_of: PathOf) -> None:
        self.file = file
        self.path_of = path_of
        self.loops = 0
        self.ends: dict[ast.stmt, tuple[_End, _End]] = {}
        """how the arms of each branch end"""

    def block(self, body: Sequence[ast.stmt], loop: _Loop | None) -> tuple[list[ast.stmt], _End]:
        """The statements of a block of `loop`'s body, and how it ends. What cannot be reached is left out."""
        out: list[ast.stmt] = []
        for index, stmt in enumerate(body):
            made, end = self.stmt(stmt, loop)
            out += made
            if end is _End.FALLS:
                continue
            if end is _End.SOME_JUMP:
                rest, after = self.block(body[index + 1 :], loop)
                assert loop is not None
                if rest:
                    self.under(out, rest, loop)
                return out, _End.JUMPS if after is _End.JUMPS else _End.SOME_JUMP
            return out, end
        return out, _End.FALLS

    def under(self, out: list[ast.stmt], rest: list[ast.stmt], loop: _Loop) -> None:
        """Append `rest` for the paths through the last statement of `out` that do not jump."""
        last = out[-1]
        ends = self.ends.get(last)
        if isinstance(last, ast.If) and ends is not None and set(ends) == {_End.JUMPS, _End.FALLS}:
            into = last.orelse if ends[0] is _End.JUMPS else last.body
            into[:] = [*(stmt for stmt in into if not isinstance(stmt, ast.Pass)), *rest]
            return
        loop.tests = True
        out.append(ast.copy_location(ast.If(named(loop.on, last), rest, []), last))

    def stmt(self, stmt: ast.stmt, loop: _Loop | None) -> tuple[list[ast.stmt], _End]:
        match stmt:
            case ast.Break() | ast.Continue():
                return self.jump(stmt, loop), _End.JUMPS
            case ast.For() | ast.While():
                return self.loop(stmt), _End.FALLS
            case ast.If():
                then, first = self.block(stmt.body, loop)
                otherwise, second = self.block(stmt.orelse, loop)
                made = like(stmt, ast.If(stmt.test, then or [_pass(stmt)], otherwise))
                self.ends[made] = first, second
                return [made], first if first is second else _End.SOME_JUMP
            case ast.With():
                inside, end = self.block(stmt.body, loop)
                made = like(stmt, ast.With(stmt.items, inside or [_pass(stmt)]))
                return [made], end
            case _:
                return [stmt], _End.FALLS

    def jump(self, stmt: ast.Break | ast.Continue, loop: _Loop | None) -> list[ast.stmt]:
        word = "break" if isinstance(stmt, ast.Break) else "continue"
        if loop is None:
            raise LanguageError(f"{word} outside of a loop", span=span_of(self.file, stmt), help="remove it")
        mark = set_name(loop.on, ast.Constant(False), stmt)
        loop.marks.append(mark)
        if word == "continue":
            return [mark]
        loop.breaks = True
        return [set_name(loop.go, ast.Constant(False), stmt), mark]

    # --- loops ---
    def loop(self, node: ast.For | ast.While) -> list[ast.stmt]:
        """A loop, and what stands before it."""
        if node.orelse:
            where = span_of(self.file, node.orelse[0])
            raise LanguageError("a loop has no else", span=where, help="write it after the loop")
        self.loops += 1
        loop = _Loop(node, f"go.{self.loops}", f"on.{self.loops}")
        body, _ = self.block(node.body, loop)
        if loop.tests:
            body.insert(0, set_name(loop.on, ast.Constant(True), node))
        else:
            marks = {id(mark) for mark in loop.marks}
            body = list(_without(body, marks))
        body = body or [_pass(node)]
        if isinstance(node, ast.While):
            return self.while_loop(node, loop, body)
        path = self.path_of(node.iter.func) if isinstance(node.iter, ast.Call) else None
        self.check(node, loop, path)
        if not loop.breaks:
            return [like(node, ast.For(node.target, node.iter, body, []))]
        start = set_name(loop.go, ast.Constant(True), node)
        if path == "static_range":
            whole = like(node, ast.If(named(loop.go, node), body, []))
            return [start, like(node, ast.For(node.target, node.iter, [whole], []))]
        made = like(node, GuardedFor(node.target, node.iter, body, []))
        made.guard = loop.go
        return [start, made]

    def while_loop(self, node: ast.While, loop: _Loop, body: list[ast.stmt]) -> list[ast.stmt]:
        known = node.test.value if isinstance(node.test, ast.Constant) else None
        if known is not None and not known:
            return [_pass(node)]
        if known is not None and not loop.breaks:
            raise LanguageError(
                "this loop never ends", span=span_of(self.file, node.test), help="give it a condition, or a break"
            )
        start: ast.expr = _condition(node.test) if known is None else ast.Constant(True)
        if known is None:
            again: ast.stmt = set_name(loop.go, _condition(node.test), node.test)
            if loop.breaks:
                again = ast.copy_location(ast.If(named(loop.go, node), [again], []), node.test)
            body = [*body, again]
        made = like(node, ast.While(named(loop.go, node.test), body, []))
        return [set_name(loop.go, start, node.test), made]

    def check(self, node: ast.For, loop: _Loop, path: str | None) -> None:
        """Raises for a jump that its loop has no place for."""
        explicit = isinstance(node.target, ast.Tuple) or path == "while_"
        jumps = loop.breaks or loop.marks
        if jumps and explicit:
            raise LanguageError(
                "break and continue go with values that a loop carries by re-assignment",
                span=span_of(self.file, node),
                required="a loop without init_values=",
                help="assign the values before the loop, and assign them again inside it",
            )
        if loop.breaks and path in UNORDERED:
            raise LanguageError(
                f"the trips of pl.{path} have no order, so that none of them ends the loop",
                span=span_of(self.file, node.target),
                help="use pl.range, or continue",
            )


class _Returns:
    """Returns as assignments. What follows a statement that may return becomes part of it: of the arms of a branch
    that do not, and of a section."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.copied = 0

    def block(self, body: Sequence[ast.stmt]) -> tuple[list[ast.stmt], bool]:
        """The statements, and whether every path through them returns."""
        out: list[ast.stmt] = []
        for index, stmt in enumerate(body):
            if isinstance(stmt, ast.Return):
                return [*out, *(set_name(f"result.{i}", value, value) for i, value in enumerate(_values(stmt)))], True
            inside = next(returns_of(stmt), None)
            if inside is None:
                out.append(stmt)
                continue
            rest = body[index + 1 :]
            if isinstance(stmt, ast.If):
                then, first = self.block([*stmt.body, *rest])
                otherwise, second = self.block([*stmt.orelse, *self.copy(rest, inside)])
                out.append(like(stmt, ast.If(stmt.test, then or [_pass(stmt)], otherwise)))
                return out, first and second
            if isinstance(stmt, ast.With):
                made, returns = self.block([*stmt.body, *rest])
                return [*out, like(stmt, ast.With(stmt.items, made))], returns
            out.append(stmt)
        return out, False

    def copy(self, body: Sequence[ast.stmt], at: ast.Return) -> list[ast.stmt]:
        """`body` once more, for the other arm of a branch. What cannot be reached there is dropped afterwards."""
        self.copied += sum(1 for stmt in body for _ in ast.walk(stmt))
        if self.copied > MOST_COPIED:
            raise ReturnError(
                "too much follows the returns of this kernel", span=span_of(self.file, at),
                help="assign the results in the branches, and return them at the end",
            )  # fmt: skip
        return deepcopy([*body])


def _without(body: Sequence[ast.stmt], dropped: set[int]) -> Iterator[ast.stmt]:
    """The statements that are not among `dropped`, in nested blocks too."""
    for stmt in body:
        if id(stmt) in dropped:
            continue
        if isinstance(stmt, ast.If | ast.With):
            stmt.body[:] = [*_without(stmt.body, dropped)] or [_pass(stmt)]
        if isinstance(stmt, ast.If):
            stmt.orelse[:] = _without(stmt.orelse, dropped)
        yield stmt


def named(name: str, at: ast.AST) -> ast.Name:
    return ast.copy_location(ast.Name(name, ast.Load()), at)


def _pass(at: ast.AST) -> ast.stmt:
    return ast.copy_location(ast.Pass(), at)


def set_name(name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
    target = ast.copy_location(ast.Name(name, ast.Store()), at)
    if not isinstance(value, Condition):
        ast.copy_location(value, at)
    return ast.copy_location(ast.Assign([target], value), at)


def like(old: ast.stmt, new: S) -> S:
    return ast.copy_location(new, old)
