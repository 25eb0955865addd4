"""Index expressions and conditions of loops as exact integer sets.

    for i in serial(0, 16, 4): B[min(i, 9) % 4]    is    { [x] : exists (i : 0 <= i < 16 and i mod 4 = 0
                                                              and x = min(i, 9) mod 4) }

A condition is brought to negation normal form before anything is dropped: a literal that is not affine then stands
where only *true* is a safe answer. What an index takes from memory or from a call is any number, each time it occurs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

from tilewright.analysis.scalar_ranges import NEGATED, Facts, Range, range_of, simplify_scalar
from tilewright.ir.buffers import Broadcast, Likely, Ramp, lanes_of
from tilewright.ir.dtypes import INDEX
from tilewright.ir.scalar import (
    Binary,
    BinaryKind,
    Choice,
    Expr,
    Scalar,
    Unary,
    UnaryKind,
    Value,
    constant_value,
    dtype_of,
    substitute,
    values_in,
)

MOST_POINTS = 512
"""Up to so many points, what is not affine is listed point by point."""
TRUE, FALSE = "1 = 1", "1 = 0"


@dataclass(slots=True)
class Encoder:
    """The text of one set. `names` are the values that have a variable, `named` the conditions and vectors that `Let`s
    stand for; `used` are the variables that occur, `fresh` those without a value, `facts` what defines them."""

    names: Mapping[Value, str]
    ranges: Mapping[Value, Range]
    named: Mapping[Value, Scalar]
    used: dict[str, Value] = field(default_factory=dict[str, Value])
    fresh: list[str] = field(default_factory=list[str])
    facts: list[str] = field(default_factory=list[str])

    # --- numbers ---
    def term(self, scalar: Scalar) -> str:
        """An INDEX as a term over the variables."""
        if isinstance(scalar, int):
            return f"({scalar})"
        if isinstance(scalar, Value):
            return self._value(scalar)
        if isinstance(scalar, Ramp):
            return self._ramp(scalar)
        if isinstance(scalar, Broadcast):
            return self.term(scalar.value)
        if isinstance(scalar, Choice) and scalar.dtype is INDEX:
            return self._chosen(scalar)
        if isinstance(scalar, Binary) and scalar.dtype is INDEX:
            return self._binary(scalar)
        return self._any(scalar)

    def _value(self, value: Value) -> str:
        if value in self.names:
            name = self.names[value]
            self.used[name] = value
            return name
        return self.term(self.named[value]) if value in self.named else self._any(value)

    def _ramp(self, ramp: Ramp) -> str:
        if not isinstance(ramp.stride, int):
            return self._any(ramp)
        lane = f"lane{ramp.lanes}"
        if lane not in self.fresh:
            self.fresh.append(lane)
            self.facts.append(f"0 <= {lane} < {ramp.lanes}")
        return f"({self.term(ramp.base)} + ({ramp.stride} * {lane}))"

    def _chosen(self, scalar: Choice) -> str:
        name = self._name()
        then = f"({self.formula(scalar.condition)} and {name} = {self.term(scalar.then)})"
        otherwise = f"({self.formula(scalar.condition, False)} and {name} = {self.term(scalar.otherwise)})"
        self.facts.append(f"({then} or {otherwise})")
        return name

    def _binary(self, scalar: Binary) -> str:
        left, right = scalar.lhs, scalar.rhs
        match scalar.kind:
            case BinaryKind.ADD | BinaryKind.SUB:
                return f"({self.term(left)} {scalar.kind.value} {self.term(right)})"
            case BinaryKind.MUL if isinstance(right, int):
                return f"({right} * {self.term(left)})"
            case BinaryKind.MUL if isinstance(left, int):
                return f"({left} * {self.term(right)})"
            case BinaryKind.FLOORDIV if isinstance(right, int) and right > 0:
                return f"floor({self.term(left)} / {right})"
            case BinaryKind.MOD if isinstance(right, int) and right > 0:
                return f"({self.term(left)} mod {right})"
            case BinaryKind.MIN | BinaryKind.MAX:
                return f"{scalar.kind.value}({self.term(left)}, {self.term(right)})"
            case _:
                return self._listed(scalar)

    def _listed(self, scalar: Binary) -> str:
        """A term that is not affine, point by point."""
        values = list(dict.fromkeys(values_in(scalar)))
        trips: list[range] = []
        points = 1
        for value in values:
            low, high = self.ranges.get(value, (None, None))
            if value not in self.names or low is None or high is None:
                return self._any(scalar)
            trips.append(range(low, high + 1))
            points *= max(len(trips[-1]), 0)
        if not 0 < points <= MOST_POINTS:
            return self._any(scalar)
        name = self._name()
        cases: list[str] = []
        for point in product(*trips):
            at = dict(zip(values, point, strict=True))
            result = simplify_scalar(substitute(scalar, lambda value, at=at: at[value]))
            if not isinstance(result, int):
                return self._any(scalar)
            equal = [f"{self._value(value)} = {where}" for value, where in at.items()]
            cases.append(" and ".join([*equal, f"{name} = {result}"]))
        self.facts.append("(" + " or ".join(f"({case})" for case in cases) + ")")
        return name

    def _any(self, scalar: Expr) -> str:
        """Any number in the range of the expression."""
        name = self._name()
        if dtype_of(scalar) is INDEX and lanes_of(scalar) == 1:
            low, high = range_of(scalar, Facts(self.ranges))
            self.facts += [f"{name} >= {low}"] * (low is not None) + [f"{name} <= {high}"] * (high is not None)
        return name

    def _name(self) -> str:
        name = f"t{len(self.fresh)}"
        self.fresh.append(name)
        return name

    # --- conditions ---
    def formula(self, condition: Scalar, holds: bool = True) -> str:
        """Where `condition` holds (or does not), or more."""
        known = constant_value(condition)
        if known is not None:
            return TRUE if (known != 0) is holds else FALSE
        if isinstance(condition, Likely):
            return self.formula(condition.condition, holds)
        if isinstance(condition, Unary) and condition.kind is UnaryKind.NOT:
            return self.formula(condition.operand, not holds)
        if isinstance(condition, Value) and condition in self.named:
            return self.formula(self.named[condition], holds)
        if isinstance(condition, Binary) and condition.kind in (BinaryKind.AND, BinaryKind.OR):
            word = "and" if (condition.kind is BinaryKind.AND) is holds else "or"
            return f"({self.formula(condition.lhs, holds)} {word} {self.formula(condition.rhs, holds)})"
        if lanes_of(condition) > 1:
            return TRUE
        if isinstance(condition, Binary) and condition.kind.is_comparison:
            if dtype_of(condition.lhs) is not INDEX:
                return TRUE
            kind = condition.kind if holds else NEGATED[condition.kind]
            sign = "=" if kind is BinaryKind.EQ else kind.value
            return f"{self.term(condition.lhs)} {sign} {self.term(condition.rhs)}"
        if dtype_of(condition) is INDEX:
            return f"{self.term(condition)} {'!=' if holds else '='} 0"
        return TRUE
