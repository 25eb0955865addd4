"""Live ranges over the structured program.

Statements are numbered in the order in which they stand; a loop has a number where it begins and one where it ends.
Statement `p` reads at time `2p` and writes at time `2p + 1`, so a result may take over the storage of an operand that
dies there, when the operation allows it; one that it must not share is held until `2p + 1`.

    p=1  x = load(a)              x: [3, 4]
    p=2  y = exp(x)               y: [5, 10]     x may give its storage to y
    p=3  for ...:                 a value from outside that the loop reads lives until the loop ends (p=5)
    p=4      z = add(z, y)
    p=5                           the loop ends
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.ir.function import Function
from tilewright.ir.nodes import Block, For, Let, Stmt, Yield
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.ir.types import TileType


@dataclass(slots=True)
class Liveness:
    """`ranges[v]` is [first, last] in times; `begins` and `ends` give the numbers of each structured statement."""

    ranges: dict[Value, list[int]] = field(default_factory=dict[Value, list[int]])
    begins: dict[Stmt, int] = field(default_factory=dict[Stmt, int])
    ends: dict[Stmt, int] = field(default_factory=dict[Stmt, int])

    def range_of(self, value: Value) -> tuple[int, int]:
        first, last = self.ranges[value]
        return first, last


def live_ranges(function: Function) -> Liveness:
    """The live range of every value of `function`, tensors and scalars included. Linear in the program."""
    walker = _Walker()
    for param in function.params:
        walker.define(param.value, 0)
    walker.block(function.body)
    return walker.found


class _Walker:
    def __init__(self) -> None:
        self.found = Liveness()
        self.clock = 0
        # For each value, how many loops enclose its definition; the loops open now, outermost first.
        self.depth: dict[Value, int] = {}
        self.loops: list[For] = []
        self.late_uses: dict[For, list[Value]] = {}

    def define(self, value: Value, time: int) -> None:
        self.found.ranges[value] = [time, time]
        self.depth[value] = len(self.loops)

    def use(self, value: Value, time: int) -> None:
        span = self.found.ranges[value]
        span[1] = max(span[1], time)
        if self.depth[value] < len(self.loops):
            # Read in a loop that it does not belong to: every trip reads it, so it lives until that loop ends.
            self.late_uses.setdefault(self.loops[self.depth[value]], []).append(value)

    def block(self, block: Block) -> None:
        for stmt in block:
            self.clock += 1
            self.found.begins[stmt] = self.clock
            self.reads(stmt)
            if isinstance(stmt, For):
                self.loop(stmt)
            else:
                for inner in stmt.blocks():
                    self.block(inner)
            if stmt.blocks():
                self.clock += 1
            self.found.ends[stmt] = self.clock
            for value in stmt.defs():
                self.define(value, 2 * self.clock + 1)

    def reads(self, stmt: Stmt) -> None:
        time = 2 * self.clock
        if isinstance(stmt, Let) and isinstance(stmt.value, Op):
            shared = shareable(stmt.value, stmt.target)
            for value in stmt.value.uses():
                self.use(value, time if value in shared else time + 1)
            return
        # A terminator hands its values over at once; a loop and a call take theirs in before anything is written.
        for value in stmt.uses():
            self.use(value, time if isinstance(stmt, Yield | For) else time + 1)

    def loop(self, stmt: For) -> None:
        self.loops.append(stmt)
        for value in stmt.block_args():
            self.define(value, 2 * self.clock + 1)
        self.block(stmt.body)
        self.loops.pop()
        for value in self.late_uses.pop(stmt, ()):
            span = self.found.ranges[value]
            span[1] = max(span[1], 2 * (self.clock + 1) + 1)


def shareable(op: Op, target: Value) -> frozenset[Value]:
    """The tiles read by `op` whose storage its result may take over when they die there: the one it writes or views,
    and, where the op is in-place safe, those of equal element size and physical shape."""
    found: set[Value] = set()
    held: set[Value] = set()
    for name, value in op.operand_items():
        if name in op.not_aliased:
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
