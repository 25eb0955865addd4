"""Scalars made simple: sums gathered, and what the ranges of their values decide decided.

    i * 8 + j - (i * 8 - 1)     becomes  j + 1
    (i * 8 + j) // 8            becomes  i            where 0 <= j < 8
    min(i + 3, 16)              becomes  i + 3        where i < 14
    i + 1 < 5                   becomes  i < 4

A range is two inclusive bounds, None where there is none. Only INDEX arithmetic is touched: it does not wrap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import gcd

from tilewright.ir.buffers import Likely
from tilewright.ir.dtypes import BOOL, INDEX
from tilewright.ir.scalar import (
    Binary,
    BinaryKind,
    Choice,
    Const,
    Expr,
    Scalar,
    Unary,
    UnaryKind,
    Value,
    binary,
    constant_value,
    dtype_of,
    linear_terms,
    logic,
    values_in,
)

Bound = int | None
Range = tuple[Bound, Bound]
ANY: Range = (None, None)
TRUE, FALSE = Const(True, BOOL), Const(False, BOOL)


@dataclass(slots=True)
class Facts:
    """What is known of values: their ranges, and the order in which they are defined, which orders sums."""

    ranges: Mapping[Value, Range] = field(default_factory=dict[Value, Range])
    order: Mapping[Value, int] = field(default_factory=dict[Value, int])


def simplify_scalar(scalar: Scalar, facts: Facts | None = None) -> Scalar:
    """An equal expression, simple in the sense of the module's examples; the same object when it is that already."""
    return _simple(scalar, facts or Facts())


def _simple(scalar: Scalar, facts: Facts) -> Scalar:
    if isinstance(scalar, (int, Const, Value)):
        return scalar
    old = scalar.children()
    new = tuple(_simple(child, facts) for child in old)
    made = scalar if all(a is b for a, b in zip(old, new, strict=True)) else scalar.with_children(new)
    result = _decided(made, facts)
    return scalar if result == scalar else result


def _decided(made: Scalar, facts: Facts) -> Scalar:
    if isinstance(made, Choice):
        known = truth(made.condition, facts)
        return made if known is None else made.then if known else made.otherwise
    if isinstance(made, Likely):
        known = truth(made.condition, facts)
        return made if known is None else _boolean(known)
    if isinstance(made, Unary) and made.kind is UnaryKind.NOT:
        return _negated(made)
    if not isinstance(made, Binary):
        return made
    if made.kind in (BinaryKind.AND, BinaryKind.OR):
        return made.lhs if made.lhs == made.rhs else logic(made.kind, made.lhs, made.rhs)
    if dtype_of(made.lhs) is not INDEX:
        return made
    match made.kind:
        case BinaryKind.ADD | BinaryKind.SUB | BinaryKind.MUL:
            return gathered(made, facts)
        case BinaryKind.MIN | BinaryKind.MAX:
            return _extreme(made, facts)
        case BinaryKind.FLOORDIV | BinaryKind.MOD:
            return _divided(made, facts)
        case _:
            return _compared(made, facts) if made.kind.is_comparison else made


# --- sums ---------------------------------------------------------------------------------------------------------
def gathered(scalar: Scalar, facts: Facts) -> Scalar:
    """An INDEX as a sum in its one form: positive terms, negative terms, constant."""
    terms, constant = linear_terms(scalar)
    return from_terms(terms, constant, facts)


def from_terms(terms: dict[Expr, int], constant: int, facts: Facts) -> Scalar:
    """The sum of `coefficient * term`, ordered by where the values of the terms are defined."""
    parts = [(term, factor) for term, factor in reversed(terms.items()) if factor]
    parts.sort(key=lambda part: [facts.order.get(value, -1) for value in values_in(part[0])])
    result: Scalar = 0
    if constant > 0 and all(factor < 0 for _, factor in parts):
        result, constant = constant, 0
    for term, factor in parts:
        if factor > 0:
            result = binary(BinaryKind.ADD, result, _times(term, factor))
    for term, factor in parts:
        if factor < 0:
            result = _times(term, factor) if result == 0 else _minus(result, _times(term, -factor))
    return binary(BinaryKind.ADD, result, constant)


def _times(term: Scalar, factor: int) -> Scalar:
    return binary(BinaryKind.MUL, term, factor)


def _minus(left: Scalar, right: Scalar) -> Scalar:
    return Binary(BinaryKind.SUB, left, right, INDEX)


def _split(scalar: Scalar, divisor: int) -> tuple[dict[Expr, int], dict[Expr, int], int]:
    """The terms that `divisor` divides, the others, and the constant."""
    terms, constant = linear_terms(scalar)
    whole = {term: factor for term, factor in terms.items() if factor % divisor == 0}
    return whole, {term: factor for term, factor in terms.items() if factor % divisor}, constant


def _divided(made: Binary, facts: Facts) -> Scalar:
    divisor = made.rhs
    if not isinstance(divisor, int) or divisor <= 0:
        return made
    whole, rest, constant = _split(made.lhs, divisor)
    quotient, left = divmod(constant, divisor)
    remainder = from_terms(rest, left, facts)
    low, high = range_of(remainder, facts)
    fixed = low is not None and high is not None and low // divisor == high // divisor
    if made.kind is BinaryKind.MOD:
        if fixed and low is not None:
            return gathered(binary(BinaryKind.SUB, remainder, low // divisor * divisor), facts)
        inner = remainder
        if isinstance(inner, Binary) and inner.kind is BinaryKind.MOD and isinstance(inner.rhs, int):
            inner = inner.lhs if inner.rhs > 0 and inner.rhs % divisor == 0 else inner
        return binary(BinaryKind.MOD, inner, divisor)
    shares = {term: factor // divisor for term, factor in whole.items()}
    if fixed and low is not None:
        return from_terms(shares, quotient + low // divisor, facts)
    inner = remainder
    if isinstance(inner, Binary) and inner.kind is BinaryKind.FLOORDIV and isinstance(inner.rhs, int) and inner.rhs > 0:
        inner, divisor = inner.lhs, inner.rhs * divisor
    last = binary(BinaryKind.FLOORDIV, inner, divisor)
    return from_terms({**shares, last: shares.get(last, 0) + 1} if isinstance(last, Expr) else shares, quotient, facts)


def _extreme(made: Binary, facts: Facts) -> Scalar:
    low, high = range_of(gathered(binary(BinaryKind.SUB, made.lhs, made.rhs), facts), facts)
    smaller, larger = (made.lhs, made.rhs) if made.kind is BinaryKind.MIN else (made.rhs, made.lhs)
    if high is not None and high <= 0:
        return smaller
    return larger if low is not None and low >= 0 else made


# --- conditions ---------------------------------------------------------------------------------------------------
_FLIPPED = {
    BinaryKind.LT: BinaryKind.GT, BinaryKind.LE: BinaryKind.GE, BinaryKind.GT: BinaryKind.LT,
    BinaryKind.GE: BinaryKind.LE, BinaryKind.EQ: BinaryKind.EQ, BinaryKind.NE: BinaryKind.NE,
}  # fmt: skip
NEGATED = {
    BinaryKind.LT: BinaryKind.GE, BinaryKind.LE: BinaryKind.GT, BinaryKind.GT: BinaryKind.LE,
    BinaryKind.GE: BinaryKind.LT, BinaryKind.EQ: BinaryKind.NE, BinaryKind.NE: BinaryKind.EQ,
}  # fmt: skip


def _boolean(value: bool) -> Scalar:
    return TRUE if value else FALSE


def truth(condition: Scalar, facts: Facts) -> bool | None:
    """Whether a condition holds, where that is known. A number stands for being other than 0."""
    value = constant_value(condition)
    if value is not None:
        return bool(value != 0)
    if dtype_of(condition) is INDEX:
        low, high = range_of(condition, facts)
        return True if (low is not None and low > 0) or (high is not None and high < 0) else None
    return None


def _negated(made: Unary) -> Scalar:
    inner = made.operand
    if isinstance(inner, Unary) and inner.kind is UnaryKind.NOT and dtype_of(inner.operand) is BOOL:
        return inner.operand
    if isinstance(inner, Binary) and inner.kind.is_comparison and dtype_of(inner.lhs) is INDEX:
        return binary(NEGATED[inner.kind], inner.lhs, inner.rhs)
    return made


def _compared(made: Binary, facts: Facts) -> Scalar:
    """A comparison of sums: decided, or with what is positive on the left and the constant on the right."""
    terms, constant = linear_terms(Binary(BinaryKind.SUB, made.lhs, made.rhs, INDEX))
    low, high = range_of(from_terms(terms, constant, facts), facts)
    known = _sign(made.kind, low, high)
    if known is not None:
        return _boolean(known)
    kind = made.kind
    if all(factor < 0 for factor in terms.values()):
        kind, constant, terms = _FLIPPED[kind], -constant, {term: -factor for term, factor in terms.items()}
    shared = gcd(*terms.values())
    limit: int | None = -constant
    if shared > 1:
        kind, limit = _reduced(kind, limit, shared)
        if limit is None:
            return _boolean(kind is BinaryKind.NE)
        terms = {term: factor // shared for term, factor in terms.items()}
    positive = from_terms({term: factor for term, factor in terms.items() if factor > 0}, 0, facts)
    negative = from_terms({term: -factor for term, factor in terms.items() if factor < 0}, limit, facts)
    return binary(kind, positive, negative)


def _reduced(kind: BinaryKind, limit: int, shared: int) -> tuple[BinaryKind, int | None]:
    """`shared * x kind limit` as a comparison of x; None where an equality with no solution is left."""
    match kind:
        case BinaryKind.LT:
            return kind, -(-limit // shared)
        case BinaryKind.GE:
            return kind, -(-limit // shared)
        case BinaryKind.LE | BinaryKind.GT:
            return kind, limit // shared
        case _:
            return kind, limit // shared if limit % shared == 0 else None


def _sign(kind: BinaryKind, low: Bound, high: Bound) -> bool | None:
    """Whether a number between the bounds is `kind` 0, where that is known."""
    match kind:
        case BinaryKind.LT:
            return True if high is not None and high < 0 else False if low is not None and low >= 0 else None
        case BinaryKind.LE:
            return True if high is not None and high <= 0 else False if low is not None and low > 0 else None
        case BinaryKind.EQ:
            if low == high == 0:
                return True
            return False if (low is not None and low > 0) or (high is not None and high < 0) else None
        case _:
            opposite = _sign(NEGATED[kind], low, high)
            return None if opposite is None else not opposite


# --- ranges -------------------------------------------------------------------------------------------------------
def range_of(scalar: Scalar, facts: Facts) -> Range:
    """Bounds of an INDEX, each term of a sum taken once."""
    if isinstance(scalar, int):
        return scalar, scalar
    terms, constant = linear_terms(scalar)
    if set(terms) == {scalar}:
        return _range_of_term(scalar, facts)
    total: Range = (constant, constant)
    for term, factor in terms.items():
        total = _added(total, _scaled(range_of(term, facts), factor))
    return total


def _range_of_term(term: Expr, facts: Facts) -> Range:
    if isinstance(term, Value):
        return facts.ranges.get(term, ANY)
    if isinstance(term, Choice):
        (a, b), (c, d) = range_of(term.then, facts), range_of(term.otherwise, facts)
        return _least(a, c), _most(b, d)
    if not isinstance(term, Binary) or term.dtype is not INDEX:
        return ANY
    (a, b), (c, d) = range_of(term.lhs, facts), range_of(term.rhs, facts)
    match term.kind:
        case BinaryKind.MIN:
            known = [bound for bound in (b, d) if bound is not None]
            return _least(a, c), min(known, default=None)
        case BinaryKind.MAX:
            known = [bound for bound in (a, c) if bound is not None]
            return max(known, default=None), _most(b, d)
        case BinaryKind.FLOORDIV if isinstance(term.rhs, int) and term.rhs > 0:
            return None if a is None else a // term.rhs, None if b is None else b // term.rhs
        case BinaryKind.MOD if isinstance(term.rhs, int) and term.rhs > 0:
            return 0, term.rhs - 1 if a is None or b is None or a < 0 else min(b, term.rhs - 1)
        case BinaryKind.MUL if a is not None and b is not None and c is not None and d is not None:
            corners = (a * c, a * d, b * c, b * d)
            return min(corners), max(corners)
        case _:
            return ANY


def _least(a: Bound, b: Bound) -> Bound:
    return None if a is None or b is None else min(a, b)


def _most(a: Bound, b: Bound) -> Bound:
    return None if a is None or b is None else max(a, b)


def _added(left: Range, right: Range) -> Range:
    low = None if left[0] is None or right[0] is None else left[0] + right[0]
    return low, None if left[1] is None or right[1] is None else left[1] + right[1]


def _scaled(bounds: Range, factor: int) -> Range:
    low, high = (None if bound is None else bound * factor for bound in bounds)
    return (low, high) if factor >= 0 else (high, low)


def narrowed(condition: Scalar, facts: Facts) -> dict[Value, Range]:
    """Ranges of the values that `condition` bounds, where it holds."""
    if isinstance(condition, Likely):
        return narrowed(condition.condition, facts)
    if not isinstance(condition, Binary):
        return {}
    if condition.kind is BinaryKind.AND:
        left = narrowed(condition.lhs, facts)
        return {**left, **narrowed(condition.rhs, Facts({**facts.ranges, **left}, facts.order))}
    if not condition.kind.is_comparison or condition.kind is BinaryKind.NE or dtype_of(condition.lhs) is not INDEX:
        return {}
    terms, constant = linear_terms(Binary(BinaryKind.SUB, condition.lhs, condition.rhs, INDEX))
    found: dict[Value, Range] = {}
    for value, factor in terms.items():
        if isinstance(value, Value) and factor in (1, -1):
            rest = {term: other for term, other in terms.items() if term is not value}
            limits = _scaled(range_of(from_terms(rest, constant, facts), facts), -factor)
            kind = condition.kind if factor > 0 else _FLIPPED[condition.kind]
            found[value] = _met(facts.ranges.get(value, ANY), kind, limits)
    return {value: bounds for value, bounds in found.items() if bounds != facts.ranges.get(value, ANY)}


def _met(bounds: Range, kind: BinaryKind, limits: Range) -> Range:
    """`bounds` of a value that is `kind` something between `limits`."""
    low, high = bounds
    if kind in (BinaryKind.LT, BinaryKind.LE, BinaryKind.EQ) and limits[1] is not None:
        most = limits[1] - (kind is BinaryKind.LT)
        high = most if high is None else min(high, most)
    if kind in (BinaryKind.GT, BinaryKind.GE, BinaryKind.EQ) and limits[0] is not None:
        least = limits[0] + (kind is BinaryKind.GT)
        low = least if low is None else max(low, least)
    return low, high


def trip_range(start: Scalar, stop: Scalar, step: Scalar, facts: Facts) -> Range:
    """The range of a loop's variable, within the loop."""
    if not isinstance(step, int) or step == 0:
        return ANY
    if isinstance(start, int) and isinstance(stop, int):
        trips = range(start, stop, step)
        return (min(trips[0], trips[-1]), max(trips[0], trips[-1])) if trips else ANY
    first, last = range_of(start, facts), range_of(stop, facts)
    if step > 0:
        return first[0], None if last[1] is None else last[1] - 1
    return None if last[0] is None else last[0] + 1, first[1]
