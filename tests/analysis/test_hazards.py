"""Hazards against brute force: random placed programs are unrolled, and every pair of accesses compared.

A hazard list is right when whatever conflicts is ordered by it (together with the fact that an engine runs in order),
and when every entry of it about bytes on the chip does conflict in some execution."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import pairwise

import pytest
from building import Builder

from tilewright.analysis.hazards import Hazard, engine_of, hazards
from tilewright.execute.scalars import evaluate_scalar
from tilewright.ir.function import Function
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import Block, For, If, Let
from tilewright.ir.op import Op
from tilewright.ir.scalar import BinaryKind, Scalar, Value, binary
from tilewright.ir.storage import roots_of
from tilewright.ir.types import TileType
from tilewright.ops.elementwise import Add, Neg
from tilewright.ops.movement import Load, Store
from tilewright.passes.memory.assign_buffers import assign_buffers
from tilewright.passes.memory.place_buffers import place_buffers
from tilewright.passes.tile.infer_spaces import infer_spaces
from tilewright.passes.tile.legalize_layouts import legalize_layouts
from tilewright.passes.tile.legalize_moves import legalize_moves
from tilewright.targets import Target, load_target

VEC = MemorySpace.VEC
SHAPE = (8, 8)


@dataclass(frozen=True)
class Touch:
    """Bytes of a memory, or elements of a tensor, that one execution of a statement reads or writes."""

    place: object
    cells: frozenset[object]
    writes: bool

    def conflicts(self, other: Touch) -> bool:
        return self.place == other.place and (self.writes or other.writes) and bool(self.cells & other.cells)


@dataclass(frozen=True)
class Event:
    """One execution of a statement, in the trips `trips` of the loops around it."""

    stmt: Let
    engine: str
    touches: tuple[Touch, ...]
    trips: tuple[tuple[For, int], ...]


class Unrolled:
    """Executes the control flow of a function, branches as `choices` say, and records what each statement touches."""

    def __init__(self, function: Function, target: Target, choices: random.Random) -> None:
        self.target = target
        self.choices = choices
        self.roots = roots_of(function)
        self.env: dict[Value, int] = {}
        self.trips: list[tuple[For, int]] = []
        self.events: list[Event] = []
        self.block(function.body)

    def block(self, block: Block) -> None:
        for stmt in block:
            if isinstance(stmt, Let):
                self.let(stmt)
            elif isinstance(stmt, For):
                assert isinstance(stmt.start, int) and isinstance(stmt.stop, int) and isinstance(stmt.step, int)
                for trip in range(stmt.start, stmt.stop, stmt.step):
                    self.env[stmt.iv] = trip
                    self.trips.append((stmt, trip))
                    self.block(stmt.body)
                    self.trips.pop()
            elif isinstance(stmt, If):
                self.block(stmt.then if self.choices.random() < 0.5 else stmt.otherwise)

    def number(self, scalar: Scalar) -> int:
        if isinstance(scalar, int):
            return scalar
        return int(evaluate_scalar(scalar, self.env))

    def let(self, stmt: Let) -> None:
        engine = engine_of(stmt, self.target)
        op = stmt.value
        if engine is None or not isinstance(op, Op):
            return
        touches: list[Touch] = []
        for name, value in op.operand_items():
            if isinstance(value.type, TileType):
                touches.append(self.tile(value, False))
                continue
            for access in op.accesses():
                if access.field == name:
                    offsets, extents = [*map(self.number, access.offsets)], [*map(self.number, access.extents)]
                    rows = range(offsets[0], offsets[0] + extents[0])
                    columns = range(offsets[1], offsets[1] + extents[1])
                    cells: frozenset[object] = frozenset((r, c) for r in rows for c in columns)
                    touches.append(Touch(self.roots[value], cells, access.writes))
        if isinstance(stmt.target.type, TileType):
            touches.append(self.tile(stmt.target, True))
        self.events.append(Event(stmt, engine, tuple(touches), tuple(self.trips)))

    def tile(self, value: Value, writes: bool) -> Touch:
        kind = value.type
        assert isinstance(kind, TileType) and kind.space is not None and kind.memref is not None
        assert kind.memref.addr is not None and kind.memref.nbytes is not None
        cells = frozenset(range(kind.memref.addr, kind.memref.addr + kind.memref.nbytes, 32))
        return Touch(self.target.memory(kind.space).name, frozenset(cells), writes)


def conflict(a: Event, b: Event) -> bool:
    return any(x.conflicts(y) for x in a.touches for y in b.touches)


def applies(hazard: Hazard, before: Event, after: Event) -> bool:
    """Whether a hazard orders these two executions: in one trip of every common loop, or `distance` trips apart."""
    if hazard.before is not before.stmt or hazard.after is not after.stmt:
        return False
    if hazard.loop is None:
        shared = [(a, b) for (loop, a), (other, b) in zip(before.trips, after.trips, strict=False) if loop is other]
        return all(a == b for a, b in shared) or not shared
    for (loop, a), (other, b) in zip(before.trips, after.trips, strict=False):
        if loop is not other:
            return False
        if loop is hazard.loop:
            assert isinstance(loop.step, int)
            return b - a >= hazard.distance * loop.step
        if a != b:
            return False
    return False


def unordered(events: list[Event], found: list[Hazard]) -> tuple[Event, Event] | None:
    """The first pair that conflicts on two engines and that nothing orders; None when all are ordered."""
    count = len(events)
    reach = [0] * count
    """bit j of reach[i]: execution i is known to be done when j starts"""
    by_pair: dict[tuple[int, int], list[Hazard]] = {}
    for hazard in found:
        by_pair.setdefault((id(hazard.before), id(hazard.after)), []).append(hazard)
    edges: list[list[int]] = [[] for _ in events]
    for engine in {event.engine for event in events}:
        for a, b in pairwise([i for i, event in enumerate(events) if event.engine == engine]):
            edges[a].append(b)
    for j, after in enumerate(events):
        for i in range(j):
            listed = by_pair.get((id(events[i].stmt), id(after.stmt)), ())
            if any(applies(hazard, events[i], after) for hazard in listed):
                edges[i].append(j)
    for i in reversed(range(count)):
        for j in edges[i]:
            reach[i] |= reach[j] | 1 << j
    for j, after in enumerate(events):
        for i in range(j):
            if events[i].engine != after.engine and conflict(events[i], after) and not reach[i] >> j & 1:
                return events[i], after
    return None


class Drawing:
    """A random function over a few tiles and tensors of one shape, with loops and branches."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.builder = Builder()
        self.n = self.builder.index("n")
        self.inputs = [self.builder.tensor(f"a{i}", (32, 8)) for i in range(2)]
        self.out = self.builder.tensor("out", (32, 8), inout=True)
        self.count = 0
        self.tiles = [self.load(())]

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def offset(self, ivs: tuple[Value, ...]) -> Scalar:
        if ivs and self.random.random() < 0.7:
            return binary(BinaryKind.MUL, self.random.choice(ivs), 8)
        return self.random.choice((0, 8, 16))

    def load(self, ivs: tuple[Value, ...]) -> Value:
        source = self.random.choice([*self.inputs, self.out])
        return self.builder.let(self.name(), Load(source, (self.offset(ivs), 0), SHAPE, target_memory=VEC))

    def steps(self, depth: int, ivs: tuple[Value, ...]) -> None:
        for _ in range(self.random.randrange(2, 5)):
            choice = self.random.randrange(8 if depth < 2 else 6)
            if choice < 2:
                self.tiles.append(self.load(ivs))
            elif choice == 2:
                self.tiles.append(self.builder.let(self.name(), Neg(self.random.choice(self.tiles))))
            elif choice == 3:
                pair = self.random.choice(self.tiles), self.random.choice(self.tiles)
                self.tiles.append(self.builder.let(self.name(), Add(*pair)))
            elif choice < 6:
                tile = self.random.choice(self.tiles)
                self.out = self.builder.let(self.name(), Store(tile, (self.offset(ivs), 0), self.out))
            elif choice == 6:
                self.loop(depth, ivs)
            else:
                self.branch(depth, ivs)

    def loop(self, depth: int, ivs: tuple[Value, ...]) -> None:
        outer = list(self.tiles)
        carried = self.random.choice(self.tiles)

        def body(iv: Value, out: Value, tile: Value) -> tuple[Value, ...]:
            self.out = out
            self.tiles = [*outer, tile]
            self.steps(depth + 1, (*ivs, iv))
            return self.out, self.tiles[-1]

        self.out, tile = self.builder.loop(self.random.choice((2, 3)), (self.out, carried), body)
        self.tiles = [*outer, tile]

    def branch(self, depth: int, ivs: tuple[Value, ...]) -> None:
        outer, before = list(self.tiles), self.out

        def arm() -> tuple[Value, ...]:
            self.tiles, self.out = list(outer), before
            self.steps(depth + 1, ivs)
            return self.out, self.tiles[-1]

        self.out, tile = self.builder.branch(binary(BinaryKind.GT, self.n, 0), arm, arm)
        self.tiles = [*outer, tile]

    def function(self, target: Target) -> Function:
        self.steps(0, ())
        self.out = self.builder.let(self.name(), Store(self.tiles[-1], (0, 0), self.out))
        program = self.builder.program(self.out)
        for step in (infer_spaces, legalize_moves, legalize_layouts, assign_buffers, place_buffers):
            program = step(program, target)
        return program.main


TARGET = load_target("ascend910b").with_capacity(Vec=8192)


@pytest.mark.parametrize("seed", range(60))
def test_all_that_conflicts_is_ordered_and_all_that_is_listed_conflicts(seed: int) -> None:
    function = Drawing(seed).function(TARGET)
    found = hazards(function, TARGET)
    traces = [Unrolled(function, TARGET, random.Random(path)).events for path in range(40)]
    for events in traces[:8]:
        left = unordered(events, found)
        assert left is None, f"nothing orders {left[0].stmt} before {left[1].stmt}" if left else ""
    for hazard in found:
        if hazard.memory == "DDR":  # boxes are told apart by their bounds alone, not by the ranges of loop variables
            continue
        pairs = ((a, b) for events in traces for j, b in enumerate(events) for a in events[:j] if applies(hazard, a, b))
        assert any(conflict(a, b) for a, b in pairs), f"listed, and never a conflict: {hazard}"


def test_boxes_of_a_tensor_that_are_apart_do_not_wait() -> None:
    builder = Builder()
    a, out = builder.tensor("a", (32, 8)), builder.tensor("out", (32, 8), inout=True)
    first = builder.let("o1", Store(builder.load("x", a, SHAPE, VEC), (0, 0), out))
    again = builder.let("y", Load(first, (8, 0), SHAPE, target_memory=VEC))
    last = builder.let("o2", Store(again, (16, 0), first))
    program = builder.program(last)
    for step in (assign_buffers, place_buffers):
        program = step(program, TARGET)
    found = hazards(program.main, TARGET)
    assert all(hazard.memory != "DDR" for hazard in found)
    assert found


def test_a_tensor_that_is_read_where_it_was_written_waits() -> None:
    builder = Builder()
    a, out = builder.tensor("a", (32, 8)), builder.tensor("out", (32, 8), inout=True)
    first = builder.let("o1", Store(builder.load("x", a, SHAPE, VEC), (4, 0), out))
    again = builder.let("y", Load(first, (8, 0), SHAPE, target_memory=VEC))
    program = builder.program(builder.let("o2", Store(again, (16, 0), first)))
    for step in (assign_buffers, place_buffers):
        program = step(program, TARGET)
    crossing = [h for h in hazards(program.main, TARGET) if h.memory == "DDR"]
    assert [(h.before_engine, h.after_engine, h.kind) for h in crossing] == [("MTE3", "MTE2", "read after write")]
