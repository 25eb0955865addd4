"""Unrolling: the trips of `pl.unroll` loops stand one after the other.

Before:  for i, (x,) in pl.unroll(0, 2, 1, init_values=(a,)):
             x_1 = pl.tensor.adds(x, i)
             b = pl.yield_(x_1)
Ensures: no loop of kind UNROLL is left; the loop variable is a constant in each copy, and what a trip carries is what
         the next one starts from.
After:   x_1 = pl.tensor.adds(a, 0)
         b = pl.tensor.adds(x_1, 1)
A trip of a loop with a condition becomes a branch.
Refuses: a trip count that is not constant, and more copies than `MAX_STATEMENTS` allows."""

from __future__ import annotations

from tilewright.errors import NonConstantShapeError, UnsupportedError
from tilewright.ir.function import Function, Program
from tilewright.ir.nodes import For, If, Let, LoopKind, Yield, walk
from tilewright.ir.op import Op
from tilewright.ir.rewrite import Rewriter, placed_like, type_of
from tilewright.ir.scalar import Scalar, Value, constant_value
from tilewright.ir.types import Type

MAX_STATEMENTS = 100_000
"""Statements that unrolling may add to one function: what the compiler is built to carry."""


def unroll(program: Program) -> Program:
    """Requires SSA. Linear in the size of the result. Raises `NonConstantShapeError`, `UnsupportedError`."""
    return _Unroller().program(program)


class _Unroller(Rewriter):
    """Replicates bodies. Inside a copy every value is new, so that the copies may stand side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.copying = False
        self.added = 0

    def function(self, function: Function) -> Function:
        self.env.clear()
        self.added = 0
        return super().function(function)

    def retype(self, old: Value, type: Type) -> Value:
        if not self.copying:
            return super().retype(old, type)
        new = Value(old.name, type, old.span)
        self.bind(old, new)
        return new

    def visit_let(self, stmt: Let) -> None:
        if not self.copying:
            super().visit_let(stmt)
            return
        new = stmt.substitute(self.get)
        assert isinstance(new, Let)
        inferred = new.value.infer() if isinstance(new.value, Op) else type_of(new.value)
        target = self.retype(stmt.target, placed_like(inferred, stmt.target.type.substitute(self.get)))
        self.emit(Let(target, new.value, span=stmt.span))

    def visit_for(self, stmt: For) -> None:
        start, stop, step = self.scalar(stmt.start), self.scalar(stmt.stop), self.scalar(stmt.step)
        if stmt.kind is not LoopKind.UNROLL:
            self._keep(stmt)
            return
        if not (isinstance(start, int) and isinstance(stop, int) and isinstance(step, int) and step != 0):
            raise NonConstantShapeError(
                "a loop to be unrolled needs constant bounds",
                span=stmt.span,
                required="integers for start, stop and step, the step not 0",
                found=f"{start!r}, {stop!r}, {step!r}",
                help="use pl.range, which keeps the loop",
            )
        trips = range(start, stop, step)
        self._count(stmt, len(trips))
        carried = tuple(self.scalar(init) for init in stmt.inits)
        for trip in trips:
            carried = (
                self._under_condition(stmt, trip, carried) if stmt.conditional else self._copy(stmt, trip, carried)
            )
        for result, value in zip(stmt.results, carried, strict=True):
            self.bind(result, value)

    def _keep(self, stmt: For) -> None:
        if self.copying:
            iv = self.retype(stmt.iv, stmt.iv.type)
            stmt = stmt.replace(iv=iv)
        super().visit_for(stmt)

    def _count(self, stmt: For, trips: int) -> None:
        self.added += trips * sum(1 for _ in walk(stmt.body))
        if self.added > MAX_STATEMENTS:
            raise UnsupportedError(
                "unrolling makes the function too long",
                span=stmt.span,
                required=f"at most {MAX_STATEMENTS} statements from unrolled loops",
                found=f"{self.added} or more, {trips} trips here",
                help="use pl.range for the outer loop",
            )

    def _under_condition(self, stmt: For, trip: int, carried: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
        """One trip of a loop that may have ended: a branch, which hands on what it got where it has."""
        known = constant_value(carried[0])
        if known is not None:
            return self._copy(stmt, trip, carried) if known else carried
        outer, self._out = self._out, []
        given = self._copy(stmt, trip, carried)
        then, self._out = (*self._out, Yield(given, span=stmt.span)), outer
        results = tuple(Value(r.name, type_of(value), r.span) for r, value in zip(stmt.results, given, strict=True))
        self.emit(If(carried[0], then, (Yield(carried, span=stmt.span),), results, span=stmt.span))
        return results

    def _copy(self, stmt: For, trip: int, carried: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
        """One trip, appended to the current block; returns what it yields."""
        self.bind(stmt.iv, trip)
        for arg, value in zip(stmt.iter_args, carried, strict=True):
            self.bind(arg, value)
        outer, self.copying = self.copying, True
        for inner in stmt.body[:-1]:
            self.stmt(inner)
        self.copying = outer
        last = stmt.body[-1]
        assert isinstance(last, Yield)
        return tuple(self.scalar(value) for value in last.values)
