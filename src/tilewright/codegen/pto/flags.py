"""What orders the pipes: flags within one core, signals between two, both printed from the list of hazards.

A hazard becomes one edge between two statements of one block: the innermost block that holds both. The earlier side
sets a flag behind its statement, the later one waits before its own. A hazard from one trip of a loop to the next is an
edge of the loop's body: its flag is set once before the loop and waited for once behind it, so that every wait has
its set. An edge that another one implies is left out.

    set_flag[MTE3, MTE2, 0]                      # the buffer is free
    for …:
      wait_flag[MTE3, MTE2, 0]    load x    set_flag[MTE2, V, 0]
      wait_flag[MTE2, V, 0]       y = exp x set_flag[V, MTE3, 0]
      wait_flag[V, MTE3, 0]       store y   set_flag[MTE3, MTE2, 0]
    wait_flag[MTE3, MTE2, 0]

Between cores the same edges are signals, `sync.set` in the section of one core and `sync.wait` in that of the other;
so a core runs ahead of the other one as far as the data allow. Of one pair of pipes at most eight edges have flags of
their own, and of all signals fourteen. What is left over within a core waits for everything; between cores the two
meet: the earlier one finishes all that it has begun just before the statement that waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilewright.analysis.cores import core_of
from tilewright.analysis.hazards import Hazard, hazards
from tilewright.codegen.pto.tables import CROSS_CORE_IDS, EVENT_IDS
from tilewright.ir.function import Function
from tilewright.ir.nodes import Block, For, Stmt
from tilewright.targets import Target

if TYPE_CHECKING:
    from tilewright.codegen.pto.kernel import Kernel

SIDES = ("cube", "vector")
SETS = {"cube": "FIX", "vector": "MTE3"}
"""The pipe by which a core says that everything is done."""
SIGNALS = CROSS_CORE_IDS - len(SIDES)
"""Signals with a meaning of their own; each core keeps one for meetings."""
MEETING = {side: SIGNALS + number for number, side in enumerate(SIDES)}
"""The signal by which a core says that everything is done."""
Emit = Callable[["Kernel"], None]


@dataclass(frozen=True, slots=True)
class Pipe:
    """One pipe of one kind of core; `core` is None where the machine, or the statement, has no kind."""

    core: str | None
    name: str


@dataclass(frozen=True, slots=True)
class Edge:
    """`source` sets behind statement `first` of a block, `target` waits before statement `last` of it. `loop`: the
    first belongs to the trip before. `inner` is the position of the earlier access within `first`, where that is a
    loop: the statement of its body that holds it."""

    first: int
    last: int
    source: Pipe
    target: Pipe
    loop: For | None = None
    inner: int = field(default=-1, compare=False)

    @property
    def pair(self) -> tuple[Pipe, Pipe]:
        return self.source, self.target

    @property
    def crosses(self) -> bool:
        """Whether it goes from one kind of core to another."""
        return None not in (self.source.core, self.target.core) and self.source.core != self.target.core

    @property
    def side(self) -> str | None:
        """The kind of core that an edge within one belongs to."""
        return self.target.core or self.source.core

    def implies(self, other: Edge) -> bool:
        """Whether whoever waits for this edge has waited for `other`, of the same block and pipes."""
        if self == other or self.pair != other.pair or self.last > other.last:
            return False
        if self.loop is None:
            return other.loop is not None or self.first >= other.first
        return other.loop is not None and self.first >= other.first


@dataclass(slots=True)
class _Around:
    """What is printed before and behind one statement, with the core that it belongs to."""

    before: list[tuple[str | None, Emit]] = field(default_factory=list[tuple["str | None", Emit]])
    after: list[tuple[str | None, Emit]] = field(default_factory=list[tuple["str | None", Emit]])


class Flags:
    """The flags and signals of one function, by statement."""

    def __init__(self) -> None:
        self._around: dict[Stmt, _Around] = {}

    def at(self, stmt: Stmt) -> _Around:
        return self._around.setdefault(stmt, _Around())

    def before(self, kernel: Kernel, stmt: Stmt) -> None:
        """Prints what `stmt` has to wait for."""
        self._print(kernel, self._around[stmt].before if stmt in self._around else ())

    def after(self, kernel: Kernel, stmt: Stmt) -> None:
        """Prints what `stmt` lets go on."""
        self._print(kernel, self._around[stmt].after if stmt in self._around else ())

    def concerns(self, stmt: Stmt, side: str) -> bool:
        """Whether anything is printed around `stmt` for one kind of core."""
        around = self._around.get(stmt)
        return around is not None and any(where == side for where, _ in (*around.before, *around.after))

    def meet(self, stmt: Stmt, source: str, target: str, prepare: Emit | None = None) -> None:
        """Just before `stmt`, core `source` finishes all that it has begun, and core `target` waits for that."""

        def done(kernel: Kernel) -> None:
            if prepare is not None:
                prepare(kernel)
            kernel.text.line("pto.barrier <PIPE_ALL>")
            kernel.text.line(f"pto.sync.set <PIPE_{SETS[source]}>, {MEETING[source]}")

        def wait(kernel: Kernel) -> None:
            kernel.text.line(f"pto.sync.wait <PIPE_{SETS[target]}>, {MEETING[source]}")
            kernel.text.line("pto.barrier <PIPE_ALL>")

        self.at(stmt).before += [(source, done), (target, wait)]

    @staticmethod
    def _print(kernel: Kernel, emits: Iterable[tuple[str | None, Emit]]) -> None:
        for side, emit in emits:
            if side is None or kernel.side in (None, side):
                emit(kernel)


def plan_flags(function: Function, target: Target, pipes: dict[str, str], *, within: bool, between: bool) -> Flags:
    """Decides what orders the pipes of a placed function: `within` each core, and `between` the two kinds."""
    blocks = _Blocks(function.body)
    edges: dict[int, dict[Edge, Edge]] = {}
    for hazard in hazards(function, target):
        ends = [core_of(stmt, target) for stmt in (hazard.before, hazard.after)]
        block, edge = blocks.edge(hazard, pipes, ends)
        if (between if edge.crosses else within) and edge.source != edge.target:
            held = edges.setdefault(block, {})
            held[edge] = max(edge, held.get(edge, edge), key=lambda one: one.inner)
    flags = Flags()
    kept = {number: _needed(_gathered(found.values())) for number, found in edges.items()}
    waited: dict[tuple[tuple[Pipe, Pipe], For | None], Edge] = {}
    planner = _Placer(flags, target.pto_arch or "")
    # Inner blocks first: what is executed most often gets signals of its own.
    for number in sorted(kept, key=lambda number: -blocks.depth[number]):
        block = blocks.blocks[number]
        for edge in kept[number]:
            if not _drained(edge, block, waited) and planner.place(block, edge) and edge.loop is not None:
                waited[edge.pair, edge.loop] = edge
    return flags


def _drained(edge: Edge, block: Block, waited: dict[tuple[tuple[Pipe, Pipe], For | None], Edge]) -> bool:
    """Whether the wait behind an inner loop, of the same pipes, covers `edge` from inside that loop."""
    loop = block[edge.first]
    found = waited.get((edge.pair, loop)) if isinstance(loop, For) else None
    return found is not None and 0 <= edge.inner <= found.first


class _Blocks:
    """Every block of a function by number, and the statements that enclose each statement, outermost first."""

    def __init__(self, body: Block) -> None:
        self.blocks: list[Block] = []
        self.depth: list[int] = []
        self.path: dict[Stmt, tuple[tuple[int, int], ...]] = {}
        self.body_of: dict[For, int] = {}
        self._visit(body, ())

    def _visit(self, block: Block, path: tuple[tuple[int, int], ...]) -> int:
        number = len(self.blocks)
        self.blocks.append(block)
        self.depth.append(len(path))
        for index, stmt in enumerate(block):
            here = (*path, (number, index))
            self.path[stmt] = here
            for inner in stmt.blocks():
                made = self._visit(inner, here)
                if isinstance(stmt, For):
                    self.body_of[stmt] = made
        return number

    def edge(self, hazard: Hazard, pipes: dict[str, str], ends: list[str | None]) -> tuple[int, Edge]:
        """The block that holds both sides of a hazard, and the edge between their statements in it."""
        before, after = dict(self.path[hazard.before]), dict(self.path[hazard.after])
        if hazard.distance and hazard.loop is not None:
            block = self.body_of[hazard.loop]
        else:
            block = max(number for number in before if number in after)
        loop = hazard.loop if hazard.distance else None
        cores = ends if None not in ends else [ends[0] or ends[1]] * 2
        source, target = Pipe(cores[0], pipes[hazard.before_engine]), Pipe(cores[1], pipes[hazard.after_engine])
        around = self.blocks[block][before[block]]
        inner = before.get(self.body_of[around], -1) if isinstance(around, For) else -1
        return block, Edge(before[block], after[block], source, target, loop, inner)


def _gathered(edges: Iterable[Edge]) -> list[Edge]:
    """The edges of one block, those from trip to trip of one pair of pipes made one: set last, waited for first."""
    carried: dict[tuple[object, ...], Edge] = {}
    plain: list[Edge] = []
    for edge in edges:
        if edge.loop is None:
            plain.append(edge)
            continue
        key = (edge.pair, edge.loop)
        held = carried.get(key, edge)
        first, last = max(held.first, edge.first), min(held.last, edge.last)
        carried[key] = Edge(max(first, last), last, edge.source, edge.target, edge.loop)
    return [*plain, *carried.values()]


def _needed(edges: list[Edge]) -> list[Edge]:
    return [edge for edge in edges if not any(other.implies(edge) for other in edges)]


class _Placer:
    """Gives edges their flags and signals, as long as there are any."""

    def __init__(self, flags: Flags, arch: str) -> None:
        self.flags = flags
        self.arch = arch
        self.used: dict[tuple[Pipe, Pipe], int] = {}
        self.signals = 0

    def place(self, block: Block, edge: Edge) -> bool:
        """Whether `edge` got a flag or signal of its own."""
        if edge.crosses:
            return self._signal(block, edge)
        number = self.used.get(edge.pair, 0)
        self.used[edge.pair] = number + 1
        if number >= EVENT_IDS:
            self.flags.at(block[edge.last]).before.append((edge.side, _line("pto.barrier <PIPE_ALL>")))
            return False
        inside = f"[<PIPE_{edge.source.name}>, <PIPE_{edge.target.name}>, <EVENT_ID{number}>]"
        given, taken = _line(f"pto.set_flag{inside}"), _line(f"pto.wait_flag{inside}")
        self._put(block, edge, (edge.side, given), (edge.side, taken))
        return True

    def _signal(self, block: Block, edge: Edge) -> bool:
        source, target = edge.source.core, edge.target.core
        assert source is not None and target is not None
        if self.signals >= SIGNALS:
            self.flags.meet(block[edge.last], source, target)
            return False
        number = self.signals
        self.signals += 1
        taken = _line(f"pto.sync.wait <PIPE_{edge.target.name}>, {number}")
        self._put(block, edge, (source, self._set(edge.source, number)), (target, taken))
        return True

    def _set(self, source: Pipe, number: int) -> Emit:
        """On a5 only FIX and MTE3 can signal; what another pipe has done, all have done by then."""
        if self.arch != "a5" or source.name in SETS.values():
            return _line(f"pto.sync.set <PIPE_{source.name}>, {number}")
        assert source.core is not None
        return _line("pto.barrier <PIPE_ALL>", f"pto.sync.set <PIPE_{SETS[source.core]}>, {number}")

    def _put(self, block: Block, edge: Edge, given: tuple[str | None, Emit], taken: tuple[str | None, Emit]) -> None:
        self.flags.at(block[edge.last]).before.append(taken)
        self.flags.at(block[edge.first]).after.append(given)
        if edge.loop is not None:
            self.flags.at(edge.loop).before.append(given)
            self.flags.at(edge.loop).after.append(taken)


def _line(*lines: str) -> Emit:
    def emit(kernel: Kernel) -> None:
        for line in lines:
            kernel.text.line(line)

    return emit
