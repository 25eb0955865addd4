"""Finds accesses of one byte by two pipes, one of them writing, that no flag, barrier or cross-core signal orders.

Each pipe has a vector clock. A flag carries the clock of the pipe that set it to the pipe that waits for it. Every
granule of memory remembers its last write and each pipe's last read; an access whose pipe's clock does not cover
them is a race, whatever order the emulator happened to run in. Pipes run in order, so one pipe never races with itself.

Two modes. Explicit: flags in the text are all that orders the pipes of a core. Automatic: within a core the assembler
inserts flags, so a conflict there makes the later pipe wait; between cores nothing does, and it is a race.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt

from tilewright.codegen.pto.memory import Indices
from tilewright.errors import PTOError, Span

Clock = npt.NDArray[np.int64]
Pipe = tuple[str, str]
"""A core's name and a pipe's."""
_MOST_PIPES = 24


class _Shadow:
    """Who last wrote and last read each unit of one memory."""

    def __init__(self, units: int) -> None:
        self.writer = np.full(units, -1, np.int16)
        self.written = np.zeros(units, np.int64)
        self.reads: dict[int, Clock] = {}


class Tracker:
    """The clocks of every pipe, the flags on their way, and the shadow of every memory."""

    def __init__(self, *, explicit: bool) -> None:
        self.explicit = explicit
        self._pipes: list[Pipe] = []
        self._clocks: list[Clock] = []
        self._history: list[list[Clock]] = []
        self._spans: list[list[Span]] = []
        self._shadows: dict[object, _Shadow] = {}
        self._floor: dict[str, Clock] = {}
        """What the last barrier of a core covers: where the clocks of pipes begin that it has not used yet."""
        self._flags: dict[tuple[str, str, str, int], deque[Clock]] = {}
        self._now = -1
        self.span: Span | None = None

    def _index(self, pipe: Pipe) -> int:
        if pipe not in self._pipes:
            self._pipes.append(pipe)
            floor = self._floor.get(pipe[0])
            self._clocks.append(np.zeros(_MOST_PIPES, np.int64) if floor is None else floor.copy())
            self._history.append([])
            self._spans.append([])
        return self._pipes.index(pipe)

    def begin(self, pipe: Pipe, span: Span) -> None:
        """The accesses that follow are one instruction of `pipe`, at `span`."""
        now = self._now = self._index(pipe)
        clock = self._clocks[now] = self._clocks[now].copy()
        clock[now] += 1
        self._history[now].append(clock)
        self._spans[now].append(span)
        self.span = span

    def touch(self, memory: object, units: int, where: Indices, *, write: bool) -> None:
        """The current instruction reads or writes the units `where` of `memory`, which has `units` of them."""
        shadow = self._shadows.get(memory)
        if shadow is None:
            shadow = self._shadows[memory] = _Shadow(units)
        now, clock = self._now, self._clocks[self._now]
        writer, written = shadow.writer[where], shadow.written[where]
        found = [(int(o), int(written[writer == o].max(initial=0)), "writes") for o in np.unique(writer) if o >= 0]
        if write:
            found += [(other, int(reads[where].max(initial=0)), "reads") for other, reads in shadow.reads.items()]
        # Pipes of this core first: what the assembler orders after them comes after all that they waited for.
        core = self._pipes[now][0]
        for other, time, did in sorted(found, key=lambda entry: self._pipes[entry[0]][0] != core):
            if other != now:
                self._order(other, time, did, write)
        if write:
            shadow.writer[where] = now
            shadow.written[where] = clock[now]
        else:
            if now not in shadow.reads:
                shadow.reads[now] = np.zeros(units, np.int64)
            shadow.reads[now][where] = clock[now]

    def _order(self, other: int, time: int, did: str, write: bool) -> None:
        """The current instruction comes after instruction `time` of pipe `other`, or else it is a race."""
        clock = self._clocks[self._now]
        if time <= clock[other]:
            return
        (core, pipe), (my_core, my_pipe) = self._pipes[other], self._pipes[self._now]
        if not self.explicit and core == my_core:
            np.maximum(clock, self._history[other][time - 1], out=clock)
            return
        earlier = self._spans[other][time - 1]
        does = "writes" if write else "reads"
        raise PTOError(
            f"race: nothing orders the {my_pipe} pipe of {my_core} after the {pipe} pipe of {core}",
            span=self.span,
            required=f"a flag from {pipe}, set after line {earlier.line}, that {my_pipe} waits for",
            found=f"line {earlier.line} {did} the bytes that this line {does}",
            help="keep the flag that the compiler prints here, or let the assembler insert flags within a core",
        )

    # --- what orders ---
    def set_flag(self, core: str, source: str, target: str, event: int, span: Span) -> None:
        """`source` signals `target` when all that it was given so far is done."""
        queue = self._flags.setdefault((core, source, target, event), deque())
        if queue:
            raise PTOError(
                f"flag {event} from {source} to {target} is set twice with no wait between",
                span=span,
                help="use another event id, or wait first",
            )
        queue.append(self._clocks[self._index((core, source))].copy())

    def wait_flag(self, core: str, source: str, target: str, event: int, span: Span) -> None:
        """`target` goes on when the flag is set."""
        queue = self._flags.get((core, source, target, event))
        if not queue:
            raise PTOError(
                f"flag {event} from {source} to {target} is waited for, but nothing has set it",
                span=span,
                help="the set must come before the wait in the text",
            )
        self.join((core, target), queue.popleft())

    def clock(self, pipe: Pipe) -> Clock:
        """A copy of the clock of `pipe`, for a signal to carry."""
        return self._clocks[self._index(pipe)].copy()

    def join(self, pipe: Pipe, clock: Clock) -> None:
        """What `pipe` does next comes after everything that `clock` covers."""
        index = self._index(pipe)
        self._clocks[index] = np.maximum(self._clocks[index], clock)

    def barrier(self, core: str, pipe: str) -> None:
        """A barrier of one pipe orders nothing that its order does not; one of all pipes joins them."""
        if pipe != "ALL":
            return
        mine = [i for i, (owner, _) in enumerate(self._pipes) if owner == core]
        if mine:
            joined = np.maximum.reduce([self._clocks[i] for i in mine])
            for i in mine:
                self._clocks[i] = joined.copy()
            self._floor[core] = joined

    def finish(self, span: Span) -> None:
        """At the end of a kernel every flag must have been waited for: the next kernel would find it set."""
        for (core, source, target, event), queue in self._flags.items():
            if queue:
                raise PTOError(
                    f"flag {event} from {source} to {target} of {core} is still set when the kernel ends",
                    span=span,
                    help="give every set_flag a wait_flag",
                )
