"""One work item's share of a launch, on a core of its own: statements are issued in order and run late.

Issuing a statement decides everything that scalars decide: which elements it touches, where they lie, what it waits
for. It runs when something that waits for it does, when a scalar that it makes is needed, or when the block ends; so
data arrives as late as the order of events allows, and engines overtake each other wherever nothing orders them.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilewright.analysis.cores import core_of
from tilewright.errors import MemoryFault, OutOfBoundsError, TilewrightError, VerifyError
from tilewright.execute.instructions import Code, Instruction
from tilewright.execute.interpreter import Data, Environment, Interpreter
from tilewright.execute.memory.clocks import Event, Ledger, Shadow
from tilewright.execute.memory.memory import Box, Place
from tilewright.execute.memory.places import Places, check_pad, inside, same_elements
from tilewright.ir import nodes
from tilewright.ir.layout import Pad
from tilewright.ir.loops import Contract
from tilewright.ir.nodes import For, If, Let, LoopKind, Stmt
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import ScalarType, TensorType, TileType, Type

MOST_PENDING = 512
"""Events that may wait at once; past that the oldest run."""


@dataclass(slots=True)
class Work:
    """What an event has to do, all of it known but the data."""

    env: Environment
    tiles: list[tuple[str, Value, Place, list[Box]]] = field(default_factory=list[tuple[str, Value, Place, list[Box]]])
    """operands by field, and the boxes that are read of each"""
    scratch: list[tuple[Value, Place]] = field(default_factory=list[tuple[Value, Place]])
    tensors: list[tuple[Value, Data, Box, bool]] = field(default_factory=list[tuple[Value, Data, Box, bool]])
    """boxes of DDR, and whether they are written"""
    result: Place | None = None
    boxes: list[Box] | None = None
    """of the result, what is written; None: all that it occupies"""


class Block:
    """Executes `code` as block `number` of `blocks`."""

    def __init__(
        self,
        interpreter: Interpreter,
        code: Code,
        ledger: Ledger,
        shadows: dict[int, Shadow],
        turn: tuple[int, int],
        rng: random.Random,
    ) -> None:
        self.interpreter = interpreter
        self.code = code
        self.ledger = ledger
        self.shadows = shadows
        self.number, self.blocks = turn
        self.rng = rng
        self.eager = rng.choice((0.0, 0.0, 0.3, 1.0))
        self.env: Environment = {}
        self.places = Places(code.function, code.target, interpreter, ledger)
        self.engines: dict[tuple[str | None, str], int] = {}
        """engines of each kind of core: those of two cores have a name in common, and no order"""
        for instruction in code.listed:
            self.engines.setdefault(self.engine_of(instruction), len(self.engines))
        self.turns = [0] * len(self.engines)
        self.busy: list[Event | None] = [None] * len(self.engines)
        self.last: list[Event | None] = [None] * len(code.listed)
        self.begun = [0] * (len(code.loops) + 1)
        self.slots: list[Event | None] = [None] * code.slots
        self.pending: deque[Event] = deque()
        self.trip: list[tuple[str, int]] = []

    def run(self, env: Environment) -> tuple[Any, ...]:
        """Everything, to the last event; returns what the function returns."""
        self.env = env
        self.begun[0] = len(self.ledger.events)
        results = self.block(self.code.function.body)
        self.drain()
        return results

    # --- statements ---
    def block(self, block: nodes.Block) -> tuple[Any, ...]:
        for stmt in block:
            try:
                if isinstance(stmt, Let):
                    self.let(stmt)
                elif isinstance(stmt, nodes.Yield):
                    return self.values(stmt.values)
                else:
                    self.structured(stmt)
            except TilewrightError as error:
                raise error.at(stmt.span) from None
        raise VerifyError("a block without a terminator")

    def values(self, scalars: tuple[Scalar, ...]) -> tuple[Any, ...]:
        return tuple(self.interpreter.scalar(scalar, self.env) for scalar in scalars)

    def structured(self, stmt: Stmt) -> None:
        match stmt:
            case For():
                self.hand(stmt.results, self.loop(stmt))
            case If():
                taken = stmt.then if self.interpreter.scalar(stmt.condition, self.env) else stmt.otherwise
                self.hand(stmt.results, self.block(taken))
            case nodes.Scope():
                self.hand(stmt.results, self.block(stmt.body))
            case _:
                raise VerifyError("a function of tiles calls nothing", span=stmt.span)

    def loop(self, stmt: For) -> tuple[Any, ...]:
        start, stop, step = (int(bound) for bound in self.values((stmt.start, stmt.stop, stmt.step)))
        if step == 0:
            raise OutOfBoundsError("a loop's step is 0", span=stmt.span)
        trips: Sequence[int] = range(start, stop, step)
        if stmt in self.code.items.loops:
            trips = trips[self.number :: self.blocks]
        if stmt.kind is LoopKind.PARALLEL:
            trips = self.rng.sample(trips, len(trips))
        number, begin = self.code.loops[stmt], len(self.ledger.events)
        memories = [
            (memory, deque[Event | None](maxlen=memory.distance)) for memory in self.code.memories.get(stmt, ())
        ]
        carried = self.values(stmt.inits)
        for trip in trips:
            if stmt.conditional and not carried[0]:
                break
            self.env[stmt.iv] = trip
            self.hand(stmt.iter_args, carried)
            self.begun[number] = len(self.ledger.events)
            for memory, history in memories:
                before = self.last[memory.before]
                history.append(before if before is not None and before.number >= begin else None)
                self.slots[memory.slot] = history[0] if len(history) == memory.distance else None
            self.trip.append((stmt.iv.name, trip))
            carried = self.block(stmt.body)
            self.trip.pop()
        return carried

    def hand(self, targets: tuple[Value, ...], given: tuple[Any, ...]) -> None:
        """`targets` become what was given: nothing is copied where paths join, so it must lie there already."""
        for target, value in zip(targets, given, strict=True):
            if isinstance(value, Place) and isinstance(target.type, TileType):
                wanted = self.places.place(target, target.type, self.env)
                if wanted.address is not None and not same_elements(wanted, value):
                    raise MemoryFault(
                        f"what is handed on as {target.name!r} lies elsewhere",
                        required=f"{target.name!r} at byte {wanted.address} of {wanted.memory.name}, {target.type!r}",
                        found=f"a tile at byte {value.address} of {value.memory.name}, {value.kind!r}",
                        help="copy it into the buffer of what takes it over",
                    )
                value = replace(value, kind=target.type)
            self.env[target] = value

    # --- issuing ---
    def let(self, stmt: Let) -> None:
        op = stmt.value
        if not isinstance(op, Op):
            self.env[stmt.target] = self.interpreter.scalar(op, self.env)
            return
        instruction = self.code.instructions.get(stmt)
        if instruction is not None:
            self.issue(instruction)
        elif isinstance(stmt.target.type, TileType):
            self.env[stmt.target] = self.places.view(stmt, op, self.env)
        else:  # a tensor made or looked at as a whole: nothing may be on its way
            self.drain()
            self.env[stmt.target] = self.interpreter.op(op, stmt.target.type, self.env)

    def issue(self, instruction: Instruction) -> None:
        stmt, op = instruction.stmt, instruction.op
        event = self.event(instruction)
        work = event.work = self.prepare(event, op, stmt.target)
        result: Any = None
        if work.result is not None:
            result = work.result
        elif isinstance(stmt.target.type, TensorType):
            result = self.env[getattr(op, op.writes or "")]
        self.pending.append(event)
        if isinstance(stmt.target.type, ScalarType):
            result = self.force(event)
        self.env[stmt.target] = result
        if self.eager and self.rng.random() < self.eager:
            self.force(event)
        while len(self.pending) > MOST_PENDING:
            self.force(self.pending.popleft())

    def engine_of(self, instruction: Instruction) -> tuple[str | None, str]:
        return core_of(instruction.stmt, self.code.target), instruction.engine

    def event(self, instruction: Instruction) -> Event:
        """The next event of the instruction's engine, after what its hazards name."""
        engine = self.engines[self.engine_of(instruction)]
        waits = [self.busy[engine]]
        for wait in instruction.waits:
            if wait.slot is not None:
                waits.append(self.slots[wait.slot])
            else:
                at = self.last[wait.before]
                waits.append(at if at is not None and at.number >= self.begun[wait.common] else None)
        after = tuple(dict.fromkeys(event for event in waits if event is not None))
        self.turns[engine] += 1
        clock = [0] * len(self.engines)
        for before in after:
            clock = [max(pair) for pair in zip(clock, before.clock, strict=True)]
        clock[engine] = self.turns[engine]
        event = Event(
            len(self.ledger.events), instruction, self.number, engine, self.turns[engine], tuple(clock), after,
            tuple(self.trip),
        )  # fmt: skip
        self.ledger.events.append(event)
        self.busy[engine] = self.last[instruction.number] = event
        return event

    def prepare(self, event: Event, op: Op, made: Value) -> Work:
        work = Work(self.scalars_of(op, made.type))
        read, written = (self.places.boxes(op, self.env, writes=writes) for writes in (False, True))
        for name, value in op.operand_items():
            given = self.env[value]
            shape = given.index.shape if isinstance(given, Place) else given.array.shape
            mine = [box for field_name, box in read if field_name == name]
            changed = [box for field_name, box in written if field_name == name]
            for box in (*mine, *changed):
                inside(op, name, box, shape)
            if isinstance(given, Data):
                work.env[value] = given
                work.tensors += [(value, given, box, False) for box in mine]
                work.tensors += [(value, given, box, True) for box in changed]
                event.atomic |= bool(mine and changed)
            elif op.field(name).scratch:
                work.scratch.append((value, given))
            else:
                work.tiles.append((name, value, given, mine))
        if isinstance(made.type, TileType):
            work.result, work.boxes = self.result(event, op, made, [box for n, box in written if n == op.writes])
            _apart(event, op, work)
            if isinstance(op.loops, Contract):
                for place in (work.result, *(place for _, _, place, _ in work.tiles)):
                    self.places.check_packed(place, self.env)
        return work

    def result(self, event: Event, op: Op, made: Value, written: list[Box]) -> tuple[Place, list[Box] | None]:
        """Where the result goes, and which boxes of it are written (None: all that it occupies)."""
        assert isinstance(made.type, TileType)
        own = self.places.place(made, made.type, self.env)
        check_pad(op, made, made.type)
        if op.writes is None:
            padded = made.type.view.pad is not Pad.NULL
            valid = self.interpreter.extents(made.type.valid, self.env)
            box = tuple(slice(0, extent) for extent in (made.type.static_shape if padded else valid))
            return own.made(event.number, box), None
        old: Place = self.env[getattr(op, op.writes)]
        if own.address is not None and (own.address != old.address or not (old.part or same_elements(own, old))):
            raise MemoryFault(
                f"{made.name!r} is the next version of {getattr(op, op.writes).name!r} and lies elsewhere",
                required=f"byte {old.address} of {old.memory.name}", found=f"byte {own.address} of {own.memory.name}",
            )  # fmt: skip
        if own.packed:  # bits of one byte are written together
            written = [tuple(slice(0, extent) for extent in old.index.shape)]
        new = replace(old, kind=made.type)
        for box in written:
            new = new.made(event.number, box)
        return new, written

    def scalars_of(self, op: Op, kind: Type) -> Environment:
        """The scalars that the operation depends on, as they are now."""
        mentioned = [*op.uses(), *kind.values()]
        for _, value in op.operand_items():
            mentioned += value.type.values()
        return {value: self.env[value] for value in mentioned if isinstance(value.type, ScalarType)}

    # --- running ---
    def drain(self) -> None:
        """Run everything that was issued, engines in any order that theirs allows."""
        left = [event for event in self.pending if event.work is not None]
        self.rng.shuffle(left)
        for event in left:
            self.force(event)
        self.pending.clear()

    def force(self, event: Event) -> Any:
        """Run `event` and what it comes after; returns the scalar that it makes, if any."""
        stack, result = [event], None
        while stack:
            top = stack[-1]
            waiting = [before for before in top.after if before.work is not None]
            if top.work is None:
                stack.pop()
            elif waiting:
                stack.extend(waiting)
            else:
                stack.pop()
                try:
                    result = self.execute(top)
                except TilewrightError as error:
                    raise error.at(top.instruction.stmt.span) from None
        return result

    def execute(self, event: Event) -> Any:
        work: Work = event.work
        event.work, event.after = None, ()
        op, made, env = event.instruction.op, event.instruction.stmt.target, work.env
        for _, value, place, boxes in work.tiles:
            for box in boxes:
                place.memory.shadow.read(place.bytes_of(box), event, value)
                place.check_held(box, event, value, self.ledger)
            env[value] = place.gather()
        for value, place in work.scratch:
            self.overwrite(place, event, value)
            env[value] = place.gather()
        for value, data, box, writes in work.tensors:
            shadow = self.shadows.get(id(data.array))
            if shadow is not None:
                (shadow.write if writes else shadow.read)(box, event, value)
        result = self.interpreter.op(op, made.type, env)
        if work.result is None:
            return result
        if work.boxes is None:
            self.overwrite(work.result, event, made)
            work.result.scatter(result, tuple(slice(0, extent) for extent in work.result.index.shape))
        for box in work.boxes or ():
            work.result.memory.shadow.write(work.result.bytes_of(box), event, made)
            work.result.scatter(result, box)
        return None

    @staticmethod
    def overwrite(place: Place, event: Event, value: Value) -> None:
        """All that `place` occupies is lost."""
        where = place.span() if place.address is not None else slice(0, place.nbytes)
        place.memory.shadow.write(where, event, value)
        place.clear(where)


def _apart(event: Event, op: Op, work: Work) -> None:
    """Raises `MemoryFault` when the result, or scratch, lies over an operand that the operation still reads."""
    result = work.result
    assert result is not None
    if result.address is None:
        return
    targets = [(place.span(), place) for _, place in work.scratch if place.address is not None]
    if work.boxes is None:
        targets.append((result.span(), result))
    written = [result.bytes_of(box) for box in work.boxes or ()]
    for value, place in work.scratch:
        if place.memory is result.memory and _meet(place.span(), result.span()):
            raise MemoryFault(
                f"{op.qualified_name} needs {value.name!r} beside its result, and they overlap",
                required=f"other bytes than {result.span().start} to {result.span().stop} of {result.memory.name}",
                found=f"bytes {place.span().start} to {place.span().stop}",
            )
    for name, value, place, boxes in work.tiles:
        held = name in op.not_aliased or (name != op.writes and not op.inplace)
        for box in boxes:
            where = place.bytes_of(box)
            over = any(
                span.start < int(where.max()) + 1 and int(where.min()) < span.stop
                and bool(((where >= span.start) & (where < span.stop)).any())
                and (held or target is not result or not _in_step(place, result))
                for span, target in targets if target.memory is place.memory
            )  # fmt: skip
            over |= (
                name != op.writes and result.memory is place.memory and any(np.isin(where, w).any() for w in written)
            )
            if over:
                raise MemoryFault(
                    f"{op.qualified_name} writes over {value.name!r}, which it still reads",
                    span=event.instruction.stmt.span,
                    required="a result apart from its operands, or one that lies exactly as an operand it may replace",
                    found=f"{event.describe()} over byte {place.address} of {place.memory.name} and what follows",
                )  # fmt: skip


def _meet(a: slice, b: slice) -> bool:
    return a.start < b.stop and b.start < a.stop


def _in_step(operand: Place, result: Place) -> bool:
    """Whether each element of the result lies where the same element of the operand does."""
    return (
        operand.itemsize == result.itemsize
        and operand.packed == result.packed
        and operand.index.shape == result.index.shape
        and bool((operand.index == result.index).all())
    )
