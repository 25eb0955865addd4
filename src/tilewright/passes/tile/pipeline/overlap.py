"""Trips that cross between cores: which loops have them, and an order in which neighbouring trips overlap.

The two kinds of core of a cluster pass tiles back and forth within a trip, and each takes its statements in order. In
the order that was written a core waits for the other one's answer before it begins the next trip, although nothing of
that depends on it.

Before:  s = matmul(q, k)      p = exp(s)      o = matmul(p, v)              # trip 0: cube, vector, cube
         s_1 = matmul(q, k_1)  p_1 = exp(s_1)  o_1 = matmul(p_1, v_1)        # trip 1
After:   s = matmul(q, k)      s_1 = matmul(q, k_1)                          # step 0, cube
         p = exp(s)            p_1 = exp(s_1)                                # step 1, vector, beside s_1
         o = matmul(p, v)      o_1 = matmul(p_1, v_1)                        # step 2, cube, beside p_1

The step of a statement is the most crossings on a way to it: what waits for nothing comes first, and statements of one
step keep their order. What a trip carries to the next is such a way too, so a loop whose trips need each other from the
first statement to the last stays as it is. What crosses has a slot for each trip, since every copy makes its own tiles
and its own tensors in DDR.

Kept in order: what uses a value after what makes it; what touches a tensor, or the buffer of an accumulator, before and
after what overwrites it; what can be seen from outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.analysis.cores import core_of
from tilewright.ir.function import Function
from tilewright.ir.nodes import Block, Call, For, If, Let, LoopKind, Scope, Stmt, result_of
from tilewright.ir.op import Effect, Op, is_array
from tilewright.ir.scalar import Value
from tilewright.targets import Target


def crossing_loops(function: Function, target: Target) -> list[For]:
    """The plain loops whose trips pass something from one kind of core to another, innermost ones, in order."""
    if len(target.cores) < 2:
        return []
    steps = _Steps(function, target)
    found: list[For] = []

    def visit(block: Block) -> bool:
        """Whether a loop inside crosses."""
        inside = False
        for stmt in block:
            found_below = [visit(inner) for inner in stmt.blocks()]
            below = any(found_below)
            if isinstance(stmt, For) and not below and steps.cross(stmt.body):
                below = True
                if stmt.kind is LoopKind.SEQUENTIAL and not stmt.conditional and isinstance(stmt.step, int):
                    found.append(stmt)
            inside |= below
        return inside

    visit(function.body)
    return found


def overlapped(function: Function, target: Target) -> Function:
    """`function` with the bodies of its pipelined loops ordered by steps; itself where none of them crosses."""
    if len(target.cores) < 2:
        return function
    steps = _Steps(function, target)

    def visit(block: Block) -> Block:
        made = tuple(stmt.with_blocks(tuple(map(visit, stmt.blocks()))) for stmt in block)
        made = tuple(
            # Decided by the statements as they were: those inside keep their values, whatever their order.
            new.replace(body=tuple(new.body[index] for index in steps.order(old.body)))
            if isinstance(new, For) and isinstance(old, For) and old.kind is LoopKind.PIPELINE and steps.cross(old.body)
            else new
            for new, old in zip(made, block, strict=True)
        )
        return block if all(new is old for new, old in zip(made, block, strict=True)) else made

    return function.with_body(visit(function.body))


@dataclass(frozen=True, slots=True)
class _Step:
    """Where a statement stands: the crossings before it, and the kinds of core that it needs."""

    number: int = 0
    cores: frozenset[str] = frozenset()

    def before(self, cores: frozenset[str]) -> int:
        """The earliest step of what uses this on `cores`."""
        return self.number + bool(self.cores and cores and self.cores != cores)


_FIRST = _Step()


@dataclass(slots=True)
class _Uses:
    """What one statement does, blocks inside included. Storage is named by its first value."""

    values: tuple[Value, ...]
    storage: frozenset[Value]
    claimed: frozenset[Value]
    """storage that it overwrites"""
    cores: frozenset[str]
    observable: bool


class _Steps:
    """The steps of a function's statements, block by block."""

    def __init__(self, function: Function, target: Target) -> None:
        self.target = target
        self._parent: dict[Value, Value] = {}
        self._uses: dict[Stmt, _Uses] = {}
        for stmt in function.walk():
            for one, other in _shared(stmt):
                self._parent[self._storage(one)] = self._storage(other)
        for stmt in function.body:
            self._note(stmt)

    def cross(self, block: Block) -> bool:
        """Whether something of one kind of core waits for something of another kind within `block`."""
        return any(step.number for step in self._steps(block))

    def order(self, block: Block) -> list[int]:
        """The statements of `block` by their steps; its terminator last."""
        steps = self._steps(block)
        return [*sorted(range(len(steps)), key=lambda index: steps[index].number), len(steps)]

    def _steps(self, block: Block) -> list[_Step]:
        made: dict[Value, _Step] = {}
        touched: dict[Value, int] = {}
        """the last step that touches some storage"""
        claimed: dict[Value, int] = {}
        seen = 0
        found: list[_Step] = []
        for stmt in block[:-1]:
            uses = self._uses[stmt]
            sources = [made[value] for value in uses.values if value in made]
            number = max((source.before(uses.cores) for source in sources), default=0)
            number = max(number, *(claimed.get(one, 0) for one in uses.storage), 0)
            number = max(number, *(touched.get(one, 0) for one in uses.claimed), seen if uses.observable else 0)
            # What needs no core itself, a view or a number, stands for what it was made from.
            latest = max(sources, key=lambda source: source.number, default=_FIRST)
            step = _Step(number, uses.cores or latest.cores)
            found.append(step)
            made |= dict.fromkeys(stmt.defs(), step)
            touched |= {one: max(number, touched.get(one, 0)) for one in uses.storage}
            claimed |= {one: max(number, claimed.get(one, 0)) for one in uses.claimed}
            seen = max(seen, number) if uses.observable else seen
        return found

    def _storage(self, value: Value) -> Value:
        while value in self._parent and self._parent[value] is not value:
            value = self._parent[value]
        return value

    def _note(self, stmt: Stmt) -> _Uses:
        """Records what `stmt` and every statement inside it does."""
        inner = [self._note(each) for block in stmt.blocks() for each in block]
        mine = dict.fromkeys((*stmt.uses(), *(v for made in stmt.defs() for v in made.type.values())))
        values = (*mine, *(value for each in inner for value in each.values))
        arrays = (value for value in (*mine, *stmt.defs(), *stmt.block_args()) if is_array(value))
        core = core_of(stmt, self.target) if isinstance(stmt, Let) else None
        op = stmt.value if isinstance(stmt, Let) else None
        made = _Uses(
            tuple(dict.fromkeys(values)),
            frozenset(map(self._storage, arrays)).union(*(each.storage for each in inner)),
            frozenset(map(self._storage, _claims(stmt))).union(*(each.claimed for each in inner)),
            frozenset({core} if core is not None else ()).union(*(each.cores for each in inner)),
            isinstance(stmt, Call) or (isinstance(op, Op) and op.effect is Effect.OBSERVABLE)
            or any(each.observable for each in inner),
        )  # fmt: skip
        self._uses[stmt] = made
        return made


def _claims(stmt: Stmt) -> Iterator[Value]:
    """The arrays that `stmt` itself overwrites, or may."""
    match stmt:
        case Let(value=Op() as op) if op.writes is not None:
            yield from (value for value in (getattr(op, op.writes),) if isinstance(value, Value))
        case For():
            yield from (value for value in stmt.inits if isinstance(value, Value) and is_array(value))
        case Call():
            yield from (value for value in stmt.args if isinstance(value, Value) and is_array(value))
        case _:
            pass


def _shared(stmt: Stmt) -> Iterator[tuple[Value, Value]]:
    """The pairs of arrays that lie, for all that is known here, in one place."""
    pairs: list[tuple[object, object]] = []
    match stmt:
        case Let(value=Op() as op):
            pairs = [(stmt.target, getattr(op, name)) for name in (op.writes, op.view_of) if name is not None]
        case For():
            pairs = [*zip(stmt.iter_args, stmt.inits, strict=True), *zip(stmt.results, stmt.iter_args, strict=True)]
        case If() | Scope():
            pairs = [pair for block in stmt.blocks() for pair in zip(stmt.defs(), result_of(block), strict=False)]
        case _:
            pass
    for one, other in pairs:
        if isinstance(one, Value) and isinstance(other, Value) and is_array(one) and is_array(other):
            yield one, other
