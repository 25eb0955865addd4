"""What one launch of a function moves and costs, counted by walking its loops.

Trips and extents are constants in most kernels, since shapes are known when a kernel is compiled; then the counts are
exact, tails included. Where they are known at run time only, one trip or the largest extent is counted, and the
result says that it is not exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from tilewright.analysis.cost import Cost, cost_of, transfer_ends
from tilewright.analysis.footprint import footprint
from tilewright.execute.scalars import evaluate_scalar
from tilewright.ir.function import Function
from tilewright.ir.nodes import Block, For, If, Let, walk
from tilewright.ir.op import Access, Op
from tilewright.ir.scalar import Scalar, Value, values_in
from tilewright.ir.types import TensorType, TileType
from tilewright.targets import Target

WALKED = 20_000
"""Statements of one function that are walked trip by trip; past that, a loop's first trip stands for the others."""

Env = dict[Value, int]


@dataclass(slots=True)
class Moved:
    """One statement over one launch."""

    stmt: Let
    cost: Cost
    times: int = 0
    ddr_in: int = 0
    ddr_out: int = 0
    on_chip: int = 0

    @property
    def nbytes(self) -> int:
        return self.ddr_in + self.ddr_out or self.on_chip


@dataclass(slots=True)
class Traffic:
    """One function over one launch. `moves` has the statements that move data, in order."""

    moves: dict[Let, Moved] = field(default_factory=dict[Let, Moved])
    cycles: dict[str, float] = field(default_factory=dict[str, float])
    exact: bool = True

    @property
    def ddr_in(self) -> int:
        return sum(moved.ddr_in for moved in self.moves.values())

    @property
    def ddr_out(self) -> int:
        return sum(moved.ddr_out for moved in self.moves.values())


def traffic_of(function: Function, target: Target, known: Mapping[Value, int] | None = None) -> Traffic:
    """Bytes and cycles of one launch; `known` gives the values of scalar parameters, where they are known."""
    return _Counter(target).run(function, dict(known or {}))


class _Counter:
    def __init__(self, target: Target) -> None:
        self.target = target
        self.found = Traffic()
        self.costs: dict[Let, Cost] = {}
        self.walked = 0

    def run(self, function: Function, env: Env) -> Traffic:
        self.block(function.body, env, 1)
        return self.found

    def block(self, block: Block, env: Env, times: int) -> None:
        for stmt in block:
            self.walked += 1
            match stmt:
                case Let():
                    self.let(stmt, env, times)
                case For():
                    self.loop(stmt, env, times)
                case If():
                    self.branch(stmt, env, times)
                case _:
                    for inner in stmt.blocks():
                        self.block(inner, env, times)

    def loop(self, stmt: For, env: Env, times: int) -> None:
        bounds = [self.number(scalar, env) for scalar in (stmt.start, stmt.stop, stmt.step)]
        self.found.exact &= None not in bounds and not stmt.conditional
        if None in bounds or stmt.is_while:
            self.block(stmt.body, env, times)
            return
        start, stop, step = (bound or 0 for bound in bounds)
        trips = range(start, stop, step or 1)
        if self.is_regular(stmt):
            self.block(stmt.body, env, times * len(trips))
            return
        for done, iv in enumerate(trips):
            if self.walked > WALKED:
                self.found.exact = False
                self.block(stmt.body, {**env, stmt.iv: iv}, times * (len(trips) - done))
                return
            self.block(stmt.body, {**env, stmt.iv: iv}, times)

    def is_regular(self, stmt: For) -> bool:
        """Whether every trip moves as much: nothing inside but offsets depends on the loop variable."""
        depends = {stmt.iv}
        for inner in _all(stmt.body):
            if isinstance(inner, Let) and not isinstance(inner.value, Op):
                if not isinstance(inner.value, int) and depends & set(values_in(inner.value)):
                    depends.add(inner.target)
            elif isinstance(inner, Let) and isinstance(inner.value, Op):
                sizes = [extent for access in inner.value.accesses() for extent in access.extents]
                if any(depends & set(values_in(size)) for size in sizes if not isinstance(size, int)):
                    return False
            elif isinstance(inner, For | If) and depends & set(inner.uses()):
                return False
        return True

    def branch(self, stmt: If, env: Env, times: int) -> None:
        condition = self.number(stmt.condition, env)
        if condition is None:  # the longer arm cannot be told from here; both are counted
            self.found.exact = False
            for arm in stmt.blocks():
                self.block(arm, env, times)
        else:
            self.block(stmt.then if condition else stmt.otherwise, env, times)

    def let(self, stmt: Let, env: Env, times: int) -> None:
        op = stmt.value
        if not isinstance(op, Op):
            value = self.number(op, env)
            if value is not None:
                env[stmt.target] = value
            return
        cost = self.costs.get(stmt)
        if cost is None:
            cost = self.costs[stmt] = cost_of(op, stmt.target.type, self.target)
        if cost.cycles:
            self.found.cycles[cost.engine] = self.found.cycles.get(cost.engine, 0.0) + cost.cycles * times
        if op.view_of is None and transfer_ends(op, stmt.target.type) is not None:
            self.moved(stmt, op, cost, env, times)

    def moved(self, stmt: Let, op: Op, cost: Cost, env: Env, times: int) -> None:
        moved = self.found.moves.setdefault(stmt, Moved(stmt, cost))
        moved.times += times
        for access in op.accesses():
            kind = stmt.target.type if access.field is None else getattr(op, access.field).type
            if isinstance(kind, TensorType) and (access.writes or access.field != op.writes):
                nbytes = self.extents(access, kind, env) * kind.dtype.bits // 8
                if access.writes:
                    moved.ddr_out += nbytes * times
                else:
                    moved.ddr_in += nbytes * times
        if isinstance(stmt.target.type, TileType):
            moved.on_chip += footprint(stmt.target.type, self.target) * times

    def extents(self, access: Access, kind: TensorType, env: Env) -> int:
        found: list[int] = []
        for extent, limit in zip(access.extents, kind.shape, strict=True):
            value = self.number(extent, env)
            if value is None:
                self.found.exact = False
                value = limit if isinstance(limit, int) else 1
            found.append(max(0, value))
        return prod(found)

    def number(self, scalar: Scalar, env: Env) -> int | None:
        """The value of a scalar, where it is known."""
        if isinstance(scalar, int):
            return scalar
        if any(value not in env for value in values_in(scalar)):
            return None
        return int(evaluate_scalar(scalar, env))


def _all(block: Block) -> list[Let | For | If]:
    return [stmt for stmt in walk(block) if isinstance(stmt, Let | For | If)]
