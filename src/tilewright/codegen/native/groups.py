"""Tile operations that follow each other and become loops together.

A *run* is a stretch of a block whose operations have loops (`has_loops`); names of scalars, and views of what was there
before, may stand between them. A tile that only the run reads has no memory: `lower_tiles` makes it an allocation of
the loop function, `fuse_loops` makes that small, and what is left of it lies in scratch memory during the run.

LLVM's time for one function grows faster than its length, so a run ends after `LONGEST` operations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from tilewright.codegen.native.llvm import Processor
from tilewright.ir.loop_level import LoopFunction
from tilewright.ir.nodes import Block, Let, Stmt
from tilewright.ir.op import Op, is_array
from tilewright.ir.scalar import Value
from tilewright.ir.types import TileType
from tilewright.passes.loop.flatten_loops import Flat, flatten_loops
from tilewright.passes.loop.fuse_loops import fuse_loops
from tilewright.passes.loop.lower_tiles import Lowered, has_loops, lower_tiles
from tilewright.passes.loop.vectorize import Vectors, vectorize

LONGEST = 32


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """`stmts` become the loops of `lowered`; `kept` are the tiles among their results that have memory."""

    stmts: tuple[Let, ...]
    kept: frozenset[Value]
    lowered: Lowered
    classes: Mapping[Value, object]
    """parameters that may overlap have equal ones"""
    fused: LoopFunction
    """the loops joined, and what lies between them made small"""

    def final(self, processor: Processor, dense: Collection[Value] = ()) -> tuple[LoopFunction, Flat]:
        """The loops in the vectors of a processor, and the parameters that have one dimension now; `dense` are those
        that may."""
        function, flat = flatten_loops(self.fused, dense)
        return vectorize(function, Vectors(processor.vector_bytes, processor.has_avx512)), flat


@dataclass(slots=True)
class Runs:
    """Finds the runs of a function's blocks. `source` is the array that a statement's result is a view of, `apart`
    are statements that need no code of their own, `root` is the start of a tensor's versions."""

    users: Mapping[Value, list[Stmt]]
    source: Callable[[Op, Value], Value | None]
    apart: Callable[[Let], bool]
    root: Callable[[Value], Value]
    mixed: bool

    def group(self, block: Block, position: int) -> tuple[Group, int] | None:
        """The group that begins with the statement at `position`, and where its run ends; None where it is alone."""
        members, end = self.run(block, position)
        if len(members) < 2:
            return None
        inside = set(members)
        kept = frozenset(stmt.target for stmt in members if self.is_kept(stmt, inside))
        lowered = lower_tiles(members, kept)
        classes: dict[Value, object] = {w.buffer: None if self.mixed else self.root(w.tensor) for w in lowered.windows}
        return Group(tuple(members), kept, lowered, classes, fuse_loops(lowered.function, classes)), end

    def run(self, block: Block, position: int) -> tuple[list[Let], int]:
        members: list[Let] = []
        made: set[Value] = set()
        end = position
        for place in range(position, len(block)):
            stmt = block[place]
            if not isinstance(stmt, Let) or len(members) == LONGEST:
                break
            if self.stands_between(stmt, made):
                continue
            if self.is_view(stmt) or self.apart(stmt) or not has_loops(stmt):
                break
            members.append(stmt)
            made.add(stmt.target)
            end = place + 1
        return members, end

    def stands_between(self, stmt: Let, made: set[Value]) -> bool:
        """Whether the statement only names something that is there before the run."""
        if not isinstance(stmt.value, Op):
            return not is_array(stmt.target)
        source = self.source(stmt.value, stmt.target) if is_array(stmt.target) else None
        return source is not None and source not in made

    def is_view(self, stmt: Let) -> bool:
        return isinstance(stmt.value, Op) and is_array(stmt.target) and self.source(stmt.value, stmt.target) is not None

    def is_kept(self, stmt: Let, inside: set[Let]) -> bool:
        kind = stmt.target.type
        if not isinstance(kind, TileType):
            return False
        known = all(isinstance(extent, int) for extent in kind.shape)
        return not known or any(user not in inside for user in self.users.get(stmt.target, []))
