"""What can be proved about indices when compiling; the rest is checked when running.

`Facts` knows the range of each loop variable and proves differences of sums not negative: an interval for each term,
and for a minimum or maximum in the sum its operands, one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.ir.nodes import For
from tilewright.ir.scalar import Binary, BinaryKind, Expr, Scalar, Value, binary, linear_terms

Bound = int | None
Interval = tuple[Bound, Bound]
"""The least and the greatest value; None: not known."""

DEPTH = 6
"""How many minima and maxima inside each other are looked into."""


@dataclass(slots=True)
class Facts:
    """What is known where the text stands now."""

    ranges: dict[Value, Interval] = field(default_factory=dict[Value, Interval])
    ends: dict[Value, tuple[Scalar, Scalar]] = field(default_factory=dict[Value, tuple[Scalar, Scalar]])
    """the first and the last value that a loop's variable may have, as expressions"""

    def enter(self, loop: For) -> None:
        """The range of a loop's variable."""
        start, stop, step = loop.start, loop.stop, loop.step
        if not isinstance(step, int) or step <= 0:
            return
        self.ends[loop.iv] = (start, binary(BinaryKind.SUB, stop, 1))
        low, high = self.interval(start)[0], self.interval(stop)[1]
        if isinstance(start, int) and high is not None and high > start:
            self.ranges[loop.iv] = (start, start + (high - 1 - start) // step * step)
        else:
            self.ranges[loop.iv] = (low, None if high is None else high - 1)

    def interval(self, scalar: Scalar) -> Interval:
        if isinstance(scalar, int):
            return scalar, scalar
        if isinstance(scalar, Value):
            return self.ranges.get(scalar, (None, None))
        if not isinstance(scalar, Binary):
            return None, None
        a, b = self.interval(scalar.lhs), self.interval(scalar.rhs)
        match scalar.kind:
            case BinaryKind.ADD:
                return _plus(a[0], b[0]), _plus(a[1], b[1])
            case BinaryKind.SUB:
                return _plus(a[0], _negated(b[1])), _plus(a[1], _negated(b[0]))
            case BinaryKind.MUL:
                return _product(a, b)
            case BinaryKind.MIN:
                return _least(a[0], b[0]), _known_least(a[1], b[1])
            case BinaryKind.MAX:
                return _negated(_known_least(_negated(a[0]), _negated(b[0]))), _greatest(a[1], b[1])
            case BinaryKind.FLOORDIV if b[0] == b[1] and b[0] is not None and b[0] > 0:
                return tuple(None if end is None else end // b[0] for end in a)  # type: ignore[return-value]
            case BinaryKind.MOD if b[0] is not None and b[0] > 0:
                return 0, None if b[1] is None else b[1] - 1
            case _:
                return None, None

    def at_most(self, a: Scalar, b: Scalar) -> bool:
        """Whether ``a <= b`` always."""
        if a is b or a == b:
            return True
        if isinstance(a, int) and isinstance(b, int):
            return a <= b
        return self._not_negative(*linear_terms(binary(BinaryKind.SUB, b, a)), DEPTH)

    def _not_negative(self, terms: dict[Expr, int], constant: int, depth: int) -> bool:
        low: Bound = constant
        for term, factor in terms.items():
            interval = self.interval(term)
            end = interval[0] if factor > 0 else interval[1]
            low = None if low is None or end is None else low + factor * end
        if low is not None and low >= 0:
            return True
        if depth == 0:
            return False
        for term, factor in terms.items():
            if isinstance(term, Binary) and term.kind in (BinaryKind.MIN, BinaryKind.MAX):
                rest = {other: f for other, f in terms.items() if other is not term}
                cases = [self._case(rest, constant, side, factor, depth) for side in (term.lhs, term.rhs)]
                # A minimum that is subtracted is at most either side; one that is added may be the smaller.
                return any(cases) if (term.kind is BinaryKind.MIN) == (factor < 0) else all(cases)
        for term, factor in terms.items():
            if isinstance(term, Value) and term in self.ends:
                rest = {other: f for other, f in terms.items() if other is not term}
                return self._case(rest, constant, self.ends[term][factor < 0], factor, depth)
        return False

    def _case(self, rest: dict[Expr, int], constant: int, side: Scalar, factor: int, depth: int) -> bool:
        terms, more = linear_terms(side)
        merged = dict(rest)
        for term, count in terms.items():
            merged[term] = merged.get(term, 0) + factor * count
        return self._not_negative({t: f for t, f in merged.items() if f}, constant + factor * more, depth - 1)


def _plus(a: Bound, b: Bound) -> Bound:
    return None if a is None or b is None else a + b


def _negated(a: Bound) -> Bound:
    return None if a is None else -a


def _least(a: Bound, b: Bound) -> Bound:
    return None if a is None or b is None else min(a, b)


def _greatest(a: Bound, b: Bound) -> Bound:
    return None if a is None or b is None else max(a, b)


def _known_least(a: Bound, b: Bound) -> Bound:
    """The smaller of the bounds that are known."""
    return b if a is None else a if b is None else min(a, b)


def _product(a: Interval, b: Interval) -> Interval:
    if b[0] is None or b[0] != b[1]:
        a, b = b, a
    factor = b[0]
    if factor is None or factor != b[1]:
        return None, None
    ends = tuple(None if end is None else end * factor for end in a)
    return (ends[0], ends[1]) if factor >= 0 else (ends[1], ends[0])
