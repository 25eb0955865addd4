"""The constraints under which tiles are placed: which values share a space, and who wants which value where.

Values that must agree are joined into classes by union-find: a view with what it views, the result of an accumulation
with its accumulator, a carried value with its loop's result. A loop's initial and yielded values and the values that
branches yield join too, unless their spaces exclude each other; then a move stands between them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tilewright.analysis.spaces import (
    DDR,
    Spaces,
    accepted,
    default_rounding,
    fixed_space,
    homes,
    inherited_field,
    is_transfer,
    on_chip,
    read_tensor,
    rearranges,
    same_place,
    stores_tile,
    tile_operands,
    unboxed,
    writable,
)
from tilewright.ir.function import Function
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import Block, For, If, Let, Scope, Stmt, Yield, result_of
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.storage import written_operand
from tilewright.ir.types import TensorType, TileType
from tilewright.targets import Target

Slot = tuple[Stmt, str | int]
"""Where a value is read: a statement, and the operand's field or the position among initial or yielded values."""

UNKNOWN_TRIPS = 16
"""How often a loop is taken to run when that is known only at run time (assumed)."""


@dataclass(frozen=True, slots=True)
class Demand:
    """`value` is read at `slot`. One of: in one of `spaces`; where `other` lives (``same``); in a space with an edge to
    where `other` lives (``edge``; one of `spaces`, if any are given); anywhere, to be taken to where `other` lives
    (``route``)."""

    slot: Slot
    value: Value
    weight: float
    kind: Literal["spaces", "same", "edge", "route"] = "spaces"
    spaces: Spaces = ()
    other: Value | None = None


@dataclass(slots=True)
class Constraints:
    """Everything that placement of one function has to respect. `order` lists tile values as they are defined."""

    function: Function
    target: Target
    order: list[Value] = field(default_factory=list[Value])
    weight: dict[Value, float] = field(default_factory=dict[Value, float])
    definition: dict[Value, Let] = field(default_factory=dict[Value, Let])
    demands: list[Demand] = field(default_factory=list[Demand])
    position: dict[Stmt, int] = field(default_factory=dict[Stmt, int])
    consumed: dict[Value, int] = field(default_factory=dict[Value, int])
    """position at which a tensor version is used up"""
    folds: dict[Slot, Value] = field(default_factory=dict[Slot, Value])
    """a store that converts by itself: the accumulator that it reads in place of the converted tile"""
    _parent: dict[Value, Value] = field(default_factory=dict[Value, Value])
    _domain: dict[Value, Spaces] = field(default_factory=dict[Value, Spaces])

    # --- classes ---
    def root(self, value: Value) -> Value:
        """The class of `value`, by its representative."""
        path: list[Value] = []
        while self._parent[value] is not value:
            path.append(value)
            value = self._parent[value]
        for passed in path:
            self._parent[passed] = value
        return value

    def domain(self, value: Value) -> Spaces:
        """The spaces that are open to the class of `value`."""
        return self._domain[self.root(value)]

    def fixed(self, value: Value) -> MemorySpace | None:
        """The one space that the class of `value` can be in, if there is just one."""
        domain = self.domain(value)
        return domain[0] if len(domain) == 1 else None

    def add(self, value: Value, domain: Spaces, weight: float) -> None:
        self._parent[value] = value
        self._domain[value] = domain
        self.weight[value] = weight
        self.order.append(value)

    def tie(self, a: Value, b: Value) -> bool:
        """Join the classes of `a` and `b` where a space is open to both; whether they are one now."""
        left, right = self.root(a), self.root(b)
        if left is right:
            return True
        common = tuple(space for space in self._domain[left] if space in self._domain[right])
        if not common:
            return False
        self._parent[right] = left
        self._domain[left] = common
        return True

    def narrow(self, value: Value, spaces: Spaces) -> None:
        """Limit the class of `value` to `spaces`, where that leaves it any."""
        root = self.root(value)
        self._domain[root] = tuple(s for s in self._domain[root] if s in spaces) or self._domain[root]


def constraints_of(function: Function, target: Target) -> Constraints:
    """The constraints of `function` on `target`, in one walk."""
    found = Constraints(function, target)
    _Collector(found).block(function.body, 1.0)
    return found


class _Collector:
    def __init__(self, constraints: Constraints) -> None:
        self.c = constraints
        self.target = constraints.target
        self.everywhere = on_chip(self.target)

    def block(self, block: Block, weight: float) -> None:
        for stmt in block:
            self.c.position[stmt] = len(self.c.position)
            match stmt:
                case Let(target=made, value=Op() as op):
                    self.consume(written_operand(op), stmt)
                    if isinstance(made.type, TileType):
                        self.result(stmt, made, op, made.type, weight)
                    self.operands(stmt, made, op, weight)
                case For():
                    self.loop(stmt, weight)
                case If() | Scope():
                    self.arms(stmt, weight)
                case _:
                    pass

    def consume(self, tensor: Scalar | None, stmt: Stmt) -> None:
        if isinstance(tensor, Value) and isinstance(tensor.type, TensorType):
            self.c.consumed[tensor] = self.c.position[stmt]

    # --- operations ---
    def result(self, stmt: Let, made: Value, op: Op, tile: TileType, weight: float) -> None:
        self.c.definition[made] = stmt
        followed = inherited_field(op)
        space = tile.space or fixed_space(op)
        wanted = accepted(op, followed, self.target) if followed is not None and followed == op.writes else ()
        if space is not None and wanted and not any(same_place(self.target, space, other, tile) for other in wanted):
            domain = wanted  # it only inherits where a tile is that it cannot update there: the tile has to come
        elif space is not None:
            domain: Spaces = (space, *self.folded_homes(op, tile)) if tile.space is None else (space,)
        elif followed is not None:
            domain = accepted(op, followed, self.target) or writable(op, tile, self.target) or self.everywhere
            if rearranges(op, tile):
                domain = unboxed(self.target, domain) or domain
        else:
            domain = homes(op, tile, self.target)
        self.c.add(made, domain, weight)

    def folded_homes(self, op: Op, tile: TileType) -> Spaces:
        """Where a conversion's result may be put when the move there does the conversion."""
        source = self.foldable(op)
        if source is None:
            return ()
        space, dtype = self.c.fixed(source), source.dtype
        assert space is not None
        own = fixed_space(op)
        reached = [s for s in self.everywhere if s is not own and self.target.route(space, s, dtype, tile.dtype)]
        return tuple(reached)

    def foldable(self, op: Op) -> Value | None:
        """The operand of a conversion that a move may do: it rounds as moves do, and its operand must be elsewhere
        than where the conversion reads."""
        tiles = tile_operands(op)
        if not op.converts or len(tiles) != 1 or not default_rounding(op):
            return None
        name, source = tiles[0]
        if op.infer().dtype is source.dtype:
            return None
        space = self.c.fixed(source)
        return source if space is not None and space not in accepted(op, name, self.target) else None

    def operands(self, stmt: Let, made: Value, op: Op, weight: float) -> None:
        stored, followed, tiled = stores_tile(op), inherited_field(op), isinstance(made.type, TileType)
        for name, value in tile_operands(op):
            slot: Slot = (stmt, name)
            spaces = accepted(op, name, self.target)
            if name == stored and self.fold_into_store(slot, op, value, spaces):
                continue
            if name == followed:
                self.c.tie(value, made)
                self.c.demands.append(Demand(slot, value, weight, "same", other=made))
            elif is_transfer(op):
                kind = "route" if moves_whole(op) else "edge"
                self.c.demands.append(Demand(slot, value, weight, kind, spaces, made))
            elif spaces:
                self.c.demands.append(Demand(slot, value, weight, spaces=spaces))
            elif followed is not None and tiled:
                self.c.demands.append(Demand(slot, value, weight, "edge", other=made))

    def fold_into_store(self, slot: Slot, op: Op, value: Value, spaces: Spaces) -> bool:
        """Whether the store can read what `value` was converted from, and convert on its way."""
        definition = self.c.definition.get(value)
        if definition is None or not isinstance(definition.value, Op):
            return False
        source = self.foldable(definition.value)
        if source is None:
            return False
        space = self.c.fixed(source)
        assert space is not None
        edge = self.target.edge(space, DDR)
        if space not in spaces or edge is None or not edge.carries(source.dtype, value.dtype):
            return False
        self.c.folds[slot] = source
        return True

    # --- structure ---
    def loop(self, stmt: For, weight: float) -> None:
        for init in stmt.inits:
            self.consume(init, stmt)
        trips = stmt.trip_count
        inside = weight * max(1, UNKNOWN_TRIPS if trips is None else trips)
        for arg, result in zip(stmt.iter_args, stmt.results, strict=True):
            if isinstance(arg.type, TileType):
                self.joint(arg, inside)
                self.joint(result, weight)
                self.c.tie(arg, result)
        self.block(stmt.body, inside)
        last = stmt.body[-1]
        assert isinstance(last, Yield)
        self.flow((last, last.values), stmt.iter_args, inside)
        self.flow((stmt, stmt.inits), stmt.iter_args, weight)
        self.copied(stmt.body, stmt.iter_args)

    def arms(self, stmt: If | Scope, weight: float) -> None:
        for result in stmt.defs():
            if isinstance(result.type, TileType):
                self.joint(result, weight)
        for block in stmt.blocks():
            self.block(block, weight)
        for block in stmt.blocks():
            self.flow((block[-1], result_of(block)), stmt.defs(), weight)
            self.copied(block, stmt.defs())

    def copied(self, block: Block, into: tuple[Value, ...]) -> None:
        """What a block hands over without having made it (a swap of carried values, a tile from outside) is copied
        into the buffer that waits for it: it lives, if it can, where such a copy exists."""
        made = {value for stmt in block for value in stmt.defs()}
        values = result_of(block)
        for value, other in zip(values, into, strict=True):
            if other in self.c.weight and value is not other and (value not in made or values.count(value) > 1):
                self.c.narrow(other, tuple(s for s in self.everywhere if self.target.edge(s, s) is not None))

    def joint(self, value: Value, weight: float) -> None:
        assert isinstance(value.type, TileType)
        space = value.type.space
        self.c.add(value, self.everywhere if space is None else (space,), weight)

    def flow(self, given: tuple[Stmt, tuple[Scalar, ...]], into: tuple[Value, ...], weight: float) -> None:
        """Values that become other values: they share a space where they can."""
        stmt, values = given
        for index, (value, other) in enumerate(zip(values, into, strict=True)):
            if isinstance(value, Value) and isinstance(value.type, TileType):
                self.c.tie(value, other)
                self.c.demands.append(Demand((stmt, index), value, weight, "same", other=other))


def moves_whole(op: Op) -> bool:
    """Whether a transfer takes the whole tile, so that it may be made of several hops."""
    return not any(getattr(op, f.name) is not None for f in op.fields if f.kind.value in ("scalar", "scalars"))


def loads(op: Op) -> bool:
    """Whether the op brings a tile from DDR to a place that an attribute names."""
    return read_tensor(op) is not None and op.result_space is not None
