"""Whether an inequality between scalars holds in every trip and for every argument.

Most do at a glance: a sum of loop variables and minima is bounded by putting in the ends of ranges and the sides of
minima (`Prover`). What that does not decide is put to isl as a set of integers (`SetText`): the trips in which the
inequality fails, floor division and modulo by constants included. Whatever is not affine stands for itself there, as a
number of which nothing is known, so that a proof holds whatever it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any

from tilewright.ir.dtypes import BOOL
from tilewright.ir.nodes import For
from tilewright.ir.scalar import (
    Binary,
    BinaryKind,
    Const,
    Expr,
    Scalar,
    Unary,
    UnaryKind,
    Value,
    binary,
    dtype_of,
    linear_terms,
)

OPERATIONS = 2_000_000
"""Steps that isl may take for one question: some tenths of a second."""

STEPS = 200
"""Substitutions that the quick proof may try for one inequality."""

Guard = tuple[Scalar, bool]
"""A condition, and whether it holds here or fails."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a statement stands: the loops around it, outermost first, and the branches taken."""

    loops: tuple[For, ...] = ()
    guards: tuple[Guard, ...] = ()

    def inside(self, loop: For) -> Place:
        return Place((*self.loops, loop), self.guards)

    def given(self, condition: Scalar, holds: bool) -> Place:
        return Place(self.loops, (*self.guards, (condition, holds)))


class Answer(Enum):
    """PROVED: in every trip, for every argument. FAILS: in some trip whatever the arguments are. OPEN: it depends on
    the arguments, or on what the run reads."""

    PROVED = "proved"
    FAILS = "fails"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Sum:
    """A linear sum: a factor for each term that is no sum itself, and a constant."""

    terms: dict[Expr, int]
    constant: int

    @staticmethod
    def of(scalar: Scalar) -> Sum:
        return Sum(*linear_terms(scalar))

    def plus(self, other: Sum, factor: int = 1) -> Sum:
        terms = dict(self.terms)
        for term, count in other.terms.items():
            total = terms.get(term, 0) + factor * count
            if total:
                terms[term] = total
            else:
                terms.pop(term, None)
        return Sum(terms, self.constant + factor * other.constant)

    def times(self, factor: int) -> Sum:
        return Sum({term: factor * count for term, count in self.terms.items()}, factor * self.constant)

    def put(self, term: Expr, scalar: Scalar) -> Sum:
        """The sum with `term` replaced."""
        factor = self.terms[term]
        rest = {other: count for other, count in self.terms.items() if other is not term}
        return Sum(rest, self.constant).plus(Sum.of(scalar), factor)


def holds_as_sums(condition: Scalar, holds: bool) -> list[Sum]:
    """Sums that are at least 0 where the condition holds (or fails); none for what says nothing of that kind."""
    if isinstance(condition, Unary) and condition.kind is UnaryKind.NOT:
        return holds_as_sums(condition.operand, not holds)
    if not isinstance(condition, Binary):
        return []
    kind, lhs, rhs = condition.kind, condition.lhs, condition.rhs
    if kind is (BinaryKind.AND if holds else BinaryKind.OR):
        return holds_as_sums(lhs, holds) + holds_as_sums(rhs, holds)
    if not kind.is_comparison or not dtype_of(lhs).is_integer:
        return []
    if not holds:
        kind = _NEGATED[kind]
    less, more = Sum.of(lhs), Sum.of(rhs)
    match kind:
        case BinaryKind.LE:
            return [more.plus(less, -1)]
        case BinaryKind.LT:
            return [more.plus(less, -1).plus(Sum({}, -1))]
        case BinaryKind.GE:
            return [less.plus(more, -1)]
        case BinaryKind.GT:
            return [less.plus(more, -1).plus(Sum({}, -1))]
        case BinaryKind.EQ:
            return [more.plus(less, -1), less.plus(more, -1)]
        case _:
            return []


_NEGATED = {
    BinaryKind.LT: BinaryKind.GE, BinaryKind.GE: BinaryKind.LT, BinaryKind.LE: BinaryKind.GT,
    BinaryKind.GT: BinaryKind.LE, BinaryKind.EQ: BinaryKind.NE, BinaryKind.NE: BinaryKind.EQ,
}  # fmt: skip


def last_trip(loop: For) -> Scalar | None:
    """A bound above the loop variable, for a loop that counts up."""
    if not isinstance(loop.step, int) or loop.step <= 0:
        return None
    if isinstance(loop.start, int) and isinstance(loop.stop, int):
        return loop.start + (max(1, loop.most_trips or 0) - 1) * loop.step
    return binary(BinaryKind.SUB, loop.stop, 1)


# --- at a glance --------------------------------------------------------------------------------------------------
class Prover:
    """Bounds sums by substitution. `sizes`: values that are never negative. `named`: what names of scalars stand for
    is substituted by the caller."""

    def __init__(self, place: Place, sizes: frozenset[Value], *, guarded: bool) -> None:
        self.loops = {loop.iv: loop for loop in place.loops}
        self.depth = {loop.iv: index for index, loop in enumerate(place.loops)}
        self.sizes = sizes
        self.known: list[Sum] = []
        self.steps = STEPS
        for loop in place.loops:  # a trip runs, so there is one
            if last_trip(loop) is not None and not (isinstance(loop.start, int) and isinstance(loop.stop, int)):
                self.known.append(Sum.of(binary(BinaryKind.SUB, loop.stop, loop.start)).plus(Sum({}, -1)))
        if guarded:
            for condition, holds in place.guards:
                self.known += holds_as_sums(condition, holds)

    def at_least_zero(self, found: Sum, helped: int = 0) -> bool:
        """Whether the sum is never negative."""
        if not found.terms:
            return found.constant >= 0
        self.steps -= 1
        if self.steps < 0:
            return False
        if helped < 2 and any(
            self.at_least_zero(found.plus(known, -1), helped + 1)
            for known in self.known
            if not known.terms.keys().isdisjoint(found.terms)
        ):
            return True
        return any(all(self.at_least_zero(s, helped) for s in way) for way in self.ways(found, self.chosen(found)))

    def chosen(self, found: Sum) -> Expr:
        """The term to put something in for: what is made of others first, then inner loop variables."""
        return max(found.terms, key=lambda term: (not isinstance(term, Value), self.depth.get(term, -1)))  # type: ignore[arg-type]

    def ways(self, found: Sum, term: Expr) -> Iterator[list[Sum]]:
        """Alternatives: if all sums of one are never negative, neither is `found`."""
        factor = found.terms[term]
        if isinstance(term, Value):
            if term in self.loops:
                loop = self.loops[term]
                end = loop.start if factor > 0 else last_trip(loop)
                if end is not None and last_trip(loop) is not None:
                    yield [found.put(term, end)]
            elif term in self.sizes and factor > 0:
                yield [found.put(term, 0)]
            return
        if not isinstance(term, Binary):
            return
        lhs, rhs = term.lhs, term.rhs
        match term.kind:
            case BinaryKind.MIN | BinaryKind.MAX:
                sides = [found.put(term, lhs), found.put(term, rhs)]
                if (term.kind is BinaryKind.MIN) is (factor > 0):
                    yield sides
                else:
                    yield from ([side] for side in sides)
            case BinaryKind.FLOORDIV if isinstance(rhs, int) and rhs > 0:
                bound = lhs if factor < 0 else binary(BinaryKind.SUB, lhs, rhs - 1)
                rest = {other: count for other, count in found.terms.items() if other is not term}
                yield [Sum(rest, found.constant).times(rhs).plus(Sum.of(bound), factor)]
            case BinaryKind.MOD if isinstance(rhs, int) and rhs > 0:
                yield [found.put(term, 0 if factor > 0 else rhs - 1)]
            case _:
                return


# --- plain intervals ----------------------------------------------------------------------------------------------
def greatest(found: Sum, place: Place) -> int | None:
    """A constant above a sum of constants, loop variables of constant ranges and minima; None when there is none."""
    total = found.constant
    for term, factor in found.terms.items():
        end = _end(term, place, upper=factor > 0)
        if end is None:
            return None
        total += factor * end
    return total


def least(found: Sum, place: Place) -> int | None:
    """A constant below the sum."""
    other = greatest(found.times(-1), place)
    return None if other is None else -other


def _end(term: Expr, place: Place, *, upper: bool) -> int | None:
    """The end of the range of one term."""
    if isinstance(term, Value):
        loop = next((loop for loop in place.loops if loop.iv is term), None)
        end = None if loop is None or last_trip(loop) is None else last_trip(loop) if upper else loop.start
        return end if isinstance(end, int) else None
    if not isinstance(term, Binary) or term.kind not in (BinaryKind.MIN, BinaryKind.MAX):
        return None
    bound = greatest if upper else least
    ends = [bound(Sum.of(side), place) for side in (term.lhs, term.rhs)]
    known = [end for end in ends if end is not None]
    tight = (term.kind is BinaryKind.MIN) is upper
    if not known or (len(known) < 2 and not tight):
        return None
    return min(known) if term.kind is BinaryKind.MIN else max(known)


# --- sets of integers ---------------------------------------------------------------------------------------------
@dataclass(slots=True)
class SetText:
    """Builds the text of a set of integers. `variables` are loop variables with their trip counters, and elements;
    `free` are parameters: arguments, and what is not affine."""

    side: str = "i"
    variables: dict[Value, str] = field(default_factory=dict[Value, str])
    free: dict[Scalar, str] = field(default_factory=dict[Scalar, str])
    unknown: set[Scalar] = field(default_factory=set[Scalar])
    """those of `free` that are not arguments"""

    def enter(self, loop: For) -> list[str]:
        """Constraints that say which values the variable of `loop` takes."""
        start, stop = self.text(loop.start), self.text(loop.stop)
        name = self.variables[loop.iv] = f"{self.side}{len(self.variables)}"
        if not isinstance(loop.step, int) or loop.step <= 0:
            return []  # any value is taken for possible
        if loop.step == 1:
            return [f"{start} <= {name} < {stop}"]
        return [f"{start} <= {name} < {stop} and ({name} - {start}) mod {loop.step} = 0"]

    def text(self, scalar: Scalar) -> str:
        """The scalar as isl reads it."""
        if isinstance(scalar, int):
            return str(scalar) if scalar >= 0 else f"({scalar})"
        if isinstance(scalar, Value):
            return self.variables.get(scalar) or self.parameter(scalar, known=True)
        if isinstance(scalar, Binary):
            lhs, rhs, kind = scalar.lhs, scalar.rhs, scalar.kind
            if kind in (BinaryKind.ADD, BinaryKind.SUB):
                return f"({self.text(lhs)} {kind.value} {self.text(rhs)})"
            if kind is BinaryKind.MUL and (isinstance(rhs, int) or isinstance(lhs, int)):
                return f"({self.text(lhs)} * {self.text(rhs)})"
            if kind is BinaryKind.FLOORDIV and isinstance(rhs, int) and rhs > 0:
                return f"floor(({self.text(lhs)})/{rhs})"
            if kind is BinaryKind.MOD and isinstance(rhs, int) and rhs > 0:
                return f"(({self.text(lhs)}) mod {rhs})"
            if kind in (BinaryKind.MIN, BinaryKind.MAX):
                return f"{kind.value}({self.text(lhs)}, {self.text(rhs)})"
        return self.parameter(scalar, known=False)

    def parameter(self, scalar: Scalar, *, known: bool) -> str:
        name = self.free.get(scalar)
        if name is None:
            name = self.free[scalar] = f"p{len(self.free)}"
            if not known:
                self.unknown.add(scalar)
        return name

    def condition(self, condition: Scalar, holds: bool) -> str | None:
        """A condition, or its opposite; None for one that says nothing of integers."""
        if isinstance(condition, Const) and condition.dtype is BOOL:
            return "0 = 0" if bool(condition.value) is holds else "0 = 1"
        if isinstance(condition, Unary) and condition.kind is UnaryKind.NOT:
            return self.condition(condition.operand, not holds)
        if not isinstance(condition, Binary):
            return None
        kind, lhs, rhs = condition.kind, condition.lhs, condition.rhs
        if kind in (BinaryKind.AND, BinaryKind.OR):
            sides = [self.condition(lhs, holds), self.condition(rhs, holds)]
            if (kind is BinaryKind.AND) is holds:
                return " and ".join(side for side in sides if side) or None
            return None if None in sides else f"({sides[0]} or {sides[1]})"
        if not kind.is_comparison or not dtype_of(lhs).is_integer:
            return None
        sign = {BinaryKind.EQ: "=", BinaryKind.NE: "!="}
        kind = kind if holds else _NEGATED[kind]
        return f"{self.text(lhs)} {sign.get(kind, kind.value)} {self.text(rhs)}"

    def place(self, place: Place, *, guarded: bool) -> list[str]:
        """The constraints of where a statement stands."""
        found = [text for loop in place.loops for text in self.enter(loop)]
        if guarded:
            found += [text for guard in place.guards if (text := self.condition(*guard)) is not None]
        return found

    def sizes(self, sizes: Iterable[Value]) -> list[str]:
        """That those of `sizes` which are mentioned are not negative."""
        return [f"{self.free[size]} >= 0" for size in sizes if size in self.free]

    def set(self, constraints: list[str], elements: tuple[str, ...] = ()) -> str:
        inside = ", ".join((*self.variables.values(), *elements))
        where = " and ".join(constraints)
        return f"[{', '.join(self.free.values())}] -> {{ [{inside}]{' : ' + where if where else ''} }}"


@lru_cache(maxsize=16384)
def is_empty(text: str) -> bool | None:
    """Whether the set has no element; None when isl would take too long to tell."""
    import islpy

    isl: Any = islpy
    context: Any = _context()
    context.reset_operations()
    try:
        return bool(isl.Set(text, context).is_empty())
    except isl.Error:
        return None


@lru_cache(maxsize=4096)
def is_never_empty(text: str, domain: str) -> bool:
    """Whether the set has an element for every value of its parameters in `domain`; False too when isl gives up."""
    import islpy

    isl: Any = islpy
    context: Any = _context()
    context.reset_operations()
    try:
        return bool(isl.Set(domain, context).is_subset(isl.Set(text, context).params()))
    except isl.Error:
        return False


@lru_cache(maxsize=1)
def _context() -> Any:
    import islpy

    isl: Any = islpy
    context = isl.Context()
    context.set_max_operations(OPERATIONS)
    return context


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the values of a function. `sizes` are never negative; `arguments` are given by the call, and
    everything else that is no loop variable only the run shows."""

    sizes: frozenset[Value]
    arguments: frozenset[Value]


def never_negative(
    scalars: tuple[Scalar, ...], unless: tuple[Scalar, ...], place: Place, known: Known, *, guarded: bool
) -> Answer:
    """Whether every one of `scalars` is at least 0 in every trip in which none of `unless` is 0 or less. `guarded`:
    conditions of the branches around count."""
    prover = Prover(place, known.sizes, guarded=guarded)
    if all(prover.at_least_zero(Sum.of(scalar)) for scalar in scalars):
        return Answer.PROVED
    text = SetText()
    where = text.place(place, guarded=guarded)
    where += [f"{text.text(scalar)} > 0" for scalar in unless]
    where.append("(" + " or ".join(f"{text.text(scalar)} < 0" for scalar in scalars) + ")")
    where += text.sizes(known.sizes)
    fails = text.set(where)
    empty = is_empty(fails)
    if empty:
        return Answer.PROVED
    certain = guarded or not place.guards
    if empty is None or not certain or not _is_exact(text, place, known):
        return Answer.OPEN
    names = ", ".join(text.free.values())
    domain = f"[{names}] -> {{ : {' and '.join(text.sizes(known.sizes)) or '0 = 0'} }}"
    return Answer.FAILS if is_never_empty(fails, domain) else Answer.OPEN


def _is_exact(text: SetText, place: Place, known: Known) -> bool:
    """Whether the trips of the set are those that run for given arguments, no more."""
    counted = all(isinstance(loop.step, int) and loop.step > 0 and not loop.conditional for loop in place.loops)
    understood = all(SetText().condition(*guard) is not None for guard in place.guards)
    return counted and understood and not text.unknown and all(value in known.arguments for value in text.free)
