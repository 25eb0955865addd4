"""What everything that reads one function shares: where it is, the names, the statements made so far.

The parts of the reader (expressions, calls, statements, control flow) are functions over a `Context`, tied together
by the two slots `evaluate` and `statements`, so that no part imports another that imports it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tilewright.errors import Span, TilewrightError
from tilewright.frontend.bindings import MISSING, DynamicSymbol, Undefined
from tilewright.frontend.scope import Scope, undefined
from tilewright.frontend.syntax import FunctionSource, span_of
from tilewright.frontend.versions import End
from tilewright.ir.function import Function, FunctionKind
from tilewright.ir.nodes import Let, Stmt
from tilewright.ir.op import Op, is_array
from tilewright.ir.scalar import Binary, Expr, Scalar, Value, linear_terms, substitute
from tilewright.ir.storage import written_operand
from tilewright.ir.types import TensorType, TupleType, Type


class Functions(Protocol):
    """The program that is being made, as seen from one of its functions."""

    probes: bool
    """Whether what the author prints and checks becomes part of the program."""

    def specialise(
        self, source: FunctionSource, arguments: Sequence[object], span: Span
    ) -> tuple[Function, tuple[Value, ...]]:
        """The function of the program for these arguments (types, or constants), and the values that the caller
        passes for the leading parameters, which the source does not name: extents of its argument types."""
        ...

    def results(self, function: Function) -> tuple[int | None, ...]:
        """For each value that `function` returns, the index of the output parameter that it is a version of."""
        ...


@dataclass(frozen=True, slots=True)
class LoopFacts:
    """What liveness found about one compound statement: the names that it may bind; those of them read after it; and
    those that a trip reads before binding them."""

    assigned: dict[str, None]
    live: frozenset[str]
    exposed: frozenset[str]
    written: frozenset[str]
    """those that it binds by writing what they stand for"""


@dataclass(slots=True)
class PendingYield:
    """A `pl.yield_` that ended a block: the names it gives to the statement's results, values, and types if given."""

    names: list[str]
    values: list[Scalar]
    types: list[Type | None]
    span: Span


class Context:
    """The reading of one function."""

    def __init__(self, source: FunctionSource, functions: Functions) -> None:
        self.source = source
        self.functions = functions
        self.scope = Scope()
        self.out: list[Stmt] = []
        self.around: list[list[Stmt]] = []
        """the statements so far of the blocks around the one that is being read"""
        self.facts: dict[ast.AST, LoopFacts] = {}
        self.attrs: dict[str, object] = {}
        self.symbols: dict[str, Scalar] = {}
        """what `pl.dynamic` symbols are bound to"""
        self.pending: PendingYield | None = None
        self.declared: dict[str, Type] = {}
        """types declared on a line of their own, for the assignment that follows"""
        self.carried: set[Value] = set()
        """what the loops around here carry, as the trip sees it"""
        self.grid: tuple[Scalar, Scalar] | None = None
        """inside a launch: the number of this block, and how many there are"""
        self.block_of_caller: Callable[[], tuple[Scalar, Scalar]] | None = None
        """the same in a function that a launch may call"""
        self.lane: tuple[int, object] | None = None
        """inside the work of one of two vector cores: which it is, and how they share tiles"""
        self.evaluate: Callable[[ast.expr], object]
        self.statements: Callable[[Sequence[ast.stmt]], None]
        self._fresh: set[Value] = set()
        self._defined_as: dict[Value, Scalar] = {}

    @property
    def kind(self) -> FunctionKind:
        return self.source.kind

    # --- places and errors ---
    def span(self, node: ast.AST) -> Span:
        return span_of(self.source.file, node)

    def text(self, node: ast.AST) -> str:
        """`node` as source, shortened."""
        text = ast.unparse(node).splitlines()[0]
        return text if len(text) <= 60 else text[:57] + "..."

    # --- names ---
    def lookup(self, name: str) -> object:
        """The binding of a name: of the function, else from outside. Does not raise for an undefined one."""
        found = self.scope.get(name)
        return self.source.names.lookup(name) if found is MISSING else found

    def name(self, node: ast.Name) -> object:
        """The binding of a name that is read. Raises `UndefinedNameError`."""
        try:
            found = self.lookup(node.id)
        except TilewrightError as error:
            raise error.at(self.span(node)) from None
        if found is MISSING or isinstance(found, Undefined):
            raise undefined(node.id, found, self.span(node), self.scope.known())
        if isinstance(found, DynamicSymbol):
            return self.symbols.get(found.name, found)
        if isinstance(found, Value) and isinstance(found.type, TensorType):
            self.scope.versions.check_read(found, node.id, self.span(node))
        return found

    # --- statements ---
    def emit(self, op: Op, name: str | None = None, type: Type | None = None) -> Value:
        """Append `op` and return its result. Raises what `op` refuses, placed at its span."""
        try:
            found = type or op.infer()
        except TilewrightError as error:
            raise error.at(op.span) from None
        written = written_operand(op)
        shared = self.scope.versions.check_written(written, op.span) if written is not None else ()
        target = getattr(op, op.writes) if op.writes else None
        value = Value(name or (target.name if isinstance(target, Value) else op.name), found, op.span)
        self.out.append(Let(value, op, span=op.span))
        if name is None and not isinstance(found, TupleType):
            self._fresh.add(value)
        if written is not None:
            self.scope.advance(written, value, op.span)
            for other in shared:
                self.scope.end(other, End(op.span))
        elif op.view_of is not None and isinstance(found, TensorType):
            source = getattr(op, op.view_of)
            if is_array(source):
                self.scope.versions.slices(value, source)
        elif isinstance(found, TensorType):
            self.scope.versions.born(value)
        return value

    def let(self, value: Scalar, name: str, type: Type, span: Span) -> Value:
        """Append a scalar that has a name."""
        target = Value(name, type, span)
        self.out.append(Let(target, value, span=span))
        self._defined_as[target] = value
        return target

    def christen(self, value: object, name: str) -> bool:
        """Name a value that was just made and has no name of the user's yet. Says whether it did."""
        if isinstance(value, Value) and value in self._fresh:
            self._fresh.discard(value)
            value.name = name
            return True
        return False

    def made(self, value: Value) -> Value:
        """Mark `value` as made by the expression being read, so that an assignment names it."""
        self._fresh.add(value)
        return value

    def collect(self, body: Sequence[ast.stmt], at_end: Callable[[], None] | None = None) -> list[Stmt]:
        """The statements that `body` becomes. `at_end` may add to them."""
        outer, self.out = self.out, []
        self.around.append(outer)
        try:
            self.statements(body)
            if at_end is not None:
                at_end()
            return self.out
        finally:
            self.out = outer
            self.around.pop()

    # --- scalars ---
    def simplified(self, scalar: Scalar) -> Scalar:
        """`scalar`, an INDEX, as a sum with cancelling terms gone, seeing through the names of scalars where that
        makes it a constant."""
        if isinstance(scalar, int):
            return scalar
        terms, constant = linear_terms(scalar)
        if not terms:
            return constant
        unfolded: Scalar = scalar
        for _ in range(64):
            opened = substitute(unfolded, self._definition)
            if opened is unfolded:
                break
            unfolded = opened
            terms, constant = linear_terms(unfolded)
            if not terms:
                return constant
            if sum(1 for _ in _nodes(unfolded)) > 1000:
                break
        return scalar

    def _definition(self, value: Value) -> Scalar:
        return self._defined_as.get(value, value)


def _nodes(scalar: Scalar) -> list[Scalar]:
    found: list[Scalar] = [scalar]
    for part in found:
        if isinstance(part, Binary | Expr):
            found += part.children()
            if len(found) > 2000:
                break
    return found
