"""What an explanation says, as plain data: made by `explain`, printed by `render` and `terminal`, read as JSON.

Units: bytes, and cycles of one core with nothing overlapped. Times are statement numbers of the placed function, in
which a loop has a number where it begins and one where it ends.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TileRow:
    """One tile of a placed function."""

    name: str
    made_by: str
    """the operation, or what carries it: ``loop``, ``branch``"""
    file: str
    line: int
    shape: str
    """what it occupies"""
    valid: str
    """the part with meaning; empty when that is all of it"""
    dtype: str
    space: str
    memory: str
    core: str
    """the kind of core that has the memory; empty where the target has one kind"""
    layout: str
    nbytes: int
    buffer: str
    address: int | None
    """bytes within the memory; None where the tile is streamed through registers"""
    first: int
    last: int
    """statements between which it is alive"""
    why: str
    """why it is in this memory"""


@dataclass(frozen=True, slots=True)
class MoveRow:
    """One statement that moves data, all its executions in one launch together."""

    line: int
    source: str
    made: str
    src: str
    dst: str
    engine: str
    cycles: float
    """of one execution"""
    times: int
    """executions in one launch"""
    nbytes: int
    """of all executions together: DDR's side where DDR is an end, else what the tile occupies"""


@dataclass(frozen=True, slots=True)
class RouteRow:
    """One change of memory that the program needed, and the way the target has for it."""

    section: str
    line: int
    value: str
    src: str
    dst: str
    route: str
    cycles: float
    """of the whole way, for one tile"""
    edge: bool
    """whether one edge does it"""


@dataclass(frozen=True, slots=True)
class HandRow:
    """One tensor that a section hands to another."""

    tensor: str
    line: int
    producer: str
    consumer: str
    function: str
    """the function in which both are now; empty where the tensor goes through DDR"""
    kept: bool
    """whether it is stored all the same, for other readers"""
    nbytes: int | None
    """of the tensor; None where its extents are known at run time only"""
    why: str
    """the rule that stands against it, in words; empty where nothing does"""


@dataclass(frozen=True, slots=True)
class BufferBar:
    """One buffer: where it lies, and from which statement to which."""

    name: str
    address: int | None
    nbytes: int
    first: int
    last: int
    tiles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """One memory in one function."""

    memory: str
    spaces: tuple[str, ...]
    peak: int
    """the end of the highest buffer"""
    capacity: int
    buffers: tuple[BufferBar, ...]
    verdict: str = ""
    """how good the plan of its addresses is, as far as that is proved"""

    @property
    def share(self) -> float:
        return self.peak / self.capacity


@dataclass(frozen=True, slots=True)
class FunctionReport:
    """One function that the cores run."""

    name: str
    core: str
    """the kind of core, or ``cube and vector``; empty where the target has one kind"""
    file: str
    line: int
    statements: int
    tiles: tuple[TileRow, ...]
    moves: tuple[MoveRow, ...]
    memories: tuple[MemoryUse, ...]
    ddr_in: int
    """bytes read from DDR in one launch"""
    ddr_out: int
    cycles: dict[str, float]
    """by engine, summed over one launch as if one core did all of it, one thing after another"""
    exact: bool
    """False where something is known only when the kernel runs: one trip, the largest extent, both arms are counted"""


@dataclass(frozen=True, slots=True)
class Launch:
    """One call of a function by the entry, in order."""

    function: str
    core: str
    depth: int
    """how many loops of the entry it is in"""
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Workspace:
    """A tensor in DDR that the program makes for itself."""

    name: str
    shape: str
    dtype: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where each tile of a program lives on a target, what moves, and why. `str()` is plain text; printing one with
    rich draws tables; `to_json()` is for programs."""

    program: str
    target: str
    description: str
    functions: tuple[FunctionReport, ...]
    """in the order in which they are launched"""
    launches: tuple[Launch, ...]
    workspaces: tuple[Workspace, ...]
    routes: tuple[RouteRow, ...]
    choices: tuple[str, ...]
    """the choices between memories that were open, with what each would have cost"""
    notes: tuple[str, ...]
    hands: tuple[HandRow, ...] = ()
    """what sections hand to each other: on chip, or through DDR and why"""
    hints: tuple[str, ...] = ()
    """what costs cycles or stayed as it was written, each with its code, line and reason"""

    @property
    def ddr_in(self) -> int:
        """Bytes read from DDR by all functions, each launched once."""
        return sum(function.ddr_in for function in self.functions)

    @property
    def ddr_out(self) -> int:
        """Bytes written to DDR by all functions, each launched once."""
        return sum(function.ddr_out for function in self.functions)

    def to_json(self) -> dict[str, Any]:
        """Everything as dictionaries, lists, texts and numbers."""
        return asdict(self) | {"ddr_in": self.ddr_in, "ddr_out": self.ddr_out}

    def __str__(self) -> str:
        from tilewright.report.render import plain

        return plain(self)

    def __rich_console__(self, console: Any, options: Any) -> Any:
        from tilewright.report.terminal import draw

        yield from draw(self, options.max_width)
