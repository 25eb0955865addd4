"""One block of a launch, executed trip by trip: which instructions run in which order, at which price, after which.

Loop variables have their values and so have the scalars that follow from them and from the arguments. What is read
from a tensor is not known; where a loop or a branch depends on it, something is assumed, and said.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from tilewright.errors import UnsupportedError
from tilewright.execute.instructions import Code, Env, Instruction, Prices, number_of
from tilewright.ir.nodes import Block, For, If, Let, Yield, result_of
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import ScalarType

MOST_INSTRUCTIONS = 5_000_000
"""Executions of instructions in one simulation, all blocks together."""
MOST_TRIPS = 1_000_000
"""Trips of one loop after which its condition counts as not known."""


@dataclass(slots=True)
class Stream:
    """The instructions of one block in order. Entry i is instruction `steps[i]` at price `prices[i]`; its engine did
    entry `previous[i]` before it (-1: nothing), and it waits for the entries `waits[i]` of other engines."""

    steps: list[int] = field(default_factory=list[int])
    prices: list[int] = field(default_factory=list[int])
    previous: list[int] = field(default_factory=list[int])
    waits: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])

    @property
    def signature(self) -> tuple[object, ...]:
        """Equal for blocks that do the same work in the same order."""
        return tuple(self.steps), tuple(self.prices), tuple(self.waits)


class Unfolder:
    """Makes the streams of one simulation, and collects what had to be assumed."""

    def __init__(self, prices: Prices) -> None:
        self.table = prices
        self.assumed: dict[str, None] = {}
        self.left = MOST_INSTRUCTIONS

    def stream(self, code: Code, env: Env, block: int, blocks: int) -> Stream:
        """What block `block` of `blocks` executes. Raises `UnsupportedError` past `MOST_INSTRUCTIONS`."""
        walk = _Walk(self, code, dict(env), block, blocks)
        walk.block(code.function.body)
        self.left -= len(walk.stream.steps)
        return walk.stream

    def blocks(self, code: Code, env: Env) -> int:
        """How many blocks a launch has: no more than there are cores, or items."""
        counts = [len(self.trips(loop, env)) for loop in code.items.loops]
        return max(1, min(max(counts), code.items.cores)) if counts else 1

    def trips(self, stmt: For, env: Env) -> range:
        """The values of the loop variable; where they are not known, of one trip."""
        start, stop, step = (number_of(bound, env) for bound in (stmt.start, stmt.stop, stmt.step))
        if start is None or stop is None or not step:
            self.assume(stmt.span.line, f"how often the loop over {stmt.iv.name} runs is not known: one trip")
            return range(start or 0, (start or 0) + 1)
        return range(start, stop, step)

    def ends(self, stmt: For, env: Env, done: int) -> bool:
        """Whether a loop's condition ends it after `done` trips. One that is not known holds for all trips of a
        counted loop, and for one of a `while`."""
        if not stmt.conditional:
            return False
        known = number_of(stmt.iter_args[0], env)
        if known is not None and done < MOST_TRIPS:
            return not known
        trips = "one trip" if stmt.is_while else "all of its trips"
        self.assume(stmt.span.line, f"how often the loop runs depends on a condition that is not known: {trips}")
        return stmt.is_while and done > 0

    def assume(self, line: int, what: str) -> None:
        self.assumed[f"line {line}: {what}" if line else what] = None


class _Walk:
    def __init__(self, owner: Unfolder, code: Code, env: Env, block: int, blocks: int) -> None:
        self.owner = owner
        self.code = code
        self.env = env
        self.turn = (block, blocks)
        self.stream = Stream()
        self.last = [-1] * len(code.listed)
        """where each instruction ran last"""
        self.begun = [0] * (len(code.loops) + 1)
        """the entry at which the present trip of each loop began"""
        self.slots = [-1] * code.slots
        self.busy: dict[str, int] = {}
        """the last entry of each engine"""

    def block(self, block: Block) -> None:
        instructions = self.code.instructions
        for stmt in block:
            if isinstance(stmt, Let):
                instruction = instructions.get(stmt)
                if instruction is not None:
                    self.execute(instruction)
                elif not isinstance(stmt.value, Op):
                    self.set(stmt.target, stmt.value)
            elif isinstance(stmt, For):
                self.loop(stmt)
            elif isinstance(stmt, If):
                self.branch(stmt)
            elif not isinstance(stmt, Yield):
                for inner in stmt.blocks():
                    self.block(inner)

    def execute(self, instruction: Instruction) -> None:
        stream, last, number = self.stream, self.last, instruction.number
        entry = len(stream.steps)
        if entry > self.owner.left:
            raise UnsupportedError(
                f"the simulation has more than {MOST_INSTRUCTIONS:,} instructions",
                span=instruction.stmt.span, help="simulate smaller arguments",
            )  # fmt: skip
        waits: list[int] = []
        for wait in instruction.waits:
            if wait.slot is not None:
                at = self.slots[wait.slot]
                if at >= 0:
                    waits.append(at)
            else:
                at = last[wait.before]
                if at >= self.begun[wait.common]:
                    waits.append(at)
        stream.steps.append(number)
        stream.waits.append(tuple(waits))
        stream.previous.append(self.busy.get(instruction.engine, -1))
        price = instruction.priced.get(()) if not instruction.sizes else None
        stream.prices.append(self.owner.table.number(instruction, self.env) if price is None else price)
        self.busy[instruction.engine] = entry
        last[number] = entry

    def loop(self, stmt: For) -> None:
        trips = self.owner.trips(stmt, self.env)
        if stmt in self.code.items.loops:
            block, blocks = self.turn
            trips = trips[block::blocks]
        number, begin = self.code.loops[stmt], len(self.stream.steps)
        memories = [(memory, deque[int](maxlen=memory.distance)) for memory in self.code.memories.get(stmt, ())]
        carried = self.scalars(stmt.iter_args, stmt.inits)
        for done, trip in enumerate(trips):
            self.hand_on(carried)
            if self.owner.ends(stmt, self.env, done):
                break
            self.env[stmt.iv] = trip
            self.begun[number] = len(self.stream.steps)
            for memory, history in memories:
                history.append(at if (at := self.last[memory.before]) >= begin else -1)
                self.slots[memory.slot] = history[0] if len(history) == memory.distance else -1
            self.block(stmt.body)
            carried = self.scalars(stmt.iter_args, result_of(stmt.body))
        self.hand_on([(result, value) for result, (_, value) in zip(_scalar(stmt.results), carried, strict=True)])

    def branch(self, stmt: If) -> None:
        condition = number_of(stmt.condition, self.env)
        if condition is None:
            condition = self.weight(stmt.then) >= self.weight(stmt.otherwise)
            self.owner.assume(stmt.span.line, "which arm the branch takes is not known: the one that costs more")
        arm = stmt.then if condition else stmt.otherwise
        self.block(arm)
        self.hand_on(self.scalars(stmt.results, result_of(arm)))

    def weight(self, block: Block) -> float:
        """Cycles of all that stands in `block`, loops counted once."""
        total = 0.0
        for stmt in block:
            if isinstance(stmt, Let) and stmt in self.code.instructions:
                number = self.owner.table.number(self.code.instructions[stmt], self.env)
                total += self.owner.table.table[number].cycles
            total += sum(self.weight(inner) for inner in stmt.blocks())
        return total

    # --- scalars ---
    def scalars(self, targets: tuple[Value, ...], values: tuple[Scalar, ...]) -> list[tuple[Value, int | None]]:
        """What the scalars among `targets` are to become."""
        pairs = zip(targets, values, strict=True)
        return [(t, number_of(value, self.env)) for t, value in pairs if isinstance(t.type, ScalarType)]

    def hand_on(self, values: list[tuple[Value, int | None]]) -> None:
        for target, value in values:
            if value is None:
                self.env.pop(target, None)
            else:
                self.env[target] = value

    def set(self, target: Value, value: Scalar) -> None:
        self.hand_on([(target, number_of(value, self.env))])


def _scalar(values: tuple[Value, ...]) -> list[Value]:
    return [value for value in values if isinstance(value.type, ScalarType)]
