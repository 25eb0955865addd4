"""Which buffers had better not share bytes: those where sharing makes one engine wait for another.

    x = load(a)       MTE2
    y = exp(x)        VECTOR       the last use of x
    z = load(b)       MTE2         in x's bytes it would have to wait for exp; elsewhere it need not

Engines run beside each other, each its own instructions in order, and wait for one another only where data passes
between them. A later buffer may take over the bytes of an earlier one for nothing when whatever uses the earlier one
last is done anyway by the time the later one is first written: it ran on the same engine, or data passed from it to
there. Otherwise the reuse *serialises* the two engines. Round a loop the same holds backwards: the next trip's first
write into the earlier buffer must wait for this trip's last use of the later one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewright.analysis.buffers import Buffer
from tilewright.analysis.cores import core_of
from tilewright.analysis.hazards import engine_of
from tilewright.ir.function import Function
from tilewright.ir.nodes import Block, For, Let
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value
from tilewright.targets import Target

Engine = tuple[str, str]
"""a kind of core and the name of an engine: engines of two cores share names, and no order"""

Clock = dict[Engine, int]
"""by engine: the last of its instructions that is known to be done"""


@dataclass(slots=True)
class BufferUse:
    """When a buffer is used, in instructions counted through the function, and what is done before its first one."""

    engine: Engine
    """that writes it first"""
    first: int
    done: Clock
    """what is done anyway when `first` begins"""
    last: Clock = field(default_factory=Clock)
    """by engine: its last instruction that uses the buffer"""
    loops: tuple[For, ...] = ()
    """the loops that its first use is in, outermost first"""


def buffer_uses(function: Function, target: Target, buffers: Mapping[str, Buffer]) -> dict[str, BufferUse]:
    """How the engines use each buffer. One that no engine touches is left out."""
    walker = _Walker(target, {tile: name for name, buffer in buffers.items() for tile in buffer.tiles})
    walker.block(function.body, ())
    return walker.uses


def serialising(uses: Sequence[BufferUse | None]) -> np.ndarray:
    """For each pair of buffers, whether bytes that both use make an engine wait that need not otherwise: a symmetric
    table. A buffer without uses makes nobody wait. Pairs that are alive together are of no interest."""
    engines = sorted({engine for use in uses if use is not None for engine in use.last})
    count = len(uses)
    last, done, own = (np.full((count, len(engines)), -1, np.int64) for _ in range(3))
    first, loop = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    loops: dict[For, int] = {}
    for row, use in enumerate(uses):
        if use is None:
            continue
        first[row] = use.first
        if use.loops:
            loop[row] = loops.setdefault(use.loops[0], len(loops))
        for column, engine in enumerate(engines):
            last[row, column] = use.last.get(engine, -1)
            done[row, column] = NEVER if engine == use.engine else use.done.get(engine, -1)
            own[row, column] = NEVER if engine == use.engine else last[row, column]
    earlier = first[:, None] < first[None, :]
    onward, back = np.zeros((2, count, count), np.bool_)
    for column in range(len(engines)):
        # Rows are the earlier buffer, columns the later one.
        onward |= last[:, None, column] > done[None, :, column]
        back |= last[None, :, column] > own[:, None, column]
    table = earlier & (onward | (back & (loop[:, None] == loop[None, :]) & (loop[:, None] >= 0)))
    table &= (first[:, None] >= 0) & (first[None, :] >= 0)
    return table | table.T


NEVER = 1 << 60
"""after every instruction"""


class _Walker:
    """Counts instructions, and follows what each engine knows to be done: its own, and what those it got data from
    knew. Nothing shares bytes here but what is one buffer."""

    def __init__(self, target: Target, buffers: dict[Value, str]) -> None:
        self.target = target
        self.buffers = buffers
        self.uses: dict[str, BufferUse] = {}
        self.count = 0
        self.engines: dict[Engine, Clock] = {}
        self.written: dict[object, Clock] = {}
        """by buffer, or tensor: what is done when it holds what was written last"""
        self.read: dict[object, Clock] = {}
        """by buffer: what is done when nobody reads it any more"""

    def block(self, block: Block, loops: tuple[For, ...]) -> None:
        for stmt in block:
            if isinstance(stmt, Let) and isinstance(stmt.value, Op):
                self.instruction(stmt, stmt.value, loops)
            inside = (*loops, stmt) if isinstance(stmt, For) else loops
            for inner in stmt.blocks():
                self.block(inner, inside)

    def instruction(self, stmt: Let, op: Op, loops: tuple[For, ...]) -> None:
        name = engine_of(stmt, self.target)
        if name is None:
            return
        engine = (core_of(stmt, self.target) or "" if self.target.has_separate_cores else ""), name
        self.count += 1
        known = self.engines.setdefault(engine, {})
        operands = [self.buffers.get(value, value) for _, value in op.operand_items()]
        made = self.buffers.get(stmt.target, stmt.target)
        for source in operands:
            _learn(known, self.written.get(source, {}))
        _learn(known, self.written.get(made, {}))
        _learn(known, self.read.get(made, {}))
        for buffer in dict.fromkeys((*operands, made)):
            if isinstance(buffer, str):
                use = self.uses.get(buffer)
                if use is None:
                    use = self.uses[buffer] = BufferUse(engine, self.count, dict(known), loops=loops)
                use.last[engine] = self.count
        known[engine] = self.count
        after = dict(known)
        for source in operands:
            _learn(self.read.setdefault(source, {}), after)
        self.written[made] = after


def _learn(known: Clock, more: Clock) -> None:
    for engine, count in more.items():
        if count > known.get(engine, -1):
            known[engine] = count
