"""What a simulation found, as data: made by `simulate`, printed as tables, read as JSON, opened as a timeline.

Cycles are of the core's clock; they are a model's, made of the figures of the target's file, and `assumptions` says
what the model leaves out or takes for granted. Bytes of DDR count whole granules.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from tilewright.execute.instructions import Code, Price
from tilewright.execute.schedule import Lane


@dataclass(frozen=True, slots=True)
class LaunchTime:
    """One launch of a function by the entry."""

    function: str
    core: str
    """the kind of core that runs it; ``cluster`` where it needs one of each"""
    blocks: int
    """cores that have work"""
    start: float
    cycles: float
    serial: float
    """of the block that ends last: the cycles of all its engines, one after another"""


@dataclass(frozen=True, slots=True)
class EngineUse:
    """One engine, on all cores of one kind that ever have work. ``busy + sum(stalls) + idle = cycles x cores``."""

    engine: str
    core: str
    cores: int
    """that have work"""
    machine: int
    """that the target has"""
    instructions: int
    busy: float
    """cycles in which it executes, all cores together"""
    slowed: float
    """of them, those lost because DDR was shared"""
    busiest: float
    """cycles in which it executes, on the core where they are most"""
    stalls: dict[str, float]
    """cycles in which it waits, by the engine that it waits for, all cores together"""
    idle: float
    """cycles after its last instruction of a launch, or in launches that have none for it"""

    @property
    def share(self) -> float:
        """The part of the whole time in which it is busy, on average over its cores."""
        whole = self.busy + sum(self.stalls.values()) + self.idle
        return self.busy / whole if whole else 0.0


@dataclass(frozen=True, slots=True)
class EdgeUse:
    """What went over one edge, all cores together."""

    src: str
    dst: str
    transfers: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class PathStep:
    """One statement on the critical path: the chain of instructions, each started by the end of the one before it,
    that takes all of the time."""

    file: str
    line: int
    operation: str
    engine: str
    times: int
    cycles: float


@dataclass(frozen=True, slots=True)
class Limit:
    """What the machine needs at least if one part of it worked at its full rate all the time, on all of its cores."""

    name: str
    """``compute on CUBE``, ``DDR -> UB``, ``DDR, all cores``"""
    cycles: float


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """One launch in detail: what a timeline is drawn from. Equal launches share the lanes."""

    code: Code
    lanes: tuple[Lane, ...]
    start: float


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """How long a program takes on a target, and what it waits for. `str()` is tables of plain text."""

    program: str
    target: str
    cycles: float
    launches: tuple[LaunchTime, ...]
    engines: tuple[EngineUse, ...]
    edges: tuple[EdgeUse, ...]
    critical_path: tuple[PathStep, ...]
    """by statement, in the order in which the path first meets them; their cycles add up to `cycles`"""
    limits: tuple[Limit, ...]
    """the largest first"""
    assumptions: tuple[str, ...]
    played: tuple[Played, ...] = field(default=(), repr=False, compare=False)
    prices: tuple[Price, ...] = field(default=(), repr=False, compare=False)

    @property
    def limit(self) -> float:
        """The largest of the limits, in cycles."""
        return self.limits[0].cycles if self.limits else 0.0

    @property
    def bound_by(self) -> str:
        """The part of the machine that sets the limit."""
        return self.limits[0].name if self.limits else "nothing"

    @property
    def ratio(self) -> float:
        """Cycles over the limit: 1 is as fast as the machine's rates allow for what this program moves and computes."""
        return self.cycles / self.limit if self.limit else 1.0

    @property
    def instructions(self) -> int:
        """Executions of instructions, all cores together."""
        return sum(use.instructions for use in self.engines)

    def trace(self) -> dict[str, Any]:
        """The timeline in Chrome's trace format, which Perfetto opens: see `tilewright.execute.trace`."""
        from tilewright.execute.trace import chrome_trace

        return chrome_trace(self)

    def to_json(self) -> dict[str, Any]:
        """Everything but the timeline as dictionaries, lists, texts and numbers."""
        return {
            "program": self.program,
            "target": self.target,
            "cycles": self.cycles,
            "limit": self.limit,
            "ratio": self.ratio,
            "bound_by": self.bound_by,
            "instructions": self.instructions,
            "launches": [asdict(launch) for launch in self.launches],
            "engines": [asdict(use) | {"share": use.share} for use in self.engines],
            "edges": [asdict(use) for use in self.edges],
            "critical_path": [asdict(step) for step in self.critical_path],
            "limits": [asdict(limit) for limit in self.limits],
            "assumptions": list(self.assumptions),
        }

    def __str__(self) -> str:
        from tilewright.execute.simulation_text import text

        return text(self)
