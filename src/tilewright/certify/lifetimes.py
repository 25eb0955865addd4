"""When tiles are alive, and whether what lies in their bytes is still theirs when they are read.

Time: statements are numbered in the order in which they stand, one with blocks where it begins and where it ends.
Statement p reads at 2p and writes at 2p + 1. A tile is alive from where it is written to where it is last read; what
a loop reads from outside lives until the loop ends; what only an arm of a branch reads is not alive in the other arm.

Two tiles that are alive at one time have no byte in common, unless one is a view of the other. A result is written
over an operand only where the operation allows it, into the very same bytes, and the operand dies there. What a loop
carries, what the arms of a branch give, a view and an updated tile stay in their place: no copy stands in the text.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import prod

from tilewright.certify.facts import may_take_over, tile_bytes, tiles_of
from tilewright.certify.verdict import Notes
from tilewright.errors import Span
from tilewright.ir.function import Function
from tilewright.ir.nodes import Block, For, If, Let, Scope, Stmt, result_of
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import MemRef, TileType
from tilewright.targets import Target

Interval = tuple[int, int]


@dataclass(slots=True)
class Lifetimes:
    """`alive[v]`: the intervals of time in which tile `v` is needed, sorted. `begins`, `ends`: statement numbers."""

    function: Function
    alive: dict[Value, list[Interval]] = field(default_factory=dict[Value, list[Interval]])
    begins: dict[Stmt, int] = field(default_factory=dict[Stmt, int])
    ends: dict[Stmt, int] = field(default_factory=dict[Stmt, int])
    made_by: dict[Value, Stmt] = field(default_factory=dict[Value, Stmt])

    def span_of(self, value: Value) -> Span:
        """The line that makes `value`."""
        stmt = self.made_by.get(value)
        return stmt.span if stmt is not None else self.function.span


def lifetimes(function: Function) -> Lifetimes:
    """When the tiles of `function` are alive. Linear in the statements, times the depth of loops."""
    found = Lifetimes(function)
    _number(function.body, found, 0)
    reader = _Reader(found)
    for value, last in reader.block(function.body, {}).items():  # read, and made by no statement
        found.alive.setdefault(value, []).append((0, last))
    for value, intervals in found.alive.items():
        found.alive[value] = _merged(intervals)
    return found


def _number(block: Block, found: Lifetimes, clock: int) -> int:
    for stmt in block:
        clock += 1
        found.begins[stmt] = clock
        for inner in stmt.blocks():
            clock = _number(inner, found, clock)
        clock += bool(stmt.blocks())
        found.ends[stmt] = clock
        for value in (*stmt.defs(), *stmt.block_args()):
            found.made_by[value] = stmt
    return clock


def _merged(intervals: list[Interval]) -> list[Interval]:
    out: list[Interval] = []
    for first, last in sorted(intervals):
        if out and first <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(last, out[-1][1]))
        else:
            out.append((first, last))
    return out


class _Reader:
    """Reads blocks from the end: what is needed later is known when a statement is met."""

    def __init__(self, found: Lifetimes) -> None:
        self.found = found
        self.outside: dict[For, frozenset[Value]] = {}
        _reads_from_outside(found.function.body, self.outside)

    def block(self, block: Block, needed: dict[Value, int]) -> dict[Value, int]:
        """`needed`: the tiles needed after the block and how long; on return, before it."""
        for stmt in reversed(block):
            written = 2 * self.found.ends[stmt] + 1
            for value in stmt.defs():
                self.born(value, written, needed)
            match stmt:
                case For():
                    self.loop(stmt, needed)
                case If():
                    self.branch(stmt, needed)
                case _:
                    for inner in stmt.blocks():
                        self.block(inner, needed)
            for value, time in self.read_by(stmt):
                needed[value] = max(time, needed.get(value, time))
        return needed

    def born(self, value: Value, time: int, needed: dict[Value, int]) -> None:
        if isinstance(value.type, TileType):
            last = needed.pop(value, time)
            self.found.alive.setdefault(value, []).append((time, max(time, last)))

    def read_by(self, stmt: Stmt) -> Iterator[tuple[Value, int]]:
        """The tiles that `stmt` reads itself, each with the time until which they must stay. What is handed over or
        carried is taken first; an operand stays while the result is written, unless that may take its place."""
        time = 2 * self.found.begins[stmt]
        if isinstance(stmt, Let) and isinstance(stmt.value, Op):
            op, made = stmt.value, stmt.target
            kept = {value for name, value in tiles_of(op) if not _takes_over(op, name, made)}
            for _, value in tiles_of(op):
                yield value, time + (value in kept)
            return
        for value in stmt.uses():
            if isinstance(value.type, TileType):
                yield value, time

    def loop(self, stmt: For, needed: dict[Value, int]) -> None:
        end, begin = 2 * self.found.ends[stmt] + 1, 2 * self.found.begins[stmt] + 1
        outside = self.outside[stmt]
        inside = self.block(stmt.body, dict.fromkeys(outside, end))
        for value in stmt.iter_args:
            self.born(value, begin, inside)
        for value in outside:
            needed[value] = max(end, needed.get(value, end))

    def branch(self, stmt: If, needed: dict[Value, int]) -> None:
        """What is needed after the branch is alive in both arms; the rest in the arm that reads it."""
        taken = 2 * self.found.begins[stmt] + 1
        after = set(needed)
        for arm in stmt.blocks():
            first = 2 * self.found.begins[arm[0]]
            for value, last in self.block(arm, {}).items():
                if value not in after:
                    self.found.alive.setdefault(value, []).append((first, last))
                    needed[value] = max(taken, needed.get(value, taken))


def _takes_over(op: Op, field: str, made: Value) -> bool:
    """Whether the result is written into exactly the bytes of this operand, and may be."""
    given: Value = getattr(op, field)
    if not isinstance(made.type, TileType) or not isinstance(given.type, TileType):
        return not isinstance(made.type, TileType) and field == op.writes
    a, b = given.type.memref, made.type.memref
    in_place = a is not None and b is not None and (a.addr, a.nbytes) == (b.addr, b.nbytes)
    others = [name for name, value in tiles_of(op) if value is given]
    return in_place and all(may_take_over(op, name, made.type) for name in others)


def _reads_from_outside(block: Block, outside: dict[For, frozenset[Value]]) -> tuple[set[Value], set[Value]]:
    """(tiles read and not made in `block`, tiles made in it); fills `outside` for each loop."""
    read: set[Value] = set()
    made: set[Value] = set()
    for stmt in block:
        read.update(value for value in stmt.uses() if isinstance(value.type, TileType))
        made.update((*stmt.defs(), *stmt.block_args()))
        for inner in stmt.blocks():
            within, born = _reads_from_outside(inner, outside)
            if isinstance(stmt, For):
                outside[stmt] = frozenset(within - set(stmt.block_args()))
            read |= within
            made |= born
    return read - made, made


# --- places -------------------------------------------------------------------------------------------------------
class Places:
    """Which tiles are one content (a tile and its views), and which are a part of their buffer."""

    def __init__(self, function: Function) -> None:
        self.root: dict[Value, Value] = {}
        self.part: dict[Value, Value] = {}
        """a view of fewer elements than its buffer shows, and views of it, by the view that cut them out"""
        for stmt in function.walk():
            if isinstance(stmt, Let) and isinstance(stmt.value, Op) and stmt.value.view_of is not None:
                self.view(stmt.target, getattr(stmt.value, stmt.value.view_of))

    def view(self, made: Value, source: Value) -> None:
        if not isinstance(made.type, TileType) or not isinstance(source.type, TileType):
            return
        self.root[made] = self.root.get(source, source)
        if prod(made.type.static_shape) != prod(source.type.static_shape):
            self.part[made] = made
        elif source in self.part:
            self.part[made] = self.part[source]

    def root_of(self, value: Value) -> Value:
        return self.root.get(value, value)


def check_places(function: Function, live: Lifetimes, places: Places) -> Notes:
    """What must stay in its place does: views, updates, what loops carry and branches give."""
    notes = Notes(function.name)
    for stmt in function.walk():
        match stmt:
            case Let(value=Op() as op):
                for name, how in ((op.view_of, "a view of"), (op.writes, "the next version of")):
                    if name is not None:
                        _same_place(notes, places, getattr(op, name), stmt.target, how, stmt.span, part=how[0] == "a")
            case For():
                for init, arg, given, result in zip(
                    stmt.inits, stmt.iter_args, result_of(stmt.body), stmt.results, strict=True
                ):
                    span = stmt.body[-1].span
                    _same_place(notes, places, init, arg, "what starts", stmt.span)
                    _same_place(notes, places, given, arg, "handed to the next trip as", span)
                    _same_place(notes, places, arg, result, "left by the loop as", stmt.span)
            case If() | Scope():
                for block in stmt.blocks():
                    for given, result in zip(result_of(block), stmt.defs(), strict=True):
                        _same_place(notes, places, given, result, "given by an arm as", block[-1].span)
            case _:
                pass
    return notes


def _same_place(
    notes: Notes, places: Places, a: Scalar, b: Scalar, how: str, span: Span, *, part: bool = False
) -> None:
    if not (isinstance(a, Value) and isinstance(b, Value)):
        return
    if not (isinstance(a.type, TileType) and isinstance(b.type, TileType)):
        return
    one, two = a.type.memref, b.type.memref
    whole = part or places.part.get(a) is places.part.get(b)
    notes.ask(
        _at(one) == _at(two) and whole,
        "buffers",
        f"{a.name!r} is {how} {b.name!r} and lies elsewhere" if not how.startswith("a") and not how.startswith("the")
        else f"{b.name!r} is {how} {a.name!r} and lies elsewhere",
        span,
        required="one place" if whole else "the whole of one buffer",
        found=f"{a.name!r} {_spelled(one)}, {b.name!r} {_spelled(two)}",
    )  # fmt: skip


def _at(memref: MemRef | None) -> tuple[str, int | None, int | None] | None:
    return None if memref is None else (memref.name, memref.addr, memref.nbytes)


def _spelled(memref: MemRef | None) -> str:
    if memref is None or memref.addr is None or memref.nbytes is None:
        return "without an address"
    return f"at bytes {memref.addr:,} to {memref.addr + memref.nbytes:,}"


# --- the sweep ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes [low, high) of a memory that a content occupies over an interval of time."""

    first: int
    last: int
    low: int
    high: int
    content: Value
    value: Value


@dataclass(frozen=True, slots=True)
class Peak:
    """`nbytes`: up to where tiles reach in a memory. `bound`: the most bytes that are alive at one time, which no
    other plan of addresses can do without."""

    nbytes: int
    bound: int


def pieces_of(live: Lifetimes, places: Places, target: Target) -> dict[str, list[Piece]]:
    """What occupies each memory, in order of time. Tiles without an address are left out."""
    found: dict[str, list[Piece]] = {}
    for value, intervals in live.alive.items():
        kind = value.type
        assert isinstance(kind, TileType)
        memref = kind.memref
        if memref is None or memref.addr is None or kind.space is None or not target.has(kind.space):
            continue
        high = memref.addr + max(memref.nbytes or 0, tile_bytes(kind, target))
        pieces = found.setdefault(target.memory(kind.space).name, [])
        content = places.root_of(value)
        pieces += [Piece(first, last, memref.addr, high, content, value) for first, last in intervals]
    for pieces in found.values():
        pieces.sort(key=lambda piece: (piece.first, piece.last))
    return found


def check_overlap(live: Lifetimes, pieces: dict[str, list[Piece]]) -> Notes:
    """No two contents that are alive at one time have a byte in common."""
    notes = Notes(live.function.name)
    for memory, found in pieces.items():
        notes.count += len(found)
        for old, new in _Sweep().run(found):
            notes.fail(
                "overlap",
                f"{new.value.name!r} is written over {old.value.name!r}, which is still needed",
                live.span_of(new.value),
                live.span_of(old.value),
                required=f"no byte of {memory} in common while both are alive",
                found=f"{old.value.name!r} in bytes {old.low:,} to {old.high:,} from {_when(old)}; "
                f"{new.value.name!r} in bytes {new.low:,} to {new.high:,} from {_when(new)}; both alive from "
                f"statement {max(old.first, new.first) // 2} to {min(old.last, new.last) // 2}",
            )
    return notes


def _when(piece: Piece) -> str:
    return f"statement {piece.first // 2} to {piece.last // 2}"


class _Sweep:
    """Goes along time with the contents that are alive now, sorted by address."""

    def __init__(self) -> None:
        self.lows: list[tuple[int, int]] = []
        """(low, number) of what is alive; contents that are alive together are apart, so neighbours are enough"""
        self.active: dict[int, Piece] = {}
        self.numbers: dict[Value, int] = {}
        self.until: dict[int, int] = {}

    def run(self, pieces: list[Piece]) -> Iterator[tuple[Piece, Piece]]:
        """The pairs that are alive together in common bytes."""
        ends: list[tuple[int, int]] = []
        for count, piece in enumerate(pieces):
            while ends and ends[0][0] < piece.first:
                last, number = heappop(ends)
                if self.until.get(number) == last:
                    self.leave(number)
            number = self.numbers.get(piece.content)
            if number is not None:
                if piece.last > self.until[number]:
                    self.until[number] = piece.last
                    heappush(ends, (piece.last, number))
                continue
            met = [other for other in self.near(piece) if other.low < piece.high and piece.low < other.high]
            yield from ((other, piece) for other in met)
            if not met:
                self.numbers[piece.content] = count
                self.active[count] = piece
                self.until[count] = piece.last
                insort(self.lows, (piece.low, count))
                heappush(ends, (piece.last, count))

    def leave(self, number: int) -> None:
        piece = self.active.pop(number)
        del self.until[number], self.numbers[piece.content]
        del self.lows[bisect_left(self.lows, (piece.low, number))]

    def near(self, piece: Piece) -> Iterator[Piece]:
        """The one that begins below, and those that begin within."""
        at = bisect_left(self.lows, (piece.low, -1))
        if at:
            yield self.active[self.lows[at - 1][1]]
        while at < len(self.lows) and self.lows[at][0] < piece.high:
            yield self.active[self.lows[at][1]]
            at += 1


def peaks_of(pieces: dict[str, list[Piece]]) -> dict[str, Peak]:
    """How far each memory is filled, and what it must hold at least."""
    return {memory: Peak(max(p.high for p in found), _most_alive(found)) for memory, found in pieces.items()}


def _most_alive(pieces: Iterable[Piece]) -> int:
    by_content: dict[Value, list[Piece]] = {}
    for piece in pieces:
        by_content.setdefault(piece.content, []).append(piece)
    changes: list[tuple[int, int]] = []
    for found in by_content.values():
        size = max(piece.high - piece.low for piece in found)
        for first, last in _merged([(piece.first, piece.last) for piece in found]):
            changes += [(first, size), (last + 1, -size)]
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most
