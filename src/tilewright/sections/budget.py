"""Bytes on chip: what the buffers of a section need together, stage by stage (rule S3).

A buffer is live from the stage that first writes it to the last that reads it. Only plans are counted: a template's
pages are as large as its tensors, and what cuts them comes later. Buffers of which the memory or the page is not known
are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.layout import MemorySpace
from tilewright.sections.refusals import NoMemory, OverBudget, Refusal
from tilewright.sections.section import Buffer, BufferId, Phase, Section
from tilewright.targets import Target

Usage = dict[str, list[int]]
"""Bytes live at each stage, by memory of the target."""


@dataclass(frozen=True, slots=True)
class Life:
    """The stages at which a buffer is live, both ends included."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Growth:
    """What one join adds: the new peaks by memory, lines for the new stages, bytes more at the old ones, and where the
    buffers of the second section are live."""

    peaks: dict[str, int]
    lines: Usage
    more: dict[int, int]
    lives: dict[BufferId, Life]


def check_memories(section: Section, target: Target, side: str) -> Refusal | None:
    """Refuses a buffer in a memory that the target does not have."""
    for k, buffer in enumerate(section.buffers):
        if buffer.kind is not None and not target.has(buffer.kind):
            return Refusal("S3", NoMemory(buffer.name, buffer.kind), f"{side}.buffers[{k}].kind")
    return None


@dataclass(frozen=True, slots=True)
class Feed:
    """Buffer `o`, which becomes `carrier`, feeds the readers of `i` in the second section: straight where they are
    one buffer (`direct`), else through a stage between them."""

    o: BufferId
    before: Buffer
    carrier: Buffer
    i: BufferId
    direct: bool


class Tally:
    """Bytes live at each stage of a section that grows, by memory. Stages that a join drops keep their place; nothing
    is live there that is not live beside them."""

    def __init__(self, section: Section, target: Target) -> None:
        self.target = target
        self.counts = section.phase is not Phase.TEMPLATE
        self._lives = _lives(section) if self.counts else {}
        self._lines = _lines(section, self._lives, target)
        self._stages = len(section.stages)
        self._peaks = {memory: max(line) for memory, line in self._lines.items()}

    def joined(self, second: Section, feed: Feed) -> Growth:
        """What becomes of it when `second` is joined as `feed` says."""
        if not self.counts:
            return Growth({}, {}, {}, {})
        between = int(not feed.direct)
        lives = _lives(second)
        last = lives.pop(feed.i).end
        lines = {memory: [0] * between + line for memory, line in _lines(second, lives, self.target).items()}
        stages = len(second.stages) + between
        if not feed.direct:
            lives[feed.i] = Life(-1, last)
            _add(lines, _place(second.buffers[feed.i], self.target), Life(0, last + 1), stages)
        placed = _place(feed.carrier, self.target)
        _add(lines, placed, Life(0, last if feed.direct else 0), stages)
        more = self._more(placed, _place(feed.before, self.target), self._lives[feed.o])
        peaks = dict(self._peaks)
        for memory, line in lines.items():
            peaks[memory] = max(peaks.get(memory, 0), *line)
        if placed is not None:
            old = self._lines.get(placed[0])
            peaks[placed[0]] = max(peaks[placed[0]], *((old[k] if old else 0) + extra for k, extra in more.items()))
        offset = self._stages + between
        moved = {b: Life(life.begin + offset, life.end + offset) for b, life in lives.items()}
        if feed.direct:
            moved[feed.i] = Life(self._lives[feed.o].begin, last + offset)
        return Growth(peaks, lines, more, moved)

    def _more(self, placed: tuple[str, int] | None, before: tuple[str, int] | None, life: Life) -> dict[int, int]:
        """The bytes that the carrier adds at stages that are there already: over its life where it has grown, and
        from the end of its life to the end of the section."""
        if placed is None:
            return {}
        had = before[1] if before is not None else 0
        inside = dict.fromkeys(range(life.begin, life.end + 1), placed[1] - had)
        return inside | dict.fromkeys(range(life.end + 1, self._stages), placed[1])

    def commit(self, second: Section, feed: Feed, growth: Growth, ids: dict[BufferId, BufferId]) -> None:
        """Makes `growth` so; `ids` are the numbers that the second section's buffers now have."""
        if not self.counts:
            return
        added = len(second.stages) + (not feed.direct)
        self._peaks = growth.peaks
        for memory in growth.lines:
            self._lines.setdefault(memory, [0] * self._stages)
        placed = _place(feed.carrier, self.target)
        if placed is not None:
            for k, nbytes in growth.more.items():
                self._lines[placed[0]][k] += nbytes
        for memory, line in self._lines.items():
            line.extend(growth.lines.get(memory, [0] * added))
        self._stages += added
        for b, life in growth.lives.items():
            self._lives[ids[b]] = life


def _lives(section: Section) -> dict[BufferId, Life]:
    """Where each buffer that is written is live."""
    found: dict[BufferId, Life] = {}
    for k, stage in enumerate(section.stages):
        for b in (*stage.outs, *stage.ins):
            known = found.get(b)
            found[b] = Life(k if known is None else known.begin, k)
    return found


def _lines(section: Section, lives: dict[BufferId, Life], target: Target) -> Usage:
    """Bytes live at each stage, by memory, of the buffers in `lives`."""
    total: Usage = {}
    for b, life in lives.items():
        _add(total, _place(section.buffers[b], target), life, len(section.stages))
    return total


def _place(buffer: Buffer, target: Target) -> tuple[str, int] | None:
    """The memory that a buffer takes bytes of, and how many; None when it is not known."""
    nbytes = buffer.nbytes
    if buffer.kind is None or buffer.kind is MemorySpace.DDR or nbytes is None or not target.has(buffer.kind):
        return None
    memory = target.memory(buffer.kind)
    if memory.register_bytes:
        return None  # what is larger than a file of registers streams through it
    return memory.name, -(-nbytes // memory.alignment) * memory.alignment


def _add(total: Usage, placed: tuple[str, int] | None, life: Life, stages: int) -> None:
    """Adds a buffer to `total` over its life."""
    if placed is None:
        return
    memory, nbytes = placed
    line = total.setdefault(memory, [0] * stages)
    for k in range(life.begin, life.end + 1):
        line[k] += nbytes


def check_budget(peaks: dict[str, int], target: Target) -> Refusal | None:
    """Refuses a peak larger than its memory."""
    for memory, needed in peaks.items():
        capacity = target.memories[memory].capacity
        if capacity is not None and needed > capacity:
            return Refusal("S3", OverBudget(memory, needed, capacity), f"joined.buffers in {memory}")
    return None
