"""The buffers of a tile function: what has one address, how many bytes it takes, and when they are in use.

A buffer is used by all tiles that have its `MemRef`; it is alive when one of them is, in whole statements: what is
written by the statement that last reads another buffer is alive together with that. Where no tile of it is alive (in
an arm of a branch that does not need it, between the last use of what a loop carries and its next value) its times have
a hole. What the body of a pipelined loop makes is alive as long as the loop runs, so that no trip waits for a buffer of
the trip before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.analysis.liveness import Range, joined, live_ranges
from tilewright.ir.function import Function
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import Block, For, LoopKind
from tilewright.ir.scalar import Value
from tilewright.ir.types import TileType


@dataclass(slots=True, eq=False)
class Buffer:
    """One buffer, the tiles that occupy it, and the times of `Liveness` at which it is in use: sorted, apart."""

    name: str
    space: MemorySpace
    nbytes: int
    ranges: list[Range]
    addr: int | None = None
    tiles: list[Value] = field(default_factory=list[Value])

    @property
    def first(self) -> int:
        return self.ranges[0][0]

    @property
    def last(self) -> int:
        return self.ranges[-1][1]

    @property
    def start(self) -> int:
        assert self.addr is not None, f"{self.name} has no address"
        return self.addr

    @property
    def end(self) -> int:
        return self.start + self.nbytes

    def at(self, time: int) -> bool:
        """Whether it is in use at `time`."""
        return any(first <= time <= last for first, last in self.ranges)

    def meets(self, other: Buffer) -> bool:
        """Whether the two are in use at one time."""
        return any(a <= last and first <= b for a, b in self.ranges for first, last in other.ranges)


def collect_buffers(function: Function) -> dict[str, Buffer]:
    """The buffers of `function` by name, in the order in which they come into being. Requires a `MemRef` with bytes
    and a space on every tile."""
    live = live_ranges(function)
    pipelined = _pipelined(function.body, None)
    found: dict[str, Buffer] = {}
    for stmt in function.walk():
        for value in (*stmt.block_args(), *stmt.defs()):
            kind = value.type
            if not isinstance(kind, TileType):
                continue
            memref = kind.memref
            assert memref is not None and memref.nbytes is not None and kind.space is not None
            ranges = [(first - first % 2, last | 1) for first, last in live.ranges[value]]
            loop = pipelined.get(value)
            if loop is not None:
                whole = (2 * live.begins[loop], 2 * live.ends[loop] + 1)
                ranges = [(min(ranges[0][0], whole[0]), max(ranges[-1][1], whole[1]))]
            buffer = found.setdefault(memref.name, Buffer(memref.name, kind.space, memref.nbytes, [], memref.addr))
            buffer.ranges += ranges
            buffer.tiles.append(value)
    for buffer in found.values():
        buffer.ranges = joined(buffer.ranges)
    return found


def _pipelined(block: Block, loop: For | None) -> dict[Value, For]:
    """For each value that is made in a pipelined loop: the innermost such loop."""
    found: dict[Value, For] = {}
    for stmt in block:
        if loop is not None:
            found |= dict.fromkeys((*stmt.defs(), *stmt.block_args()), loop)
        inner = stmt if isinstance(stmt, For) and stmt.kind is LoopKind.PIPELINE else loop
        for nested in stmt.blocks():
            found |= _pipelined(nested, inner)
    return found
