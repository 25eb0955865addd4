"""Explicit synchronisation: the flags that order the pipes of one core, printed from the list of hazards.

A hazard becomes one edge between two statements of one block: the innermost block that holds both. The earlier side
sets a flag behind its statement, the later one waits before its own. A hazard from one trip of a loop to the next is an
edge of the loop's body: its flag is set once before the loop and waited for once behind it, so that every wait has
its set. An edge that another one implies is left out; of one pair of pipes at most eight have flags of their own, and
what is left over waits for everything.

    set_flag[MTE3, MTE2, 0]                      # the buffer is free
    for …:
      wait_flag[MTE3, MTE2, 0]    load x    set_flag[MTE2, V, 0]
      wait_flag[MTE2, V, 0]       y = exp x set_flag[V, MTE3, 0]
      wait_flag[V, MTE3, 0]       store y   set_flag[MTE3, MTE2, 0]
    wait_flag[MTE3, MTE2, 0]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilewright.analysis.cores import core_of
from tilewright.analysis.hazards import Hazard, hazards
from tilewright.codegen.pto.tables import EVENT_IDS
from tilewright.ir.function import Function
from tilewright.ir.nodes import Block, For, Stmt
from tilewright.targets import Target

if TYPE_CHECKING:
    from tilewright.codegen.pto.kernel import Kernel


@dataclass(frozen=True, slots=True)
class Edge:
    """`source` sets behind statement `first` of a block, `target` waits before statement `last` of it. `loop`: the
    first belongs to the trip before."""

    first: int
    last: int
    source: str
    target: str
    side: str | None
    loop: For | None = None

    @property
    def pair(self) -> tuple[str, str, str | None]:
        return self.source, self.target, self.side

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

    before: list[tuple[str | None, str]] = field(default_factory=list[tuple["str | None", str]])
    after: list[tuple[str | None, str]] = field(default_factory=list[tuple["str | None", str]])


class Flags:
    """The flags of one function, by statement."""

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

    @staticmethod
    def _print(kernel: Kernel, lines: Iterable[tuple[str | None, str]]) -> None:
        for side, line in lines:
            if side is None or kernel.side in (None, side):
                kernel.text.line(line)


def plan_flags(function: Function, target: Target, pipes: dict[str, str]) -> Flags:
    """Decides the flags of a placed function. Hazards between two kinds of core are left to their signals."""
    blocks = _Blocks(function.body)
    edges: dict[int, dict[Edge, None]] = {}
    for hazard in hazards(function, target):
        side, other = core_of(hazard.after, target), core_of(hazard.before, target)
        if None not in (side, other) and side != other:
            continue
        block, edge = blocks.edge(hazard, pipes, side or other)
        if edge.source != edge.target:
            edges.setdefault(block, {})[edge] = None
    flags = Flags()
    used: dict[tuple[str, str, str | None], int] = {}
    for block, found in sorted(edges.items()):
        for edge in _needed(_gathered(found)):
            number = used.get(edge.pair, 0)
            used[edge.pair] = number + 1
            _place(flags, blocks.blocks[block], edge, number)
    return flags


class _Blocks:
    """Every block of a function by number, and the statements that enclose each statement, outermost first."""

    def __init__(self, body: Block) -> None:
        self.blocks: list[Block] = []
        self.path: dict[Stmt, tuple[tuple[int, int], ...]] = {}
        self.body_of: dict[For, int] = {}
        self._visit(body, ())

    def _visit(self, block: Block, path: tuple[tuple[int, int], ...]) -> int:
        number = len(self.blocks)
        self.blocks.append(block)
        for index, stmt in enumerate(block):
            here = (*path, (number, index))
            self.path[stmt] = here
            for inner in stmt.blocks():
                made = self._visit(inner, here)
                if isinstance(stmt, For):
                    self.body_of[stmt] = made
        return number

    def edge(self, hazard: Hazard, pipes: dict[str, str], side: str | None) -> tuple[int, Edge]:
        """The block that holds both sides of a hazard, and the edge between their statements in it."""
        before, after = dict(self.path[hazard.before]), dict(self.path[hazard.after])
        if hazard.distance and hazard.loop is not None:
            block = self.body_of[hazard.loop]
        else:
            block = max(number for number in before if number in after)
        source, target = pipes[hazard.before_engine], pipes[hazard.after_engine]
        loop = hazard.loop if hazard.distance else None
        return block, Edge(before[block], after[block], source, target, side, loop)


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
        carried[key] = Edge(max(first, last), last, edge.source, edge.target, edge.side, edge.loop)
    return [*plain, *carried.values()]


def _needed(edges: list[Edge]) -> list[Edge]:
    return [edge for edge in edges if not any(other.implies(edge) for other in edges)]


def _place(flags: Flags, block: Block, edge: Edge, number: int) -> None:
    first, last = block[edge.first], block[edge.last]
    if number >= EVENT_IDS:
        flags.at(last).before.append((edge.side, "pto.barrier <PIPE_ALL>"))
        return
    inside = f"[<PIPE_{edge.source}>, <PIPE_{edge.target}>, <EVENT_ID{number}>]"
    given, taken = f"pto.set_flag{inside}", f"pto.wait_flag{inside}"
    flags.at(last).before.append((edge.side, taken))
    flags.at(first).after.append((edge.side, given))
    if edge.loop is not None:
        flags.at(edge.loop).before.append((edge.side, given))
        flags.at(edge.loop).after.append((edge.side, taken))
