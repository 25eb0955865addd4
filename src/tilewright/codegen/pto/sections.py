"""Functions that two kinds of core run together: a section for each, and signals where one touches what is the other's.

Both sections walk the same control flow and leave out the statements of the other core. A statement *crosses* when it
writes into the memory of the other core, or accesses a tensor in DDR that the other core accesses too, one of them
writing. Around it the cores meet:

    other core:  barrier, set a        (all of mine so far is done)          wait b, …
    this core:                wait a,  the statement,  set b  ───────────────┘

so that the order of the program holds between the cores, in both directions and from trip to trip. Signals are set by
the FIX pipe of the cube core and by FIX or MTE3 of the vector core, the only ones that can. Only the first vector core
of a cluster works.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.analysis.cores import core_of
from tilewright.analysis.hazards import engine_of
from tilewright.analysis.uses import uses_of
from tilewright.codegen.pto.transfers import fill_around
from tilewright.errors import UnsupportedError
from tilewright.ir.function import Function
from tilewright.ir.layout import MemorySpace, Pad
from tilewright.ir.nodes import Let, Stmt, walk
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.ir.storage import roots_of, written_operand
from tilewright.ir.types import TensorType, TileType
from tilewright.targets import Target

if TYPE_CHECKING:
    from tilewright.codegen.pto.kernel import Kernel

SIDES = ("cube", "vector")
SIGNALS = 16
"""Signals between two cores (assumed: the flag register has four bits)."""
SETS = {"cube": "FIX", "vector": "MTE3"}
"""The pipe that tells the other core that everything is done."""
Emit = Callable[["Kernel"], None]


@dataclass(frozen=True, slots=True)
class Crossing:
    """One statement around which the cores meet. `core` executes it on `pipe`; the other one waits with `waits`."""

    stmt: Let
    core: str
    pipe: str
    waits: str | None
    number: int

    @property
    def other(self) -> str:
        return SIDES[1 - SIDES.index(self.core)]


class Sections:
    """The crossings of one function, and what is emitted around each statement."""

    def __init__(self, function: Function, target: Target, pipes: dict[str, str]) -> None:
        self.function = function
        self.target = target
        self.pipes = pipes
        self.crossings: dict[Stmt, Crossing] = {}
        self.roots = roots_of(function)
        self.uses = uses_of(function)
        self._plan()

    # --- deciding ---
    def _plan(self) -> None:
        shared = self._shared()
        for stmt in walk(self.function.body):
            if not isinstance(stmt, Let) or not isinstance(stmt.value, Op):
                continue
            core, pipe = core_of(stmt, self.target), self._pipe(stmt)
            tensors = [root for root, _ in self._tensors(stmt)]
            if core is None or pipe is None:
                if any(root in shared for root in tensors):
                    raise UnsupportedError(
                        f"{stmt.value.qualified_name} reaches a tensor that two kinds of core use",
                        span=stmt.span,
                        help="load it into a tile, or split the section",
                    )
                continue
            if self._foreign(stmt, core) or any(root in shared for root in tensors):
                waits = self._waits(stmt) if self._foreign(stmt, core) else None
                self.crossings[stmt] = Crossing(stmt, core, pipe, waits, len(self.crossings))

    def _pipe(self, stmt: Let) -> str | None:
        engine = engine_of(stmt, self.target)
        return None if engine is None else self.pipes[engine]

    def _foreign(self, stmt: Let, core: str) -> bool:
        """Whether the result lies in the memory of the other core."""
        kind = stmt.target.type
        if not isinstance(kind, TileType) or kind.space is None:
            return False
        return self.target.core_of_space(kind.space) not in (None, core)

    def _tensors(self, stmt: Let) -> list[tuple[Value, bool]]:
        if not isinstance(stmt.value, Op):
            return []
        written = written_operand(stmt.value)
        found = [value for _, value in stmt.value.operand_items() if isinstance(value.type, TensorType)]
        return [(self.roots.get(value, value), value is written) for value in found]

    def _shared(self) -> set[Value]:
        """The tensors that both cores access, one of them writing."""
        seen: dict[Value, set[tuple[str | None, bool]]] = {}
        for stmt in walk(self.function.body):
            if isinstance(stmt, Let):
                for root, writes in self._tensors(stmt):
                    seen.setdefault(root, set()).add((core_of(stmt, self.target), writes))
        return {
            root
            for root, found in seen.items()
            if any(writes for _, writes in found) and (len({core for core, _ in found}) > 1 or (None, True) in found)
        }

    def _waits(self, stmt: Let) -> str | None:
        """The one pipe of the other core that uses the result; None when there are several, or it is not plain."""
        pipes: set[str | None] = set()
        todo = [stmt.target]
        while todo:
            for use in self.uses.get(todo.pop(), ()):
                reader = use.stmt
                if not isinstance(reader, Let) or not isinstance(reader.value, Op):
                    pipes.add(None)
                elif reader.value.view_of is not None:
                    todo.append(reader.target)
                else:
                    pipes.add(self._pipe(reader))
        return pipes.pop() if len(pipes) == 1 else None

    def touches(self, stmt: Stmt, side: str) -> bool:
        """Whether anything inside `stmt` is emitted for `side`."""
        for inner in walk((stmt,)):
            if inner in self.crossings:
                return True
            if isinstance(inner, Let) and core_of(inner, self.target) == side:
                return True
        return False

    # --- emitting ---
    def emit(self, kernel: Kernel) -> None:
        """Both sections, the vector one for the first vector core only."""
        for side in SIDES:
            kernel.side = side
            kernel.tiles.places.clear()
            names = dict(kernel.numbers.names)
            with kernel.text.region(f"pto.section.{side} {{", prelude=True):
                if side == "cube":
                    kernel.body()
                else:
                    with kernel.text.region(f"scf.if {_first_lane(kernel)} {{", prelude=True):
                        kernel.body()
            kernel.numbers.names = names
        kernel.side = None

    def around(self, stmt: Let) -> tuple[Emit, Emit]:
        """What stands before and after `stmt` in the section that is being emitted."""
        crossing = self.crossings.get(stmt)
        if crossing is None:
            return _nothing, _nothing
        ready, done = (2 * crossing.number) % SIGNALS, (2 * crossing.number + 1) % SIGNALS

        def before(kernel: Kernel) -> None:
            if kernel.side == crossing.core:
                _wait(kernel, crossing.pipe, ready)
            else:
                self._prepare(kernel, crossing)
                kernel.text.line("pto.barrier <PIPE_ALL>")
                kernel.text.line(f"pto.sync.set <PIPE_{SETS[crossing.other]}>, {ready}")

        def after(kernel: Kernel) -> None:
            if kernel.side == crossing.core:
                sets = crossing.pipe if crossing.pipe in ("FIX", "MTE3") else SETS[crossing.core]
                if sets != crossing.pipe:
                    kernel.text.line("pto.barrier <PIPE_ALL>")
                kernel.text.line(f"pto.sync.set <PIPE_{sets}>, {done}")
                return
            alone = crossing.waits is not None and not kernel.explicit
            _wait(kernel, crossing.waits or SETS[crossing.other], done)
            if not alone:
                kernel.text.line("pto.barrier <PIPE_ALL>")

        return before, after

    def _prepare(self, kernel: Kernel, crossing: Crossing) -> None:
        """Zeros around what is about to arrive are filled in by the core that has the memory."""
        kind = crossing.stmt.target.type
        if not self._foreign(crossing.stmt, crossing.core) or not isinstance(kind, TileType):
            return
        padded = kind.view.pad is not Pad.NULL and kind.valid != kind.shape
        if padded and kind.space is MemorySpace.MAT and getattr(crossing.stmt.value, "pad_value", None) is not None:
            # What the other core wrote here before was waited for by the pipe that read it, and by no other.
            kernel.text.line("pto.barrier <PIPE_ALL>")
            fill_around(kernel, crossing.stmt.target)


def _nothing(kernel: Kernel) -> None:
    return None


def _wait(kernel: Kernel, pipe: str, signal: int) -> None:
    kernel.text.line(f"pto.sync.wait <PIPE_{pipe}>, {signal}")


def _first_lane(kernel: Kernel) -> str:
    """The condition that this is the first vector core of its cluster."""
    text, numbers = kernel.text, kernel.numbers
    wide, lane, first = (text.fresh(stem) for stem in ("lane_i64", "lane", "is_first"))
    text.line(f"{wide} = pto.get_subblock_idx")
    text.line(f"{lane} = arith.index_cast {wide} : i64 to index")
    text.line(f"{first} = arith.cmpi eq, {lane}, {numbers.index(0)} : index")
    return first
