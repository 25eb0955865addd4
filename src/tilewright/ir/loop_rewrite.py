"""Rewriting loop functions: one walker that substitutes, re-types buffers and copies.

A pass subclasses `LoopRewriter` and overrides `stmt` for the statements that it cares about, and `scalar` for what
becomes of expressions. A buffer whose extents change by substitution gets a new value, and its uses follow; a statement
that nothing touched is the same object afterwards. What a statement holds is read off its fields.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from tilewright.ir.buffers import Region
from tilewright.ir.loop_level import LoopFunction
from tilewright.ir.nodes import Block, Stmt
from tilewright.ir.op import Op
from tilewright.ir.scalar import Expr, Scalar, Value, substitute
from tilewright.ir.types import Type

S = TypeVar("S", bound=Stmt)


class LoopRewriter:
    """`env` maps values of the old program to what stands for them in the new one. With `fresh`, every value that is
    defined on the way is new, so that the result may stand beside the original."""

    def __init__(self, env: dict[Value, Scalar] | None = None, fresh: bool = False) -> None:
        self.env: dict[Value, Scalar] = {} if env is None else env
        self.fresh = fresh
        self._out: list[Stmt] = []

    # --- for passes to override ---
    def stmt(self, stmt: Stmt) -> None:
        """Emit whatever stands for `stmt`; the plain thing is `self.keep(stmt)`."""
        self.keep(stmt)

    def scalar(self, scalar: Scalar) -> Scalar:
        """What stands for an expression, or for a buffer that a statement names."""
        return substitute(scalar, self.get)

    def type(self, type: Type) -> Type:
        """The type of what was of `type`."""
        return type.substitute(self.get)

    # --- what is there ---
    def function(self, function: LoopFunction) -> LoopFunction:
        return function.with_body(self.block(function.body))

    def block(self, block: Block) -> Block:
        """The rewritten block; the same object when every statement stayed itself."""
        outer, self._out = self._out, []
        try:
            for stmt in block:
                self.stmt(stmt)
            new = self._out
        finally:
            self._out = outer
        if len(new) == len(block) and all(a is b for a, b in zip(new, block, strict=True)):
            return block
        return tuple(new)

    def emit(self, *stmts: Stmt) -> None:
        self._out.extend(stmts)

    def get(self, value: Value) -> Scalar:
        return self.env.get(value, value)

    def keep(self, stmt: Stmt) -> None:
        """Emit the statement with its expressions and blocks rewritten."""
        self.emit(self.inside(self.outside(stmt)))

    def outside(self, stmt: S) -> S:
        """The statement with its own expressions rewritten and what it defines typed anew; its blocks are old."""
        for value in (*stmt.block_args(), *stmt.defs()):
            self.define(value)
        return map_own(stmt, self.scalar)

    def inside(self, stmt: S) -> S:
        """The statement with its blocks rewritten."""
        return with_all_blocks(stmt, tuple(self.block(block) for block in stmt.blocks()))

    def define(self, value: Value) -> None:
        """Binds a value that is being defined to a new one where its type changes, or everything is to be new."""
        type = self.type(value.type)
        if self.fresh or type is not value.type:
            self.env[value] = Value(value.name, type, value.span)


def with_all_blocks(stmt: S, blocks: tuple[Block, ...]) -> S:
    """`with_blocks`, without losing the class; the same object when no block changes."""
    if all(a is b for a, b in zip(stmt.blocks(), blocks, strict=True)):
        return stmt
    return cast("S", stmt.with_blocks(blocks))


def map_own(stmt: S, change: Callable[[Scalar], Scalar]) -> S:
    """The statement with every expression that stands in its fields changed, blocks left alone; the same object when
    nothing changes."""
    blocks = stmt.blocks()
    new: dict[str, Any] = {}
    for name in stmt.node_fields:
        old = getattr(stmt, name)
        if old and any(old is block for block in blocks):
            continue
        made = _mapped(old, change)
        if made is not old:
            new[name] = made
    return cast("S", stmt.replace(**new)) if new else stmt


def _mapped(part: Any, change: Callable[[Scalar], Scalar]) -> Any:
    if isinstance(part, Expr):
        return change(part)
    if isinstance(part, tuple):
        old = cast("tuple[Any, ...]", part)
        items = tuple(_mapped(item, change) for item in old)
        return old if all(a is b for a, b in zip(old, items, strict=True)) else items
    if isinstance(part, Op):
        return part.with_operands(change)
    if isinstance(part, Stmt):
        return map_own(part, change)
    if isinstance(part, Region) or (is_dataclass(part) and not isinstance(part, type)):
        held: dict[str, Any] = {field.name: getattr(part, field.name) for field in fields(part)}
        made: dict[str, Any] = {name: _mapped(value, change) for name, value in held.items()}
        return part if all(made[name] is held[name] for name in held) else replace(part, **made)
    return part


def rebuilt(scalar: Scalar, change: Callable[[Expr], Scalar], done: dict[int, Scalar] | None = None) -> Scalar:
    """`scalar` with `change` made to each expression in it, the inner ones first; the same object without a change.
    `done`: parts that were met before, by identity."""
    if isinstance(scalar, int):
        return scalar
    done = {} if done is None else done
    found = done.get(id(scalar))
    if found is None:
        old = scalar.children()
        new = tuple(rebuilt(child, change, done) for child in old)
        same = all(a is b for a, b in zip(old, new, strict=True))
        made = scalar if same else scalar.with_children(new)
        found = done[id(scalar)] = made if isinstance(made, int) else change(made)
    return found


def clone_loops(block: Block, env: dict[Value, Scalar]) -> Block:
    """A copy of `block` in which every value defined inside is new. `env` maps values from outside to what stands for
    them, and receives the copies."""
    return LoopRewriter(env, fresh=True).block(block)


def substituted(stmt: Stmt, replace: Callable[[Value], Scalar]) -> Stmt:
    """A statement and those inside it with values replaced, none of which it defines: quicker than a rewriter."""
    stmt = stmt.substitute(replace)
    blocks = stmt.blocks()
    return stmt.with_blocks(tuple(tuple(substituted(s, replace) for s in b) for b in blocks)) if blocks else stmt
