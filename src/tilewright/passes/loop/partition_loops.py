"""Loops divided where a predicate inside them changes, so that no part asks what it knows.

Before:  for i in pl.loop.serial(0, 5):
             for j in pl.loop.serial(0, 26):
                 if i * 26 + j < 128:
                     A[i * 26 + j] = 1.0
After:   for i in pl.loop.serial(0, 4):
             for j in pl.loop.serial(0, 26):
                 A[i * 26 + j] = 1.0
         for i in pl.loop.serial(4, 5):
             for j in pl.loop.serial(0, 24):
                 A[i * 26 + j] = 1.0

A predicate is any comparison of indices: of a block, a branch, an `if_then_else`. Outer loops are divided first, so
that a predicate over both is decided for all but the last trips of the outer one; buffers allocated inside become one
per part, each as large as its part needs once `compact_buffers` ran. Trips keep their order. Loops over threads are
left whole, as are loops that run backwards, and everything from where the function would grow beyond `largest`
statements.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.analysis.loop_cuts import Part, comparisons, cuts, inside_of, range_defined
from tilewright.analysis.scalar_ranges import ANY, Facts, Range
from tilewright.ir.dtypes import BOOL, INDEX
from tilewright.ir.loop_level import ALWAYS, ComputeBlock, Loop, LoopFunction, LoopKind
from tilewright.ir.loop_rewrite import LoopRewriter, clone_loops, rebuilt, with_all_blocks
from tilewright.ir.nodes import Block, If, Stmt, walk
from tilewright.ir.scalar import Binary, Const, Expr, Scalar, Value, constant_value, substitute
from tilewright.ir.types import ScalarType


def partition_loops(function: LoopFunction, largest: int = 2000) -> LoopFunction:
    """`function` with its loops divided; itself when no predicate divides one. Of the predicates that are sums of loop
    variables and symbols none is left, unless `largest` statements were reached."""
    size = sum(1 for _ in function.walk())
    return function.with_body(_Partition(function, largest - size).block(function.body))


class _Partition:
    """`room` is how many statements may still be added."""

    def __init__(self, function: LoopFunction, room: int) -> None:
        self.room = room
        self.ranges: dict[Value, Range] = dict.fromkeys(function.symbols, (0, None))
        self.order: dict[Value, int] = {}
        self.facts = Facts(self.ranges, self.order)
        self.learn((*function.symbols, *function.params))

    def learn(self, values: Iterable[Value]) -> None:
        for value in values:
            self.order.setdefault(value, len(self.order))

    def block(self, block: Block) -> Block:
        made = [new for stmt in block for new in self.stmt(stmt)]
        same = len(made) == len(block) and all(a is b for a, b in zip(made, block, strict=True))
        return block if same else tuple(made)

    def stmt(self, stmt: Stmt) -> list[Stmt]:
        self.learn((*stmt.defs(), *stmt.block_args()))
        known = range_defined(stmt, self.facts)
        if known is not None:
            self.ranges[known[0]] = known[1]
        if isinstance(stmt, Loop):
            return self.loop(stmt, frozenset())
        return [with_all_blocks(stmt, tuple(self.block(block) for block in stmt.blocks()))]

    def loop(self, loop: Loop, done: frozenset[Binary]) -> list[Stmt]:
        """The parts of a loop. `done`: comparisons that the trips of this one do not divide further."""
        low, high = self.ranges.get(loop.iv, ANY)
        if low is not None and high is not None and low > high:
            return []  # no trip, whatever the loops around are at
        if loop.kind is not LoopKind.THREAD:
            inside = inside_of(loop.body, self.facts)
            for atom in comparisons(loop.body):
                if atom in done:
                    continue
                parts = cuts(loop, atom, inside, self.facts)
                if parts is None or (len(parts) == 1 and parts[0][2] is None):
                    continue
                added = (len(parts) - 1) * (1 + sum(1 for _ in walk(loop.body)))
                if added > self.room:
                    continue
                self.room -= added
                return [new for part in parts for new in self.part(loop, atom, part, done)]
        return [with_all_blocks(loop, (self.block(loop.body),))]

    def part(self, loop: Loop, atom: Binary, part: Part, done: frozenset[Binary]) -> list[Stmt]:
        """One part of a loop, divided further."""
        start, stop, held = part
        if isinstance(start, int) and isinstance(stop, int) and start >= stop:
            return []
        iv = Value(loop.iv.name, ScalarType(INDEX), loop.iv.span)
        env: dict[Value, Scalar] = {loop.iv: iv}
        body = clone_loops(loop.body, env)

        def moved(comparison: Binary) -> Scalar:
            return substitute(comparison, lambda value: env.get(value, value))

        if held is not None:
            body = _Decided(moved(atom), held).block(body)
        left = frozenset(new for old in (*done, atom) if isinstance(new := moved(old), Binary))
        made = loop.replace(iv=iv, start=start, stop=stop, body=body)
        if not body:
            return []
        known = range_defined(made, self.facts)
        assert known is not None
        self.ranges[iv] = known[1]
        self.learn((iv, *(value for stmt in walk(body) for value in (*stmt.defs(), *stmt.block_args()))))
        return self.loop(made, left)


class _Decided(LoopRewriter):
    """A block in which one comparison is known."""

    def __init__(self, atom: Scalar, held: bool) -> None:
        super().__init__()
        self.atom = atom
        self.held = Const(held, BOOL)

    def scalar(self, scalar: Scalar) -> Scalar:
        return scalar if isinstance(scalar, Value) else rebuilt(scalar, self.known)

    def known(self, scalar: Expr) -> Scalar:
        return self.held if scalar == self.atom else scalar

    def stmt(self, stmt: Stmt) -> None:
        """The statement, without arms that are never taken and what is empty then."""
        made = self.outside(stmt)
        known = None
        if isinstance(made, If | ComputeBlock):
            condition = made.condition if isinstance(made, If) else made.where
            known = constant_value(condition)
        if isinstance(made, If) and known is not None:
            self.emit(*self.block(made.then if known else made.otherwise))
            return
        if isinstance(made, ComputeBlock) and known is not None:
            if not known:
                return
            made = made if made.where == ALWAYS else made.replace(where=ALWAYS)
        inner = self.inside(made)
        emptied = stmt.blocks() and any(stmt.blocks()) and not any(inner.blocks())
        if not (emptied and isinstance(inner, Loop | If | ComputeBlock)):
            self.emit(inner)
