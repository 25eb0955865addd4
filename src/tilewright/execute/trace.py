"""A simulation as a timeline in Chrome's trace format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

One process per core with one track per engine; slices named by operation and source line; an arrow from each
instruction to those of other engines that had to wait for it; counters for the bytes that tiles occupy in each memory.
The first process holds the launches. One microsecond on the time axis is one cycle.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import floor
from os.path import basename
from typing import Any

from tilewright.execute.instructions import Instruction
from tilewright.execute.schedule import Lane
from tilewright.execute.simulation import Played, SimulationResult
from tilewright.execute.tally import critical
from tilewright.ir.scalar import Value
from tilewright.ir.types import TileType

MOST_SLICES = 100_000
"""Slices up to which every core is drawn; past that, one for all those that do the same at the same time."""

LAUNCHES = 1
"""The process that holds the launches."""

TICK = 1 / 1024
"""Cycles to which times are rounded down. A binary fraction: start plus duration is exactly the next start, not past
it in a viewer's nanoseconds either, where a hair of overlap would be taken for one slice inside another."""

Event = dict[str, Any]
Buffer = tuple[str, str, int]
"""A memory, a buffer in it, and its bytes."""


def chrome_trace(found: SimulationResult) -> dict[str, Any]:
    """The timeline of `found`, as data for `json.dump`."""
    slices = sum(len(lane.blocks) * len(lane.stream.steps) for item in found.played for lane in item.lanes)
    return {
        "traceEvents": list(_Drawing(found, slices <= MOST_SLICES).events()),
        "displayTimeUnit": "ms",
        "otherData": {
            "program": found.program,
            "target": found.target,
            "unit": "one microsecond is one cycle",
            "cycles": found.cycles,
            "limit": found.limit,
            "bound_by": found.bound_by,
        },
    }


class _Drawing:
    def __init__(self, found: SimulationResult, every_core: bool) -> None:
        self.found = found
        self.every_core = every_core
        self.processes: dict[tuple[str, int], int] = {}
        self.tracks: dict[tuple[int, str], int] = {}
        self.engines: dict[str, int] = {}
        self.arrows = 0

    def events(self) -> Iterator[Event]:
        yield _named(LAUNCHES, None, "process_name", "launches")
        for item, launch in zip(self.found.played, self.found.launches, strict=True):
            yield {
                "ph": "X", "pid": LAUNCHES, "tid": 1, **_lasting(launch.start, launch.start + launch.cycles),
                "cat": "launch", "name": launch.function, "args": {"blocks": launch.blocks, "core": launch.core},
            }  # fmt: skip
            slowest, chain = critical(item)
            for lane in item.lanes:
                marked = set(chain) if lane is slowest else set[int]()
                for block in lane.blocks if self.every_core else lane.blocks[:1]:
                    yield from self.core(item, lane, block, marked)

    def core(self, item: Played, lane: Lane, block: int, marked: set[int]) -> Iterator[Event]:
        """One block of a launch on its core."""
        place = item.code.items.place
        pid = self.processes.get((place, block))
        if pid is None:
            pid = self.processes[place, block] = len(self.processes) + LAUNCHES + 1
            alike = "" if self.every_core or len(lane.blocks) == 1 else f" (and {len(lane.blocks) - 1} like it)"
            what = f"{place} {block}" if place in ("core", "cluster") else f"{place} core {block}"
            yield _named(pid, None, "process_name", what + alike)
            yield {"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": pid}}
        for engine in dict.fromkeys(instruction.engine for instruction in item.code.listed):
            if (pid, engine) not in self.tracks:
                tid = self.tracks[pid, engine] = self.engines.setdefault(engine, len(self.engines) + 1)
                yield _named(pid, tid, "thread_name", engine)
        for entry in range(len(lane.stream.steps)):
            if lane.ends[entry] > lane.starts[entry]:
                yield self.slice(item, lane, entry, pid, entry in marked)
                yield from self.flows(item, lane, entry, pid)
        yield from _counters(item, lane, pid)

    def slice(self, item: Played, lane: Lane, entry: int, pid: int, critical: bool) -> Event:
        instruction = item.code.listed[lane.stream.steps[entry]]
        price = self.found.prices[lane.stream.prices[entry]]
        start, end = lane.starts[entry], lane.ends[entry]
        span = instruction.stmt.span
        args: dict[str, Any] = {"makes": instruction.stmt.target.name, "critical": critical}
        if span.line:
            args["source"] = f"{span.file}:{span.line}"
        if price.edge is not None:
            args |= {"edge": " -> ".join(price.edge), "bytes": price.nbytes}
        if end - start > price.cycles * (1 + 1e-9):
            args["slowed by DDR"] = end - start - price.cycles
        cause = lane.causes[entry]
        if cause >= 0 and cause != lane.stream.previous[entry]:
            before = item.code.listed[lane.stream.steps[cause]]
            args["waited for"] = f"{before.engine}: {instruction.kinds_of(before.number)}"
        return {
            "ph": "X", "pid": pid, "tid": self.tracks[pid, instruction.engine],
            **_lasting(item.start + start, item.start + end),
            "cat": "critical" if critical else "work", "name": _name(instruction), "args": args,
        }  # fmt: skip

    def flows(self, item: Played, lane: Lane, entry: int, pid: int) -> Iterator[Event]:
        """An arrow from the end of each instruction that `entry` had to wait for to its start. Both ends lie within
        their slices, since a viewer looks for the slice around them."""
        after = item.code.listed[lane.stream.steps[entry]]
        for other in dict.fromkeys(lane.stream.waits[entry]):
            length = lane.ends[other] - lane.starts[other]
            if length <= 0:
                continue
            before = item.code.listed[lane.stream.steps[other]]
            self.arrows += 1
            arrow: Event = {"cat": "hazard", "name": after.kinds_of(before.number), "id": self.arrows, "pid": pid}
            leaves = item.start + lane.ends[other] - min(length, 1.0) / 2
            arrives = item.start + lane.starts[entry] + min(lane.ends[entry] - lane.starts[entry], 1.0) / 2
            yield {**arrow, "ph": "s", "tid": self.tracks[pid, before.engine], "ts": _ticks(leaves)}
            yield {**arrow, "ph": "f", "bp": "e", "tid": self.tracks[pid, after.engine], "ts": _ticks(arrives)}


def _ticks(cycles: float) -> float:
    return floor(cycles / TICK) * TICK


def _lasting(start: float, end: float) -> Event:
    """When a slice begins, and how long it is."""
    begin = _ticks(start)
    return {"ts": begin, "dur": _ticks(end) - begin}


def _name(instruction: Instruction) -> str:
    span = instruction.stmt.span
    where = f" {basename(span.file)}:{span.line}" if span.line else ""
    return instruction.op.qualified_name.removeprefix("tile.") + where


def _named(pid: int, tid: int | None, what: str, name: str) -> Event:
    event: Event = {"ph": "M", "pid": pid, "name": what, "args": {"name": name}}
    return event if tid is None else {**event, "tid": tid}


# --- memories -----------------------------------------------------------------------------------------------------
def _counters(item: Played, lane: Lane, pid: int) -> Iterator[Event]:
    """Bytes that tiles occupy in each memory: a buffer counts from the start of what writes it to the end of the last
    instruction that uses it before it is written anew."""
    changes: dict[str, dict[float, int]] = {}
    for (memory, _, nbytes), spans in _occupied(item, lane).items():
        for start, end in spans:
            at = changes.setdefault(memory, {})
            at[start] = at.get(start, 0) + nbytes
            at[end] = at.get(end, 0) - nbytes
    for memory, at in changes.items():
        occupied = 0
        for time in sorted(at):
            if at[time]:
                occupied += at[time]
                yield {
                    "ph": "C", "pid": pid, "name": f"bytes in {memory}", "ts": _ticks(item.start + time),
                    "args": {"bytes": occupied},
                }  # fmt: skip


def _occupied(item: Played, lane: Lane) -> dict[Buffer, list[tuple[float, float]]]:
    """For each buffer the times in which it holds something, apart from each other and in order."""
    touched = [_buffers(instruction, item) for instruction in item.code.listed]
    spans: dict[Buffer, list[list[float]]] = {}
    for step, start, end in zip(lane.stream.steps, lane.starts, lane.ends, strict=True):
        read, written = touched[step]
        for buffer in read:
            if buffer in spans:
                spans[buffer][-1][1] = max(spans[buffer][-1][1], end)
        if written is not None:
            spans.setdefault(written, []).append([start, end])
    merged: dict[Buffer, list[tuple[float, float]]] = {}
    for buffer, found in spans.items():
        joined = merged.setdefault(buffer, [])
        for start, end in found:
            if joined and start <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((start, end))
    return merged


def _buffers(instruction: Instruction, item: Played) -> tuple[list[Buffer], Buffer | None]:
    """The buffers that an instruction reads, and the one that it writes."""
    read = [_buffer(value, item) for _, value in instruction.op.operand_items()]
    return [buffer for buffer in read if buffer is not None], _buffer(instruction.stmt.target, item)


def _buffer(value: Value, item: Played) -> Buffer | None:
    kind = value.type
    if not isinstance(kind, TileType) or kind.space is None or kind.memref is None or kind.memref.addr is None:
        return None
    return item.code.target.memory(kind.space).name, kind.memref.name, kind.memref.nbytes or 0
