"""Tiles that loops carry and change in place: which versions lie where the one before lay.

    for i, (t,) in pl.range(n, init_values=(start,)):
        t_1 = pl.tile.write(t, [i, 0], x)        # nobody reads t afterwards, and t_1 is what the next trip gets
        t_2 = pl.yield_(t_1)

A carried tile has one storage for all trips, which is alive as long as the loop. That a version dies within a trip is
therefore not seen from the storage; it is seen here, from the chain of versions: each is written over the one before,
no older one is read any more, and the last is what the loop hands on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.ir.function import Function
from tilewright.ir.loops import Index
from tilewright.ir.nodes import Block, For, Let, Scope, Stmt, Yield, walk
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.ir.types import TileType


@dataclass(slots=True)
class Carries:
    """`written`: results that are written over their operand. `passed`: carried values of inner loops that lie where
    they start."""

    written: set[Value] = field(default_factory=set[Value])
    passed: set[Value] = field(default_factory=set[Value])


def carried_in_place(function: Function) -> Carries:
    """The chains of all loops. Quadratic only in the depth of loops."""
    found = Carries()
    for stmt in function.walk():
        if not isinstance(stmt, For):
            continue
        for position, arg in enumerate(stmt.iter_args):
            if isinstance(arg.type, TileType) and arg not in found.passed:
                chain = _Chain(arg)
                if chain.through(stmt.body, position):
                    found.written |= chain.written
                    found.passed |= chain.passed
    return found


class _Chain:
    """The versions of one carried tile within a trip. `now`: the names of the last one."""

    def __init__(self, arg: Value) -> None:
        self.now = {arg}
        self.past: set[Value] = set()
        self.written: set[Value] = set()
        self.passed: set[Value] = set()

    def through(self, block: Block, position: int) -> bool:
        """Whether every statement lets the chain go on, and its end is what the trip hands on."""
        if not all(self.after(stmt) for stmt in block[:-1]):
            return False
        last = block[-1]
        if not isinstance(last, Yield) or last.values[position] not in self.now:
            return False
        others = [value for i, value in enumerate(last.values) if i != position]
        return not any(isinstance(value, Value) and value in self.now | self.past for value in others)

    def after(self, stmt: Stmt) -> bool:
        used = set(_uses(stmt))
        if used & self.past:
            return False
        if isinstance(stmt, Let) and isinstance(stmt.value, Op):
            return self.operation(stmt.target, stmt.value)
        if isinstance(stmt, For) and used & self.now:
            return self.loop(stmt)
        if isinstance(stmt, Scope):
            return not used & self.now
        return not any(
            isinstance(inner, Let) and isinstance(inner.value, Op) and _written(inner.value) in self.now
            for block in stmt.blocks()
            for inner in walk(block)
        )

    def operation(self, target: Value, op: Op) -> bool:
        reads = [value for _, value in op.operand_items()]
        if _looked_at(op) in self.now:  # it may be another name of the same bytes, or a copy: both are safe to count so
            self.now.add(target)
            return True
        if _written(op) not in self.now or not isinstance(target.type, TileType):
            return True
        if sum(value in self.now for value in reads) != 1:
            return False
        self.step(target)
        self.written.add(target)
        return True

    def loop(self, stmt: For) -> bool:
        """An inner loop that starts from the last version must carry it on in the same way."""
        positions = [i for i, init in enumerate(stmt.inits) if isinstance(init, Value) and init in self.now]
        inside = {value for inner in walk(stmt.body) for value in inner.uses()}
        if len(positions) != 1 or inside & self.now:
            return not positions
        inner = _Chain(stmt.iter_args[positions[0]])
        if not inner.through(stmt.body, positions[0]):
            return False
        self.passed |= inner.passed | {stmt.iter_args[positions[0]]}
        self.written |= inner.written
        self.step(stmt.results[positions[0]])
        return True

    def step(self, value: Value) -> None:
        self.past |= self.now
        self.now = {value}


def _looked_at(op: Op) -> Value | None:
    """What the operation may be a view of."""
    field = op.view_of or (op.loops.source if isinstance(op.loops, Index) else None)
    found = getattr(op, field) if field and op.writes is None else None
    return found if isinstance(found, Value) else None


def _written(op: Op) -> Value | None:
    found = getattr(op, op.writes) if op.writes else None
    return found if isinstance(found, Value) else None


def _uses(stmt: Stmt) -> list[Value]:
    return [*stmt.uses(), *(value for block in stmt.blocks() for inner in walk(block) for value in inner.uses())]
