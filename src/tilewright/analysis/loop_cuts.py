"""Where a comparison inside a loop changes from false to true as the loop runs.

    for i in serial(0, 5):                          i * 26 + j < 128 holds for every j below 26 while i < 4, and for
        for j in serial(0, 26):                     some j after: cuts are [0, 4): True, [4, 5): None
            if i * 26 + j < 128: ...

Sums with any coefficients have exact cuts, also where other values are symbols: the cut is then an expression.
Whatever else an INDEX can be (quotients, remainders, minima) is tried trip by trip, where the trips are few.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from tilewright.analysis.scalar_ranges import (
    Facts,
    Range,
    from_terms,
    gathered,
    range_of,
    simplify_scalar,
    trip_range,
    truth,
)
from tilewright.ir.buffers import AddressOf, Extern, Load, lanes_of
from tilewright.ir.dtypes import INDEX
from tilewright.ir.loop_level import Launch, Loop
from tilewright.ir.loop_rewrite import map_own, rebuilt
from tilewright.ir.nodes import Block, Let, Stmt, walk
from tilewright.ir.op import Op
from tilewright.ir.scalar import (
    Binary,
    BinaryKind,
    Expr,
    Scalar,
    Value,
    binary,
    dtype_of,
    linear_terms,
    maximum,
    minimum,
    substitute,
    values_in,
)

MOST_TRIES = 4096
"""Trips of a loop that are tried one by one."""
MOST_CUTS = 8
"""Parts of a loop, where they are found by trial."""
Part = tuple[Scalar, Scalar, bool | None]
"""Start and stop, and what the comparison is in all trips between; None where it depends on loops inside."""


@dataclass(slots=True)
class Inside:
    """What a loop's body defines, and the ranges of it."""

    values: set[Value]
    ranges: ChainMap[Value, Range]


def inside_of(block: Block, facts: Facts) -> Inside:
    """The values that `block` defines, with their ranges where everything outside has those of `facts`."""
    found = Inside(set(), ChainMap({}, cast("dict[Value, Range]", facts.ranges)))
    known = Facts(found.ranges, facts.order)
    for stmt in walk(block):
        found.values.update(stmt.defs(), stmt.block_args())
        range = range_defined(stmt, known)
        if range is not None:
            found.ranges[range[0]] = range[1]
    return found


def range_defined(stmt: Stmt, facts: Facts) -> tuple[Value, Range] | None:
    """The INDEX that a statement defines, with its range."""
    match stmt:
        case Loop():
            return stmt.iv, trip_range(stmt.start, stmt.stop, stmt.step, facts)
        case Launch():
            return stmt.iv, (0, None) if stmt.extent is None else trip_range(0, stmt.extent, 1, facts)
        case Let(value=value) if not isinstance(value, Op) and dtype_of(value) is INDEX and lanes_of(value) == 1:
            return stmt.target, range_of(value, facts)
        case _:
            return None


def comparisons(block: Block) -> Iterator[Binary]:
    """The comparisons of INDEX values inside a block, wherever they stand, that depend on nothing in memory."""
    found: dict[Binary, None] = {}

    def look(scalar: Expr) -> Scalar:
        if isinstance(scalar, Binary) and scalar.kind.is_comparison and dtype_of(scalar.lhs) is INDEX:
            if lanes_of(scalar) == 1 and not _reads(scalar):
                found.setdefault(scalar)
        return scalar

    for stmt in walk(block):
        map_own(stmt, lambda scalar: rebuilt(scalar, look))
    return iter(found)


def _reads(scalar: Scalar) -> bool:
    if isinstance(scalar, int):
        return False
    return isinstance(scalar, Load | Extern | AddressOf) or any(map(_reads, scalar.children()))


def cuts(loop: Loop, atom: Binary, inside: Inside, facts: Facts) -> list[Part] | None:
    """The parts into which `atom` divides the trips of `loop`, in order, some perhaps empty; None where it divides
    nothing, or nobody can say where."""
    if loop.iv not in set(values_in(atom)) or not isinstance(loop.step, int) or loop.step < 1:
        return None
    terms, constant = linear_terms(Binary(BinaryKind.SUB, atom.lhs, atom.rhs, INDEX))
    slope = terms.pop(loop.iv, 0)
    others = {value for term in terms for value in values_in(term)}
    if slope == 0 or loop.iv in others:
        return _tried(loop, atom, inside)
    within = {term: c for term, c in terms.items() if inside.values & set(values_in(term))}
    if any(value in inside.values for bound in (loop.start, loop.stop) for value in _values(bound)):
        return None
    low, high = range_of(from_terms(within, 0, facts), Facts(inside.ranges, facts.order))
    if low is None or high is None or low > high:
        return None
    rest = from_terms({term: c for term, c in terms.items() if term not in within}, constant, facts)
    least, most = range_of(rest, facts)
    if least is not None and least == most:
        rest = least
    points, truths = _points(atom.kind, slope, rest, (low, high))
    points = [gathered(point, facts) for point in points]
    if truths[1] is None and _holds(loop.start, points[0]) and _holds(loop.stop, points[1]):
        return None  # what lies between these points already
    edges = [loop.start, *(_clamped(loop, point, facts) for point in points), loop.stop]
    return [(a, b, t) for a, b, t in zip(edges[:-1], edges[1:], truths, strict=True) if a != b]


def _holds(scalar: Scalar, part: Scalar) -> bool:
    """Whether `part` is somewhere in `scalar`."""
    return scalar == part or (not isinstance(scalar, int) and any(_holds(child, part) for child in scalar.children()))


def _values(scalar: Scalar) -> Iterator[Value]:
    return iter(()) if isinstance(scalar, int) else values_in(scalar)


def _points(
    kind: BinaryKind, slope: int, rest: Scalar, within: tuple[int, int]
) -> tuple[list[Scalar], list[bool | None]]:
    """Where ``slope * i + rest + w kind 0``, for all w in `within`, changes with i; and what it is between."""
    low, high = within
    if slope < 0:
        flipped = {
            BinaryKind.LT: BinaryKind.GT, BinaryKind.LE: BinaryKind.GE, BinaryKind.GT: BinaryKind.LT,
            BinaryKind.GE: BinaryKind.LE,
        }  # fmt: skip
        kind, slope, rest = flipped.get(kind, kind), -slope, binary(BinaryKind.MUL, rest, -1)
        low, high = -high, -low

    def first(limit: int, most: int) -> Scalar:
        """The first i with ``slope * i + rest + most >= limit``."""
        short = binary(BinaryKind.SUB, limit - most + slope - 1, rest)
        return binary(BinaryKind.FLOORDIV, short, slope)

    mixed = None if low != high else True
    match kind:
        case BinaryKind.GE:
            return [first(0, high), first(0, low)], [False, None, True]
        case BinaryKind.GT:
            return [first(1, high), first(1, low)], [False, None, True]
        case BinaryKind.LT:
            return [first(0, high), first(0, low)], [True, None, False]
        case BinaryKind.LE:
            return [first(1, high), first(1, low)], [True, None, False]
        case BinaryKind.EQ:
            return [first(0, high), first(1, low)], [False, mixed, False]
        case _:
            return [first(0, high), first(1, low)], [True, None if mixed is None else False, True]


def _clamped(loop: Loop, point: Scalar, facts: Facts) -> Scalar:
    """The first value that the loop takes from `point` on; its stop, when there is none."""
    assert isinstance(loop.step, int)
    if loop.step != 1:
        distance = binary(BinaryKind.SUB, point, loop.start)
        steps = binary(BinaryKind.FLOORDIV, binary(BinaryKind.ADD, distance, loop.step - 1), loop.step)
        point = binary(BinaryKind.ADD, loop.start, binary(BinaryKind.MUL, steps, loop.step))
    return simplify_scalar(maximum(loop.start, minimum(point, loop.stop)), facts)


def _tried(loop: Loop, atom: Binary, inside: Inside) -> list[Part] | None:
    """The parts, found by trying each trip."""
    if not isinstance(loop.start, int) or not isinstance(loop.stop, int) or not isinstance(loop.step, int):
        return None
    trips = range(loop.start, loop.stop, loop.step)
    if not 0 < len(trips) <= MOST_TRIES:
        return None
    parts: list[tuple[int, int, bool | None]] = []
    for trip in trips:
        held = _at(atom, loop.iv, trip, inside.ranges)
        if parts and parts[-1][2] is held:
            parts[-1] = (parts[-1][0], trip + loop.step, held)
        else:
            parts.append((trip, trip + loop.step, held))
    if len(parts) > MOST_CUTS or all(held is None for _, _, held in parts):
        return None
    return [(start, min(stop, loop.stop), held) for start, stop, held in parts]


def _at(atom: Binary, iv: Value, trip: int, ranges: Mapping[Value, Range]) -> bool | None:
    facts = Facts(ranges)
    return truth(simplify_scalar(substitute(atom, lambda value: trip if value is iv else value), facts), facts)
