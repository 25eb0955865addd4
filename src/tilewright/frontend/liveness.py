"""Which names a loop or branch must hand on: liveness over the syntax tree, in one pass backwards.

For each compound statement: the names that it may bind, those of them that are read after it, and those that a trip
reads before it binds them. A call that writes an argument binds the name of that argument; `out[...] = v` binds `out`.
The cost is linear in the source, times the depth of nesting.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tilewright.frontend.context import LoopFacts
from tilewright.frontend.jumps import guard_of

WritesOf = Callable[[ast.Call], Iterable[str]]
"""The names that a call writes: arguments of operations and kernels that have a next version afterwards."""

COMPOUND = (ast.For, ast.If, ast.With, ast.While)


@dataclass(slots=True)
class Effect:
    """What a stretch of statements does to names: read before bound; surely bound; maybe bound, in order."""

    exposed: set[str] = field(default_factory=set[str])
    bound: set[str] = field(default_factory=set[str])
    assigned: dict[str, None] = field(default_factory=dict[str, None])
    written: set[str] = field(default_factory=set[str])

    def then(self, other: Effect) -> None:
        """Make this the effect of itself followed by `other`."""
        self.exposed |= other.exposed - self.bound
        self.bound |= other.bound
        self.assigned |= other.assigned
        self.written |= other.written


def analyse(body: Sequence[ast.stmt], writes_of: WritesOf, outputs: Collection[str] = ()) -> dict[ast.AST, LoopFacts]:
    """The facts of every compound statement in the body of a function. `outputs` are the names of its output
    parameters, which `out += v` writes."""
    analysis = _Analysis(writes_of, frozenset(outputs))
    analysis.block_effect(body)
    analysis.live(body, set())
    return analysis.facts


class _Analysis:
    def __init__(self, writes_of: WritesOf, outputs: frozenset[str]) -> None:
        self.writes_of = writes_of
        self.outputs = outputs
        self.effects: dict[ast.AST, Effect] = {}
        self.inner: dict[ast.AST, Effect] = {}
        self.facts: dict[ast.AST, LoopFacts] = {}

    # --- bottom up: what statements do ---
    def block_effect(self, body: Sequence[ast.stmt]) -> Effect:
        total = Effect()
        for stmt in body:
            total.then(self.effect(stmt))
        return total

    def effect(self, stmt: ast.stmt) -> Effect:
        found = self.effects[stmt] = self._compound(stmt) if isinstance(stmt, COMPOUND) else self._simple(stmt)
        return found

    def _simple(self, stmt: ast.stmt) -> Effect:
        effect = Effect()
        names: list[str] = []
        for node in _walk(stmt):
            if isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Load):
                    effect.exposed.add(node.id)
                else:
                    names.append(node.id)
            elif isinstance(node, ast.Call):
                effect.written |= set(self.writes_of(node))
            elif (
                isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name)
            ):
                effect.written.add(node.value.id)
        if isinstance(stmt, ast.AugAssign):
            effect.exposed |= set(names)
            effect.written |= self.outputs.intersection(names)
        if isinstance(stmt, ast.AnnAssign) and stmt.value is None:
            names = []
        effect.bound |= set(names)
        effect.assigned |= dict.fromkeys([*names, *sorted(effect.written)])
        return effect

    def _compound(self, stmt: ast.stmt) -> Effect:
        effect = Effect()
        match stmt:
            case ast.If():
                effect.then(self._reads(stmt.test))
                then, otherwise = self.block_effect(stmt.body), self.block_effect(stmt.orelse)
                effect.exposed |= then.exposed | otherwise.exposed
                effect.bound |= then.bound & otherwise.bound
                effect.assigned |= then.assigned | otherwise.assigned
                effect.written |= then.written | otherwise.written
            case ast.For() | ast.While():
                guard = guard_of(stmt)
                inner = Effect({guard} if guard is not None else set())
                targets: dict[str, None] = {}
                if isinstance(stmt, ast.For):
                    effect.then(self._reads(stmt.iter))
                    targets = dict.fromkeys(n.id for n in ast.walk(stmt.target) if isinstance(n, ast.Name))
                inner.then(Effect(set(), set(targets), {}))
                inner.then(self.block_effect(stmt.body))
                self.inner[stmt] = inner
                effect.exposed |= inner.exposed
                effect.bound |= set(yield_targets(stmt.body))
                effect.assigned |= inner.assigned | targets
                effect.written |= inner.written
            case ast.With():
                for item in stmt.items:
                    effect.then(self._reads(item.context_expr))
                    if item.optional_vars is not None:
                        names = {n.id for n in ast.walk(item.optional_vars) if isinstance(n, ast.Name)}
                        effect.then(Effect(set(), names, dict.fromkeys(names)))
                effect.then(self.block_effect(stmt.body))
            case _:
                effect.then(self._simple(ast.Pass()))
        return effect

    def _reads(self, node: ast.expr) -> Effect:
        return Effect({n.id for n in ast.walk(node) if isinstance(n, ast.Name)})

    # --- top down: what is read after ---
    def live(self, body: Sequence[ast.stmt], after: set[str]) -> None:
        """Record the facts of the compound statements of `body`, after which the names `after` are read. Changes
        `after` into the names read after what precedes `body`."""
        for stmt in reversed(body):
            effect = self.effects[stmt]
            if isinstance(stmt, COMPOUND):
                self._inside(stmt, effect, after)
            after -= effect.bound
            after |= effect.exposed

    def _inside(self, stmt: ast.stmt, effect: Effect, after: set[str]) -> None:
        assigned = effect.assigned
        live = frozenset(name for name in assigned if name in after)
        inner = self.inner.get(stmt, effect)
        self.facts[stmt] = LoopFacts(
            assigned, live, frozenset(n for n in assigned if n in inner.exposed), frozenset(effect.written)
        )
        match stmt:
            case ast.If():
                self.live(stmt.body, set(live))
                self.live(stmt.orelse, set(live))
            case ast.For() | ast.While():
                self.live(stmt.body, {n for n in assigned if n in live or n in inner.exposed})
            case ast.With():
                self.live(stmt.body, set(live))
            case _:
                return


def _walk(stmt: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a simple statement; annotations are not read when the kernel runs."""
    todo: list[ast.AST] = [stmt]
    while todo:
        node = todo.pop()
        yield node
        for name, value in ast.iter_fields(node):
            if name == "annotation" or not isinstance(value, ast.AST | list):
                continue
            todo += [value] if isinstance(value, ast.AST) else [v for v in value if isinstance(v, ast.AST)]  # pyright: ignore[reportUnknownVariableType]


def yield_targets(body: Sequence[ast.stmt]) -> list[str]:
    """The names that the `pl.yield_` at the end of a block gives to the results; empty when it ends otherwise."""
    last = body[-1] if body else None
    if not isinstance(last, ast.Assign | ast.AnnAssign) or not isinstance(last.value, ast.Call):
        return []
    called = last.value.func
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    if name != "yield_":
        return []
    targets = last.targets if isinstance(last, ast.Assign) else [last.target]
    return [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]
