"""Conditions that a copy decides: only the first slot can be the first trip.

Before:  acc_2 = pl.tile.matmul_acc(acc_1, l_1, r_1, init_cond=k + 16 == 0)        # in a loop from 0
After:   acc_2 = pl.tile.matmul_acc(acc_1, l_1, r_1, init_cond=False)

An `if` with such a condition becomes the arm that is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.dtypes import BOOL, INDEX
from tilewright.ir.nodes import Block, If, Let, Yield
from tilewright.ir.op import Kind, Op
from tilewright.ir.rewrite import Rewriter
from tilewright.ir.scalar import (
    Binary,
    BinaryKind,
    Scalar,
    Unary,
    UnaryKind,
    binary,
    constant,
    constant_value,
    dtype_of,
    linear_terms,
)  # fmt: skip

TRUE, FALSE = constant(True, BOOL), constant(False, BOOL)


@dataclass(frozen=True, slots=True)
class Known:
    """Of a trip of a loop that counts up: its variable is `here`, at least `distance` above `start`."""

    here: Scalar
    start: Scalar
    distance: int

    def range_of(self, difference: Scalar) -> tuple[int | None, int | None]:
        """The least and the greatest value of an INDEX, where that is known."""
        terms, constant = linear_terms(difference)
        if not terms:
            return constant, constant
        way, base = linear_terms(binary(BinaryKind.SUB, self.here, self.start))
        if terms == way:
            return self.distance + constant - base, None
        if terms == {term: -factor for term, factor in way.items()}:
            return None, constant + base - self.distance
        return None, None

    def decide(self, scalar: Scalar) -> Scalar:
        """The condition, with what is known of it folded."""
        if isinstance(scalar, Unary) and scalar.kind is UnaryKind.NOT:
            inner = constant_value(self.decide(scalar.operand))
            return scalar if inner is None else constant(not inner, BOOL)
        if not isinstance(scalar, Binary):
            return scalar
        if scalar.kind in (BinaryKind.AND, BinaryKind.OR):
            return _joined(scalar, self.decide(scalar.lhs), self.decide(scalar.rhs))
        if dtype_of(scalar.lhs) is not INDEX or not scalar.kind.is_comparison:
            return scalar
        low, high = self.range_of(binary(BinaryKind.SUB, scalar.lhs, scalar.rhs))
        positive, negative = low is not None and low > 0, high is not None and high < 0
        not_negative, not_positive = low is not None and low >= 0, high is not None and high <= 0
        holds, fails = {
            BinaryKind.EQ: (not_negative and not_positive, positive or negative),
            BinaryKind.NE: (positive or negative, not_negative and not_positive),
            BinaryKind.GT: (positive, not_positive),
            BinaryKind.GE: (not_negative, negative),
            BinaryKind.LT: (negative, not_negative),
            BinaryKind.LE: (not_positive, positive),
        }[scalar.kind]
        return TRUE if holds else FALSE if fails else scalar


def _joined(scalar: Binary, lhs: Scalar, rhs: Scalar) -> Scalar:
    """`lhs and rhs`, or `lhs or rhs`, where one of the two may be known."""
    settles = scalar.kind is BinaryKind.OR
    for known, other in ((lhs, rhs), (rhs, lhs)):
        value = constant_value(known)
        if value is not None:
            return known if bool(value) is settles else other
    return scalar if lhs is scalar.lhs and rhs is scalar.rhs else binary(scalar.kind, lhs, rhs)


def settled(block: Block, known: Known) -> Block:
    """`block` with the conditions of its operations and branches decided as far as `known` tells."""
    return _Settler(known).block(block)


class _Settler(Rewriter):
    def __init__(self, known: Known) -> None:
        super().__init__()
        self.known = known

    def visit_let(self, stmt: Let) -> None:
        op = stmt.value
        if isinstance(op, Op):
            conditions = {f.name: getattr(op, f.name) for f in op.fields if f.kind is Kind.SCALAR}
            decided = {
                name: self.known.decide(old) for name, old in conditions.items() if isinstance(old, Binary | Unary)
            }
            changed = {name: new for name, new in decided.items() if new is not conditions[name]}
            if changed:
                stmt = Let(stmt.target, op.replace(**changed), span=stmt.span)
        super().visit_let(stmt)

    def visit_if(self, stmt: If) -> None:
        decided = self.known.decide(stmt.condition)
        value = constant_value(decided)
        if value is None:
            super().visit_if(stmt if decided is stmt.condition else stmt.replace(condition=decided))
            return
        arm = stmt.then if value else stmt.otherwise
        for inner in arm[:-1]:
            self.stmt(inner)
        last = arm[-1]
        assert isinstance(last, Yield)
        for result, given in zip(stmt.results, last.values, strict=True):
            self.bind(result, self.scalar(given))
