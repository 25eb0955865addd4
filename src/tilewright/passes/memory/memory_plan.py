"""The plan of one memory: an address for each buffer, chosen for these in turn: it fits; as few reuses as possible make
one engine wait for another; the highest end is low.

What is known of a plan is said with it: whether it is optimal, or by how much it may miss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.analysis.buffers import Buffer
from tilewright.analysis.packing import BUDGET, Item, Packing, overlap, pack, peak_of
from tilewright.analysis.packing.apart import MOST, pack_apart
from tilewright.analysis.reuse import BufferUse, serialising

TRIES = 2_000
"""Placements that may be spent on a lower peak once no engine waits."""


@dataclass(slots=True)
class MemoryPlan:
    """What came of one memory. All in bytes; `peak` and `bound` in whole multiples of the memory's alignment."""

    memory: str
    capacity: int
    peak: int = 0
    """the end of the highest buffer"""
    bound: int = 0
    """proved: no packing of these buffers has a lower peak"""
    least: int = 0
    """the lowest peak that was found, whoever waits"""
    apart: int = 0
    """proved: no packing in which no engine waits has a lower peak; 0 where the lowest peak needs no wait"""
    waits: int = 0
    """reuses of bytes that make one engine wait for another"""
    streamed: list[str] = field(default_factory=list[str])
    """buffers without an address, in a file of registers that they are too large for"""

    @property
    def optimal(self) -> bool:
        """Whether nothing has a lower peak."""
        return self.peak == self.bound

    def __str__(self) -> str:
        said = [f"{self.peak:,} of {self.capacity:,} bytes", self.verdict()] if self.peak else []
        if self.streamed:
            names = ", ".join(self.streamed)
            said.append(f"no address in {self.capacity:,} bytes of registers, streamed through them: {names}")
        return f"{self.memory}: {'; '.join(said)}"

    def verdict(self) -> str:
        """How good the plan is, in words."""
        waits = f"{self.waits} reuse{'s make' if self.waits > 1 else ' makes'} an engine wait" if self.waits else ""
        least = f"{self.least:,} bytes would do"
        if self.optimal:
            good = "optimal"
        elif waits and self.least < self.peak:
            good = f"apart so that engines wait less ({least})"
        elif self.apart:
            how = "optimal" if self.peak == self.apart else f"at most {_percent(self.peak, self.apart)} above the least"
            good = f"{how} where no engine waits for a reuse ({least} with waits)"
        else:
            good = f"at most {_percent(self.peak, self.bound)} above the least possible ({self.bound:,})"
        return f"{good}; {waits}" if waits else good


def _percent(peak: int, bound: int) -> str:
    return f"{100 * (peak / bound - 1):.1f} %"


def plan_memory(
    name: str,
    group: Sequence[Buffer],
    capacity: int,
    alignment: int,
    uses: Mapping[str, BufferUse] | None,
    budget: int = BUDGET,
) -> MemoryPlan | None:
    """Gives the buffers of one memory addresses, unless they do not fit: then None, and only pinned ones have one.
    `uses` says how engines use each buffer; without it, bytes alone count. Memory is handed out in multiples of
    `alignment`; a pinned buffer takes the multiples that it touches."""
    items = [_item(buffer, alignment) for buffer in group]
    room = capacity // alignment
    packed = pack(items, room, budget)
    if packed.peak > room and not _fits_exactly(group, packed, capacity, alignment):
        return None
    if overlap(items, packed.addresses) is not None:
        return None
    addresses, waits, apart = packed.addresses, 0, 0
    if uses is not None and len(group) <= MOST:
        wishes = serialising([uses.get(buffer.name) for buffer in group])
        if wishes.any():
            found = pack_apart(items, wishes, addresses, max(room, packed.peak), TRIES)
            addresses, waits, apart = found.addresses, found.reuses, found.bound
    for buffer, address in zip(group, addresses, strict=True):
        if buffer.addr is None:
            buffer.addr = address * alignment
    peak = peak_of(items, addresses)
    peak, bound, least, apart = (figure * alignment for figure in (peak, packed.bound, packed.peak, apart))
    return MemoryPlan(name, capacity, peak, bound, least, apart, waits)


def _item(buffer: Buffer, alignment: int) -> Item:
    ranges = tuple(buffer.ranges)
    if buffer.addr is None:
        return Item(max(1, -(-buffer.nbytes // alignment)), ranges)
    first, end = buffer.addr // alignment, -(-buffer.end // alignment)
    return Item(max(1, end - first), ranges, first)


def _fits_exactly(group: Sequence[Buffer], packed: Packing, capacity: int, alignment: int) -> bool:
    """Whether what goes beyond the last whole multiple of the alignment is only the end of one."""
    placed = zip(group, packed.addresses, strict=True)
    return all((b.start if b.addr is not None else at * alignment) + b.nbytes <= capacity for b, at in placed)
