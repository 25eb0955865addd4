"""The statements of one block of an orchestration, and which may run before which.

A statement depends on those that make what it uses, and one that writes over a tensor depends on those that read the
version before. Groups of calls that become one call must leave an order: no way may lead out of a group and back."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush

from tilewright.analysis.views import creates
from tilewright.ir.function import Program
from tilewright.ir.nodes import Block, Call, Let, Stmt, walk
from tilewright.ir.op import Effect, Op
from tilewright.ir.scalar import Value
from tilewright.ir.types import TensorType

FAR = 256
"""Groups that are looked at on the way from one end of a join to the other."""


@dataclass(slots=True)
class Flow:
    """`before[n]`: statements that statement `n` depends on; `after[n]`: those that depend on it. `group[n]` is the
    group that it belongs to, `members` the statements of each group, in order."""

    block: Block
    before: list[set[int]]
    after: list[set[int]]
    group: list[int] = field(default_factory=list[int])
    members: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    weight: list[int] = field(default_factory=list[int])
    """how many of the statements before `n` do more than make room"""

    def between(self, a: int, b: int) -> int | None:
        """A statement that must run after one of the two groups and before the other, or that is too far to tell; None
        when the groups may be one."""
        inside = sorted({*self.members[a], *self.members[b]})
        span = self.weight[inside[-1] + 1] - self.weight[inside[0]]
        if span == len(inside):
            return None
        own, seen, todo = (
            {a, b},
            set[int](),
            [(n, n) for m in inside for n in self.after[m] if self.group[n] not in (a, b)],
        )
        while todo:
            at, origin = todo.pop()
            group = self.group[at]
            if group in seen:
                continue
            seen.add(group)
            if len(seen) > FAR:
                return origin
            for m in self.members[group]:
                for n in self.after[m]:
                    if self.group[n] in own:
                        return origin
                    todo.append((n, origin))
        return None

    def merge(self, a: int, b: int) -> int:
        """The two groups as one, which has the number of the first."""
        if a == b:
            return a
        for n in self.members[b]:
            self.group[n] = a
        self.members[a] = sorted(self.members[a] + self.members.pop(b))
        return a

    def order(self) -> list[int]:
        """The groups in an order in which they may run: each as late as its last statement stands."""
        waiting: dict[int, set[int]] = {
            g: {self.group[p] for n in members for p in self.before[n]} - {g} for g, members in self.members.items()
        }
        ready = [(self.members[g][-1], g) for g, deps in waiting.items() if not deps]
        ready.sort()
        readers: dict[int, list[int]] = {}
        for g, deps in waiting.items():
            for dep in deps:
                readers.setdefault(dep, []).append(g)
        found: list[int] = []
        while ready:
            _, g = heappop(ready)
            found.append(g)
            for other in readers.get(g, ()):
                waiting[other].discard(g)
                if not waiting[other]:
                    heappush(ready, (self.members[other][-1], other))
        assert len(found) == len(self.members), "groups wait for each other"
        return found


def flow_of(block: Block, program: Program) -> Flow:
    """The dependences in a block, its terminator left out. Linear in the uses."""
    body = block[:-1]
    found = Flow(body, [set() for _ in body], [set() for _ in body])
    made: dict[Value, int] = {}
    readers: dict[Value, list[int]] = {}
    weight, last = 0, None
    seen: dict[str, bool] = {}
    for n, stmt in enumerate(body):
        if _is_observable(stmt, program, seen):
            if last is not None:
                found.before[n].add(last)
            last = n
        used, written = _touched(stmt, program)
        for value in used:
            if value in made and made[value] != n:
                found.before[n].add(made[value])
        for value in written:
            found.before[n].update(m for m in readers.get(value, ()) if m != n)
        for value in used:
            readers.setdefault(value, []).append(n)
        for value in stmt.defs():
            made[value] = n
        found.weight.append(weight)
        weight += not makes_room(stmt)
        found.group.append(n)
        found.members[n] = [n]
    found.weight.append(weight)
    for n, deps in enumerate(found.before):
        for m in deps:
            found.after[m].add(n)
    return found


def _is_observable(stmt: Stmt, program: Program, seen: dict[str, bool]) -> bool:
    """Whether something inside must keep its place among its like, called functions included."""
    for inner in walk((stmt,)):
        if isinstance(inner, Let) and isinstance(inner.value, Op) and inner.value.effect is Effect.OBSERVABLE:
            return True
        if isinstance(inner, Call) and inner.callee in program.by_name:
            if inner.callee not in seen:
                seen[inner.callee] = False
                body = program.function(inner.callee).body
                seen[inner.callee] = any(_is_observable(s, program, seen) for s in body)
            if seen[inner.callee]:
                return True
    return False


def makes_room(stmt: Stmt) -> bool:
    """Whether a statement only makes room in DDR."""
    return isinstance(stmt, Let) and isinstance(stmt.value, Op) and creates(stmt.value)


def _touched(stmt: Stmt, program: Program) -> tuple[dict[Value, None], set[Value]]:
    """What a statement uses, inner blocks and types included, and what it may write over."""
    used: dict[Value, None] = {}
    written: set[Value] = set()
    for inner in walk((stmt,)):
        for value in inner.uses():
            used[value] = None
            used.update(dict.fromkeys(value.type.values()))
        for value in inner.defs():
            used.update(dict.fromkeys(value.type.values()))
        if isinstance(inner, Call) and inner.callee in program.by_name:
            params = program.function(inner.callee).params
            written.update(a for p, a in zip(params, inner.args, strict=True) if p.is_output and isinstance(a, Value))
        elif not isinstance(inner, Call):
            written.update(v for v in inner.uses() if isinstance(v.type, TensorType))
    return used, written
