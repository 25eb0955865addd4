"""Removing what nothing needs.

Data flow alone says what is alive: a store yields its tensor's next version, and a function returns the last versions
of its outputs. So a statement that no returned value depends on can go, and with it loop carries and branch results.
"""

from __future__ import annotations

from typing import TypeVar

from tilewright.ir.function import Function
from tilewright.ir.nodes import Block, Call, For, If, Let, Scope, Stmt, Yield
from tilewright.ir.op import Effect, Op
from tilewright.ir.scalar import Scalar, Value, values_in

T = TypeVar("T")


def prune(function: Function) -> Function:
    """`function` without the statements, carries and results that its returned values do not depend on; itself when
    there are none. Linear."""
    marked = _Marker(function).run()
    return function.with_body(_sweep(function.body, marked, None))


class _Marker:
    """Marks the values that are needed and the statements that stay."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.needed: set[Value] = set()
        self.kept: set[Stmt] = set()
        self.todo: list[Value] = []
        self.origin: dict[Value, tuple[Stmt, int]] = {}
        self.parent: dict[Stmt, Stmt] = {}

    def run(self) -> _Marker:
        roots: list[Stmt] = []
        self._index(self.function.body, None, roots)
        for stmt in roots:
            self.keep(stmt)
        while self.todo:
            self._follow(self.todo.pop())
        return self

    def _index(self, block: Block, parent: Stmt | None, roots: list[Stmt]) -> None:
        for stmt in block:
            if parent is not None:
                self.parent[stmt] = parent
            for index, value in enumerate(stmt.defs()):
                self.origin[value] = (stmt, index)
            if isinstance(stmt, For):
                self.origin[stmt.iv] = (stmt, -1)
                for index, value in enumerate(stmt.iter_args):
                    self.origin[value] = (stmt, index)
            observable = isinstance(stmt, Let) and isinstance(stmt.value, Op) and stmt.value.effect is Effect.OBSERVABLE
            if observable or (parent is None and isinstance(stmt, Yield)):
                roots.append(stmt)
            for inner in stmt.blocks():
                self._index(inner, stmt, roots)

    def need(self, scalar: Scalar) -> None:
        for value in values_in(scalar) if not isinstance(scalar, int) else ():
            if value not in self.needed:
                self.needed.add(value)
                self.todo.append(value)
                for other in value.type.values():
                    self.need(other)

    def keep(self, stmt: Stmt) -> None:
        """`stmt` stays, so what it reads is needed, and the statements around it stay. What a loop or branch hands
        over is needed one value at a time."""
        if stmt in self.kept:
            return
        self.kept.add(stmt)
        match stmt:
            case For():
                for bound in (stmt.start, stmt.stop, stmt.step):
                    self.need(bound)
                self.need(stmt.iv)
                if stmt.conditional:
                    self.need(stmt.iter_args[0])
            case Yield() if stmt in self.parent:
                pass
            case _:
                for value in stmt.uses():
                    self.need(value)
        if isinstance(stmt, Call):
            for target in stmt.targets:
                self.need(target)
        if stmt in self.parent:
            self.keep(self.parent[stmt])

    def _follow(self, value: Value) -> None:
        found = self.origin.get(value)
        if found is None:
            return
        stmt, index = found
        self.keep(stmt)
        if index < 0:
            return
        if isinstance(stmt, For):
            self.need(stmt.inits[index])
            self.need(stmt.iter_args[index])
            self.need(stmt.results[index])
        for block in stmt.blocks():
            last = block[-1]
            assert isinstance(last, Yield)
            self.need(last.values[index])


def _sweep(block: Block, marked: _Marker, wanted: tuple[bool, ...] | None) -> Block:
    """The kept statements; `wanted` says which values of the terminator are handed over (None: all)."""
    out: list[Stmt] = []
    for stmt in block:
        if isinstance(stmt, Yield):
            out.append(
                stmt if wanted is None or all(wanted) else type(stmt)(_pick(stmt.values, wanted), span=stmt.span)
            )
        elif stmt in marked.kept:
            out.append(_narrow(stmt, marked))
    return block if len(out) == len(block) and all(a is b for a, b in zip(out, block, strict=True)) else tuple(out)


def _narrow(stmt: Stmt, marked: _Marker) -> Stmt:
    match stmt:
        case For():
            wanted = tuple(arg in marked.needed for arg in stmt.iter_args)
            body = _sweep(stmt.body, marked, wanted)
            if body is stmt.body and all(wanted):
                return stmt
            return stmt.replace(
                inits=_pick(stmt.inits, wanted),
                iter_args=_pick(stmt.iter_args, wanted),
                results=_pick(stmt.results, wanted),
                body=body,
            )
        case If() | Scope():
            wanted = tuple(result in marked.needed for result in stmt.results)
            blocks = tuple(_sweep(block, marked, wanted) for block in stmt.blocks())
            narrowed = stmt.with_blocks(blocks)
            return narrowed if all(wanted) else narrowed.replace(results=_pick(stmt.results, wanted))  # type: ignore[attr-defined]
        case _:
            return stmt


def _pick(items: tuple[T, ...], wanted: tuple[bool, ...]) -> tuple[T, ...]:
    return tuple(item for item, keep in zip(items, wanted, strict=True) if keep)
