"""The plan of memory spaces: where every tile lives, and by what each consumer that wants it elsewhere is served.

A class of tied values that leaves a choice takes the space that costs the fewest cycles: the routes from its producers
and to its consumers, each weighted by the trips of the loops around it. Ties go to fewer bytes through DDR, then fewer
moves, then the space's name, so that the order of the program decides nothing. A space of a kind of core that nothing
else in the function needs is taken last. A consumer that wants a tile elsewhere is served by a move, or by a second
load where the tile came from DDR, the tensor is unchanged and that is cheaper.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from tilewright.analysis.footprint import fits
from tilewright.analysis.space_constraints import Constraints, Demand, Slot, loads
from tilewright.analysis.spaces import (
    DDR,
    Spaces,
    default_rounding,
    fixed_space,
    inherited_field,
    leads,
    nbytes_of,
    placing_attribute,
    read_tensor,
    same_place,
    sources_of,
    tile_operands,
)  # fmt: skip
from tilewright.analysis.uses import uses_of
from tilewright.ir.dtypes import DType
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import Let
from tilewright.ir.op import Effect, Op
from tilewright.ir.scalar import Value
from tilewright.ir.types import TileType
from tilewright.targets import Route, Target

IMPOSSIBLE = 1e15
"""Cycles that stand for a route that does not exist: such a choice loses against every possible one."""

UNFIT = 1e12
"""Cycles that stand for a tile that on its own is larger than the memory: a larger memory wins, if there is one."""

NARROW = (MemorySpace.BIAS, MemorySpace.LEFT_SCALE, MemorySpace.RIGHT_SCALE)
"""Memories for one operand of one kind of operation: nothing is kept there that was not sent there."""

Price = tuple[float, float, int]
"""Cycles, bytes through DDR, moves."""

NOTHING: Price = (0.0, 0.0, 0)


@dataclass(frozen=True, slots=True)
class Bridge:
    """How one consumer that wants `value` in `space` is served. `chain`, when not empty, is the load and the views
    that are made once more there; otherwise the tile is moved."""

    value: Value
    space: MemorySpace
    cycles: float
    chain: tuple[Let, ...] = ()

    def __str__(self) -> str:
        how = "load again" if self.chain else "move"
        cost = "no route" if self.cycles >= IMPOSSIBLE else f"{self.cycles:.0f} cycles"
        return f"{self.value.name} -> {self.space.value}: {how}, {cost}"


@dataclass(slots=True, eq=False)
class SpacePlan:
    """Where each tile of a function lives. Two plans are equal when they read the same."""

    function: str
    target: str
    homes: dict[Value, MemorySpace] = field(default_factory=dict[Value, MemorySpace])
    bridges: dict[Slot, Bridge] = field(default_factory=dict[Slot, Bridge])
    converted: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """results of conversions that a move does: what they are made of"""
    stored: dict[Slot, Value] = field(default_factory=dict[Slot, Value])
    """stores that convert by themselves: what they store in place of the converted tile"""
    dropped: set[Value] = field(default_factory=set[Value])
    """conversions that every reader does by itself"""
    choices: list[str] = field(default_factory=list[str])
    """the choices that were open, with what each would have cost"""

    def __str__(self) -> str:
        lines = [f"{value.name}: {space.value}" for value, space in self.homes.items() if value not in self.dropped]
        lines += [f"{made.name} is converted on the move from {source.name}" for made, source in self.converted.items()]
        lines += [f"{source.name} is converted as it is stored" for source in self.stored.values()]
        lines += [str(bridge) for bridge in self.bridges.values()] + self.choices
        return "\n".join([f"{self.function} on {self.target}", *("  " + line for line in dict.fromkeys(lines))])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SpacePlan) and str(self) == str(other)

    __hash__ = None  # type: ignore[assignment]


def plan_spaces(constraints: Constraints) -> SpacePlan:
    """Decides the space of every tile; see the module's docstring. Never fails: what has no route is left to the pass
    that makes the routes, which names producer and consumer."""
    return _Planner(constraints).run()


class _Planner:
    def __init__(self, constraints: Constraints) -> None:
        self.c = constraints
        self.target: Target = constraints.target
        self.plan = SpacePlan(constraints.function.name, self.target.name)
        self.chains: dict[Value, tuple[Let, ...]] = {}
        self.home: dict[Value, MemorySpace] = {}
        self.members: dict[Value, list[Value]] = {}
        self.reading: dict[Value, list[Demand]] = {}
        self.towards: dict[Value, list[Demand]] = {}
        self.cores: set[str] = set()
        """the kinds of core of the tiles that have no choice"""

    def run(self) -> SpacePlan:
        c = self.c
        for value in c.order:
            self.members.setdefault(c.root(value), []).append(value)
        for demand in c.demands:
            self.reading.setdefault(c.root(demand.value), []).append(demand)
            if demand.other is not None:
                self.towards.setdefault(c.root(demand.other), []).append(demand)
        for value in c.order:  # in order, so that the chain of a view finds that of its source
            self.chain_of(value)
        for root in self.members:
            fixed = c.fixed(root)
            if fixed is not None:
                self.home[root] = fixed
        self.cores = {core for space in self.home.values() if (core := self.target.core_of_space(space)) is not None}
        for root in reversed(list(self.members)):  # consumers first: demand flows backward
            if root not in self.home:
                self.home[root] = self.choose(root)
        self.plan.homes = {value: self.home[c.root(value)] for value in c.order}
        self.settle()
        return self.plan

    # --- choosing ---
    def choose(self, root: Value) -> MemorySpace:
        """The cheapest space for a class; the losers are kept for the explanation."""
        domain = self.c.domain(root)
        general = tuple(space for space in domain if space not in NARROW) or domain
        priced = sorted(
            ((self.price(root, space), *self.standing(root, space), space.value, space) for space in general),
            key=lambda entry: (self.is_another_core(entry[-1], entry[0]), *entry[:-1]),
        )
        best = priced[0][-1]
        possible = [(space.value, price[0]) for price, *_, space in priced if price[0] < UNFIT]
        if len(possible) > 1 and self.read(root):
            shown = ", ".join(f"{name} {cycles:.0f}" for name, cycles in possible)
            self.plan.choices.append(f"{self.members[root][0].name} in {best.value}: cycles {shown}")
        return best

    def is_another_core(self, space: MemorySpace, price: Price) -> int:
        """1 for a space that brings in a kind of core which nothing else here needs: two kinds are a kernel each, or
        wait for each other, which no cheaper route makes up for. 2 for one that is impossible."""
        core = self.target.core_of_space(space)
        return 2 if price[0] >= UNFIT else int(bool(self.cores) and core is not None and core not in self.cores)

    def read(self, root: Value) -> bool:
        return bool(self.reading.get(root) or self.towards.get(root))

    def standing(self, root: Value, space: MemorySpace) -> tuple[int, bool]:
        """Among roles of one memory: the one that most consumers name, then the first in the language's order."""
        unnamed = sum(1 for demand in self.reading.get(root, ()) if space not in self.wanted(demand, (root, space)))
        memory = self.target.memory(space).name
        return unnamed, self.target.roles_of(memory)[0] is not space

    def price(self, root: Value, space: MemorySpace) -> Price:
        total = NOTHING
        for value in self.members[root]:
            assert isinstance(value.type, TileType)
            if not self.fits(value.type, space):
                total = _plus(total, (UNFIT, 0.0, 0))
            total = _plus(total, _times(self.making(value, space), self.c.weight[value]))
        served: set[tuple[Value, MemorySpace]] = set()
        for demand in self.reading.get(root, ()):
            total = _plus(total, _times(self.onward(demand, root, space), demand.weight))
            total = _plus(total, _times(self.handing_on(demand, space), demand.weight))
            bridge = self.bridge_for(demand, space, trial=(root, space))
            if bridge is not None and (bridge.value, bridge.space) not in served:
                served.add((bridge.value, bridge.space))
                total = _plus(total, _times(self.moving(bridge, space), self.weight(demand)))
        for demand in self.towards.get(root, ()):
            source = self.home.get(self.c.root(demand.value))
            if source is not None and self.c.root(demand.value) is not root:
                total = _plus(total, _times(self.coming(demand, source, space), demand.weight))
        return total

    def coming(self, demand: Demand, source: MemorySpace, space: MemorySpace) -> Price:
        """What it costs that a value at `source` goes where it is wanted: moved there, or loaded there once more."""
        chain = self.chain_for(demand, space)
        moved = self.way(demand.value, source, space)
        return min(moved, self.way(chain[0].target, DDR, space)) if chain else moved

    def onward(self, demand: Demand, root: Value, space: MemorySpace) -> Price:
        """What a move that the program states costs from `space` to where its result lives, if that is decided."""
        if demand.kind != "route" or demand.other is None or self.c.root(demand.other) is root:
            return NOTHING
        there = self.home.get(self.c.root(demand.other))
        return NOTHING if there is None else self.way(demand.value, space, there)

    def handing_on(self, demand: Demand, space: MemorySpace) -> Price:
        """What a loop carries, or a branch hands out, may have to be copied where it is (a swap): a memory that has no
        way to itself does that by way of DDR."""
        if demand.kind != "same" or isinstance(demand.slot[0], Let) or self.target.edge(space, space) is not None:
            return NOTHING
        return _plus(self.way(demand.value, space, DDR), self.way(demand.value, DDR, space))

    def weight(self, demand: Demand) -> float:
        """A bridge is hoisted to where its value is made, so that it costs as often as that is made."""
        return min(demand.weight, self.c.weight[demand.value])

    def making(self, value: Value, space: MemorySpace) -> Price:
        """What it costs to have `value` made in `space`."""
        definition = self.c.definition.get(value)
        if definition is None or not isinstance(definition.value, Op):
            return NOTHING
        op = definition.value
        if read_tensor(op) is not None:
            return self.way(value, DDR, space)
        if op.converts:
            return self.converting(op, value, space)[0]
        return NOTHING

    def converting(self, op: Op, value: Value, space: MemorySpace) -> tuple[Price, bool]:
        """What a conversion costs when its result is in `space`, and whether the move there does it."""
        name, source = tile_operands(op)[0]
        at = self.home.get(self.c.root(source))
        own = fixed_space(op)
        folded = (
            None if at is None or not self.is_elsewhere(op, name, at) else self.folded(source, at, space, value.dtype)
        )
        if own is not None and space is not own:
            return (folded or (IMPOSSIBLE, 0.0, 0)), folded is not None
        if at is None or own is None:
            return NOTHING, False
        there, _, moves = min(self.way(source, at, own), self.loading(source, own))
        cast = self.target.vector_cycles("cast", _bytes(source), source.dtype)
        plain: Price = (there + cast, 0.0, moves + 1)
        return (folded, True) if folded is not None and folded < plain else (plain, False)

    def is_elsewhere(self, op: Op, name: str, at: MemorySpace) -> bool:
        source: Value = getattr(op, name)
        changes = op.infer().dtype is not source.dtype
        return changes and len(self.c.domain(source)) == 1 and at is not fixed_space(op) and default_rounding(op)

    def loading(self, value: Value, space: MemorySpace) -> Price:
        """What it costs to load `value` once more, in `space`."""
        chain = self.chain_of(value)
        return self.way(chain[0].target, DDR, space) if chain else (IMPOSSIBLE, 0.0, 1)

    def folded(self, source: Value, at: MemorySpace, space: MemorySpace, dtype: DType) -> Price | None:
        route = self.target.route(at, space, source.dtype, dtype, _bytes(source))
        return None if route is None or not route.hops else _price(route, _bytes(source))

    def way(self, value: Value, src: MemorySpace, dst: MemorySpace) -> Price:
        assert isinstance(value.type, TileType)
        if same_place(self.target, src, dst, value.type):
            return NOTHING
        if self.target.same_memory(src, dst):  # another layout in place
            edge = self.target.edge(src, dst)
            return (IMPOSSIBLE, 0.0, 1) if edge is None else (edge.cycles(_bytes(value)), 0.0, 1)
        route = self.target.route(src, dst, value.dtype, nbytes=_bytes(value))
        return (IMPOSSIBLE, 0.0, 1) if route is None else _price(route, _bytes(value))

    # --- serving consumers ---
    def bridge_for(
        self, demand: Demand, at: MemorySpace, trial: tuple[Value, MemorySpace] | None = None
    ) -> Bridge | None:
        """How `demand` is served when its value is in `at`; None when nothing is to be done."""
        wanted = self.wanted(demand, trial)
        value = demand.value
        assert isinstance(value.type, TileType)
        if not wanted or any(self.serves(demand, at, space) for space in wanted):
            return None
        options: list[tuple[Price, int, Bridge]] = []
        for rank, space in enumerate(wanted):
            moved = self.way(value, at, space)
            options.append((moved, rank, Bridge(value, space, moved[0])))
            chain = self.chain_for(demand, space)
            if chain:
                again = self.way(chain[0].target, DDR, space)
                options.append((again, rank, Bridge(value, space, again[0], chain)))
        return min(options, key=lambda option: (option[0][0], option[1], option[0]))[2]

    def serves(self, demand: Demand, at: MemorySpace, space: MemorySpace) -> bool:
        """Whether a tile in `at` is as good as one in `space`. Where paths join, both have one type, role included."""
        assert isinstance(demand.value.type, TileType)
        joins = demand.kind == "same" and not isinstance(demand.slot[0], Let)
        return at is space if joins else same_place(self.target, at, space, demand.value.type)

    def moving(self, bridge: Bridge, at: MemorySpace) -> Price:
        return (
            self.way(bridge.chain[0].target, DDR, bridge.space)
            if bridge.chain
            else self.way(bridge.value, at, bridge.space)
        )

    def wanted(self, demand: Demand, trial: tuple[Value, MemorySpace] | None) -> Spaces:
        """The spaces that satisfy the demand, preferred first; empty when any does, or when that is not decided yet."""
        if demand.kind == "spaces":
            return demand.spaces
        assert demand.other is not None
        root = self.c.root(demand.other)
        there = self.home.get(root) or (trial[1] if trial is not None and trial[0] is root else None)
        if there is None or demand.kind == "route":
            return ()
        assert isinstance(demand.value.type, TileType)
        if demand.kind == "same":
            return (there,)
        sources = sources_of(self.target, there, demand.value.type)
        return tuple(space for space in sources if not demand.spaces or space in demand.spaces) or sources

    def chain_for(self, demand: Demand, space: MemorySpace) -> tuple[Let, ...]:
        """The load, and the views of it, that give `demand.value` in `space` once more; empty when there are none or
        the tensor has been written since."""
        chain = self.chain_of(demand.value)
        if not chain:
            return ()
        load = chain[0]
        assert isinstance(load.value, Op) and isinstance(load.target.type, TileType)
        tensor = read_tensor(load.value)
        assert tensor is not None
        if self.c.consumed.get(tensor, 1 << 60) < self.c.position[demand.slot[0]]:
            return ()
        if not leads(self.target, DDR, space, load.target.type):
            return ()
        return chain if self.fits(load.target.type, space) else ()

    def fits(self, tile: TileType, space: MemorySpace) -> bool:
        if not all(isinstance(extent, int) for extent in tile.shape):
            return True
        return fits(TileType(tile.shape, tile.dtype, space), self.target)

    def chain_of(self, value: Value) -> tuple[Let, ...]:
        if value in self.chains:
            return self.chains[value]
        definition = self.c.definition.get(value)
        chain: tuple[Let, ...] = ()
        if definition is not None and isinstance(definition.value, Op):
            op = definition.value
            followed = inherited_field(op)
            if loads(op) and placing_attribute(op) is not None:
                chain = (definition,)
            elif followed is not None and followed == op.view_of and op.effect is Effect.PURE:
                before = self.chain_of(getattr(op, followed))
                chain = (*before, definition) if before and len(before) < 8 else ()
        self.chains[value] = chain
        return chain

    # --- writing it down ---
    def settle(self) -> None:
        """Bridges and folds, now that every home is known."""
        plan, c = self.plan, self.c
        plan.stored = dict(c.folds)
        uses = uses_of(c.function) if c.folds else {}
        plan.dropped = {
            value for value in c.order if value in uses and all((use.stmt, use.field) in c.folds for use in uses[value])
        }
        for value in c.order:
            definition = None if value in plan.dropped else c.definition.get(value)
            if definition is not None and isinstance(definition.value, Op) and definition.value.converts:
                if self.converting(definition.value, value, plan.homes[value])[1]:
                    plan.converted[value] = tile_operands(definition.value)[0][1]
        for demand in c.demands:
            stmt = demand.slot[0]
            if isinstance(stmt, Let) and (stmt.target in plan.converted or stmt.target in plan.dropped):
                continue
            bridge = self.bridge_for(demand, plan.homes[demand.value])
            if bridge is not None:
                plan.bridges[demand.slot] = bridge


def _bytes(value: Value) -> int:
    assert isinstance(value.type, TileType)
    return nbytes_of(value.type)


def _price(route: Route, nbytes: int) -> Price:
    through = sum(nbytes for hop in route.hops if hop.src is DDR or hop.dst is DDR)
    return route.cost, float(through), len(route.hops)


def _plus(a: Price, b: Price) -> Price:
    return min(a[0] + b[0], inf), a[1] + b[1], a[2] + b[2]


def _times(a: Price, weight: float) -> Price:
    return a[0] * weight, a[1] * weight, a[2]
