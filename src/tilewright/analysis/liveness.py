"""Live ranges over the structured program.

Statements are numbered in the order in which they stand; one with blocks has a number where it begins and one where
it ends. Statement `p` reads at time `2p` and writes at time `2p + 1`, so a result may take over the storage of an
operand that dies there, when the operation allows it; one that it must not share is held until `2p + 1`.

    p=1  x = load(a)              x: [3, 4]
    p=2  y = exp(x)               y: [5, 11]     x may give its storage to y
    p=3  for ...:                 a value from outside that the loop reads lives until the loop ends
    p=4      z = add(z, y)
    p=5                           the loop ends

A value that the arms of a branch read, and nothing after it, lives in each arm until its last use there: its range has
a hole. Ranges are sorted lists of [first, last].
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.ir.function import Function
from tilewright.ir.nodes import Block, For, If, Let, Stmt, Yield, walk
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.ir.types import TileType

Range = tuple[int, int]


@dataclass(slots=True)
class Liveness:
    """`ranges[v]`: when `v` is alive; `begins` and `ends`: the numbers of each statement."""

    ranges: dict[Value, list[Range]] = field(default_factory=dict[Value, list[Range]])
    begins: dict[Stmt, int] = field(default_factory=dict[Stmt, int])
    ends: dict[Stmt, int] = field(default_factory=dict[Stmt, int])

    def range_of(self, value: Value) -> Range:
        """From the first time to the last, holes included."""
        ranges = self.ranges[value]
        return ranges[0][0], max(last for _, last in ranges)


def live_ranges(function: Function) -> Liveness:
    """When every value of `function` is alive, tensors and scalars included. Linear in the program."""
    found = Liveness()
    _number(function.body, found, 0)
    walker = _Walker(found)
    alive: dict[Value, int] = {}
    walker.block(function.body, alive)
    for param in function.params:
        walker.define(param.value, 0, alive)
    for value, ranges in found.ranges.items():
        found.ranges[value] = joined(ranges)
    return found


def joined(ranges: list[Range]) -> list[Range]:
    """The ranges sorted and apart: what an inner branch reads may lie within what an outer one does."""
    out: list[Range] = []
    for first, last in sorted(ranges):
        if out and first <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], last))
        else:
            out.append((first, last))
    return out


def _number(block: Block, found: Liveness, clock: int) -> int:
    for stmt in block:
        clock += 1
        found.begins[stmt] = clock
        for inner in stmt.blocks():
            clock = _number(inner, found, clock)
        if stmt.blocks():
            clock += 1
        found.ends[stmt] = clock
    return clock


class _Walker:
    """Walks blocks backwards. `alive` maps each value that is needed further on to the last time it is."""

    def __init__(self, found: Liveness) -> None:
        self.found = found

    def define(self, value: Value, time: int, alive: dict[Value, int]) -> None:
        """`value` comes into being at `time`; one that nothing reads lives for that moment."""
        self.piece(value, time, max(time, alive.pop(value, time)))

    def piece(self, value: Value, first: int, last: int) -> None:
        self.found.ranges.setdefault(value, []).append((first, last))

    def block(self, block: Block, alive: dict[Value, int]) -> None:
        for stmt in reversed(block):
            end = 2 * self.found.ends[stmt] + 1
            for value in stmt.defs():
                self.define(value, end, alive)
            if isinstance(stmt, For):
                self.loop(stmt, end, alive)
            elif isinstance(stmt, If):
                self.branch(stmt, alive)
            else:
                for inner in stmt.blocks():
                    self.block(inner, alive)
            self.reads(stmt, alive)

    def reads(self, stmt: Stmt, alive: dict[Value, int]) -> None:
        time = 2 * self.found.begins[stmt]
        if isinstance(stmt, Let) and isinstance(stmt.value, Op):
            shared = shareable(stmt.value, stmt.target)
            for value in stmt.value.uses():
                _need(value, time if value in shared else time + 1, alive)
            return
        # A terminator hands its values over at once; a loop takes its own in before anything is written.
        for value in stmt.uses():
            _need(value, time if isinstance(stmt, Yield | For) else time + 1, alive)

    def loop(self, stmt: For, end: int, alive: dict[Value, int]) -> None:
        """Every trip reads what comes from outside, so that lives until the loop ends, in every arm of the body too."""
        within = list(walk(stmt.body))
        made = {value for inner in within for value in (*inner.defs(), *inner.block_args())} | set(stmt.block_args())
        inside = {value: end for inner in within for value in inner.uses() if value not in made}
        self.block(stmt.body, inside)
        for value in stmt.block_args():
            self.define(value, 2 * self.found.begins[stmt] + 1, inside)
        for value in inside:
            _need(value, end, alive)

    def branch(self, stmt: If, alive: dict[Value, int]) -> None:
        """What is alive after the branch is alive throughout; what only an arm reads, until its last use in it."""
        first = 2 * self.found.begins[stmt] + 1
        for arm in stmt.blocks():
            inside: dict[Value, int] = {}
            self.block(arm, inside)
            # From where the arm begins: the arm's own terminator tells where it ended.
            begin = 2 * self.found.begins[arm[0]]
            for value, last in inside.items():
                if value not in alive or alive[value] <= first:
                    self.piece(value, begin, last)
                    _need(value, first, alive)


def _need(value: Value, time: int, alive: dict[Value, int]) -> None:
    alive[value] = max(time, alive.get(value, time))


def shareable(op: Op, target: Value) -> frozenset[Value]:
    """The tiles read by `op` whose storage its result may take over when they die there: the one it writes or views,
    and, where the op is in-place safe, those of equal element size and physical shape."""
    found: set[Value] = set()
    held: set[Value] = set()
    for name, value in op.operand_items():
        if name in op.not_aliased or (op.writes is not None and name != op.writes):
            held.add(value)
        elif name in (op.writes, op.view_of) or (op.inplace and _same_footprint(value, target)):
            found.add(value)
    return frozenset(found - held)


def _same_footprint(value: Value, target: Value) -> bool:
    a, b = value.type, target.type
    return (
        isinstance(a, TileType)
        and isinstance(b, TileType)
        and a.shape == b.shape
        and a.dtype.bits == b.dtype.bits
        and a.layout == b.layout
        and a.space is b.space
    )
