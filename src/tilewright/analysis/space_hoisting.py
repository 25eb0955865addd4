"""Which bridges stand before a loop rather than in it: those of values that the loop does not change, as far as the
memory holds both them and all that the loop itself keeps there."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.analysis.footprint import footprint
from tilewright.analysis.space_plan import Bridge, SpacePlan
from tilewright.ir.function import Function
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import Block, For, Let, Yield
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.ir.types import TileType
from tilewright.targets import Target

Hoisted = dict[For, list[Bridge]]


def hoisted_bridges(plan: SpacePlan, function: Function, target: Target) -> Hoisted:
    """For each loop the bridges to make before it, in the order of their first consumers.

    A bridge goes before the outermost loop that leaves its value alone and whose body, every tile counted and no
    sharing assumed, still fits beside it (a pipelined body once per stage)."""
    walker = _Walker(plan, target)
    walker.block(function.body)
    return walker.place()


@dataclass(slots=True)
class _Loop:
    stmt: For
    held: dict[MemorySpace, int] = field(default_factory=dict[MemorySpace, int])
    wanted: dict[tuple[Value, MemorySpace], tuple[Bridge, int]] = field(
        default_factory=dict[tuple[Value, MemorySpace], tuple[Bridge, int]]
    )


class _Walker:
    def __init__(self, plan: SpacePlan, target: Target) -> None:
        self.plan = plan
        self.target = target
        self.stack: list[_Loop] = []
        self.depth: dict[Value, int] = {}
        self.requests: list[tuple[Bridge, tuple[_Loop, ...]]] = []

    def block(self, block: Block) -> None:
        for stmt in block:
            if isinstance(stmt, For):
                for index in range(len(stmt.inits)):
                    self.request(self.plan.bridges.get((stmt, index)))
                self.stack.append(_Loop(stmt))
                for arg in stmt.block_args():
                    self.define(arg)
                self.block(stmt.body)
                self.stack.pop()
            elif isinstance(stmt, Let):
                if isinstance(stmt.value, Op):
                    for name, _ in stmt.value.operand_items():
                        self.request(self.plan.bridges.get((stmt, name)))
            elif isinstance(stmt, Yield):
                for index in range(len(stmt.values)):
                    self.request(self.plan.bridges.get((stmt, index)))
            else:
                for inner in stmt.blocks():
                    self.block(inner)
            for value in stmt.defs():
                self.define(value)

    def define(self, value: Value) -> None:
        self.depth[value] = len(self.stack)
        space = self.plan.homes.get(value)
        if space is not None and isinstance(value.type, TileType):
            self.hold(space, self.bytes_of(value, space), 0)

    def hold(self, space: MemorySpace, nbytes: int, depth: int) -> None:
        factor = 1
        for loop in reversed(self.stack[depth:]):
            factor *= max(1, loop.stmt.stage)
            loop.held[space] = loop.held.get(space, 0) + nbytes * factor

    def bytes_of(self, value: Value, space: MemorySpace) -> int:
        tile = value.type
        assert isinstance(tile, TileType)
        if not all(isinstance(extent, int) for extent in tile.shape):
            return 0
        return footprint(TileType(tile.shape, tile.dtype, space), self.target)

    def request(self, bridge: Bridge | None) -> None:
        if bridge is None:
            return
        key, depth = (bridge.value, bridge.space), self.depth.get(bridge.value, 0)
        nbytes = self.bytes_of(*key)
        for loop in self.stack:
            if key not in loop.wanted:
                loop.wanted[key] = (bridge, nbytes)
                loop.held[bridge.space] = loop.held.get(bridge.space, 0) + nbytes
        if len(self.stack) > depth:
            self.requests.append((bridge, tuple(self.stack[depth:])))

    def place(self) -> Hoisted:
        found: Hoisted = {}
        done: set[tuple[For, Value, MemorySpace]] = set()
        for bridge, loops in self.requests:
            for loop in loops:
                key = (loop.stmt, bridge.value, bridge.space)
                if key in done:
                    break
                if loop.held[bridge.space] <= self.target.capacity(bridge.space):
                    found.setdefault(loop.stmt, []).append(bridge)
                    done.add(key)
                    break
        return found
