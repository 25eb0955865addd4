"""What ran, on which engine, and after what: the events of one launch, and the conflicts that nothing orders.

Each engine runs its own events in order. Between engines the only order is that of the hazards which the compiler
listed: an event waits for those that its statement's hazards name. Each event has a vector clock, the number of events
of every engine that are certain to be done before it starts; two events that touch the same byte, one of them writing,
must be ordered by it. Blocks of a launch run on different cores and are never ordered.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.errors import MemoryFault
from tilewright.execute.instructions import Instruction
from tilewright.ir.scalar import Value

Numbers = npt.NDArray[np.int32]
Where = Any
"""What selects elements of an array: positions, or slices."""


@dataclass(slots=True, eq=False)
class Event:
    """One execution of a statement by an engine."""

    number: int
    """from 1, over all blocks of the launch"""
    instruction: Instruction
    block: int
    engine: int
    turn: int
    """how many events of its engine came before it, itself included"""
    clock: tuple[int, ...]
    after: tuple[Event, ...]
    trip: tuple[tuple[str, int], ...] = ()
    """the loop variables around it"""
    atomic: bool = False
    """it reads and writes DDR in one step"""
    work: Any = None
    """what it has to do still; None when it is done"""

    def covers(self, other: Event) -> bool:
        """Whether `other` is certain to be done before this one starts."""
        return self.block == other.block and self.clock[other.engine] >= other.turn

    def describe(self) -> str:
        """``line 7: y = tile.exp (VECTOR, trip i = 2)``."""
        stmt = self.instruction.stmt
        line = f"line {stmt.span.line}: " if stmt.span.line else ""
        trips = "".join(f", {name} = {at}" for name, at in self.trip)
        return f"{line}{stmt.target.name} = {self.instruction.op.qualified_name} ({self.instruction.engine}{trips})"


@dataclass(slots=True)
class Ledger:
    """Every event of one launch by number; number 0 is what was there before it."""

    events: list[Event | None] = field(default_factory=lambda: [None])

    def event(self, number: int) -> Event | None:
        return self.events[number]


class Shadow:
    """Who wrote each unit of a memory or tensor last, and what each engine read last. `writer` has event numbers."""

    def __init__(self, name: str, shape: tuple[int, ...], ledger: Ledger) -> None:
        self.name = name
        self.ledger = ledger
        self.writer: Numbers = np.zeros(shape, np.int32)
        self.readers: dict[tuple[int, int], Numbers] = {}

    def read(self, where: Where, event: Event, what: Value) -> None:
        """`event` reads the units `where`, of `what`. Raises `MemoryFault` for a race."""
        self._ordered(self.writer[where], event, what, "writes", "reads")
        key = event.block, event.engine
        if key not in self.readers:
            self.readers[key] = np.zeros(self.writer.shape, np.int32)
        self.readers[key][where] = event.number

    def write(self, where: Where, event: Event, what: Value) -> None:
        """`event` writes the units `where`, of `what`. Raises `MemoryFault` for a race."""
        self._ordered(self.writer[where], event, what, "writes", "writes")
        for (block, engine), readers in self.readers.items():
            if block != event.block or engine != event.engine:
                self._ordered(readers[where], event, what, "reads", "writes")
        self.writer[where] = event.number

    def _ordered(self, numbers: Numbers, event: Event, what: Value, did: str, does: str) -> None:
        for number in np.unique(numbers):
            other = self.ledger.event(int(number))
            if other is None or other is event or event.covers(other) or (other.atomic and event.atomic):
                continue
            first, second = sorted((event, other), key=lambda e: e.number)
            verbs = {event: does, other: did}
            raise MemoryFault(
                f"race in {self.name}: nothing orders two accesses, one of them a write",
                span=event.instruction.stmt.span,
                required=f"{second.describe()} after {first.describe()}",
                found=f"both touch {what.name!r}: the first {verbs[second]}, the second {verbs[first]}"
                + ("" if event.block == other.block else "; they are work items of two cores"),
                help="the hazards of the statement must name the other, as must what orders its engines",
            )
