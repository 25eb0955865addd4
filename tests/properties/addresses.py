"""Addresses, checked by brute force: the placed program is followed statement by statement, and every byte of every
memory remembers which value was written to it last.

Nothing of the planner is used. A value is read where a statement uses it; the bytes of the tile must then still be
those that its own chain of definitions wrote. Loops are run twice, so that what one trip leaves for the next is seen.
"""

from __future__ import annotations

from tilewright.analysis.footprint import footprint
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.nodes import Block, Call, For, If, Let, Scope, Yield
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import TileType
from tilewright.targets import Target


class OverlapError(AssertionError):
    """A tile is read after something else was written over it, or leaves its memory."""


def check_addresses(program: Program, target: Target) -> None:
    """Raises `OverlapError` unless every tile still holds what was put there whenever it is read."""
    for function in program.functions:
        if function.kind is FunctionKind.INCORE:
            _Replay(function, target).run()


class _Replay:
    """`content[memory, byte]` is the number of the write that put it there; `holds[value]` that of the value."""

    def __init__(self, function: Function, target: Target) -> None:
        self.function = function
        self.target = target
        self.content: dict[tuple[str, int], int] = {}
        self.holds: dict[Value, int] = {}
        self.joins: dict[tuple[int, ...], int] = {}
        self.writes = 0

    def run(self) -> None:
        self.block(self.function.body)

    def block(self, block: Block) -> tuple[Scalar, ...]:
        for stmt in block:
            match stmt:
                case Let():
                    self.let(stmt)
                case For():
                    self.loop(stmt)
                case If() | Scope():
                    self.arms(stmt)
                case Yield():
                    return stmt.values
                case Call():
                    raise AssertionError("a placed tile function calls nothing")
                case _:
                    raise AssertionError(f"unknown statement {type(stmt).__name__}")
        return ()

    def let(self, stmt: Let) -> None:
        op = stmt.value
        if not isinstance(op, Op):
            return
        for field, value in op.operand_items():
            if not op.field(field).scratch:
                self.read(value, stmt)
        if not isinstance(stmt.target.type, TileType):
            return
        shared = getattr(op, op.view_of) if op.view_of is not None else None
        if shared is not None:
            self.holds[stmt.target] = self.holds[shared]
        else:
            self.write(stmt.target, stmt)

    def bytes_of(self, value: Value) -> tuple[str, range] | None:
        kind = value.type
        if not isinstance(kind, TileType) or kind.memref is None or kind.memref.addr is None or kind.space is None:
            return None  # streamed through registers by native code
        memory = self.target.memory(kind.space)
        assert kind.memref.nbytes is not None
        first, size = kind.memref.addr, kind.memref.nbytes
        if first % memory.alignment or first + size > self.target.capacity(kind.space) or first < 0:
            raise OverlapError(f"{value.name} at {first}, {size} bytes, is not inside {memory.name} or not aligned")
        if size < footprint(kind, self.target):
            raise OverlapError(f"{value.name} takes {footprint(kind, self.target)} bytes of a buffer of {size}")
        return memory.name, range(first, first + size, min(32, memory.alignment))

    def write(self, value: Value, stmt: Let) -> None:
        place = self.bytes_of(value)
        self.writes += 1
        self.holds[value] = self.writes
        for byte in place[1] if place else ():
            assert place is not None
            self.content[place[0], byte] = self.writes

    def read(self, value: Value, stmt: object) -> None:
        place = self.bytes_of(value)
        if place is None or value not in self.holds:
            return
        for byte in place[1]:
            if self.content.get((place[0], byte)) != self.holds[value]:
                raise OverlapError(f"{value.name} is read, and byte {byte} of {place[0]} holds something else: {stmt}")

    def hand(self, targets: tuple[Value, ...], given: tuple[Scalar, ...], stmt: object) -> None:
        """`targets` become what `given` holds: the same bytes, since nothing is copied where paths join."""
        held: dict[Value, int] = {}
        for target, value in zip(targets, given, strict=True):
            if not isinstance(target.type, TileType) or not isinstance(value, Value):
                continue
            self.read(value, stmt)
            if self.bytes_of(target) != self.bytes_of(value):
                raise OverlapError(f"{value.name} is handed on as {target.name}, which lies elsewhere")
            held[target] = self.holds[value]
        self.holds.update(held)

    def loop(self, stmt: For) -> None:
        self.hand(stmt.iter_args, stmt.inits, stmt)
        if stmt.trip_count == 0:
            self.hand(stmt.results, stmt.inits, stmt)
            return
        for trip in range(2):
            if trip and stmt.trip_count == 1:
                break
            values = self.block(stmt.body)
            self.hand(stmt.iter_args, values, stmt)
        self.hand(stmt.results, stmt.iter_args, stmt)

    def arms(self, stmt: If | Scope) -> None:
        """Each arm from the same state; what they leave differently is a write of its own, named by what they left."""
        before = dict(self.content)
        ends: list[dict[tuple[str, int], int]] = []
        held: list[list[int]] = []
        for block in stmt.blocks():
            self.content = dict(before)
            self.hand(stmt.defs(), self.block(block), stmt)
            held.append([self.holds.get(result, 0) for result in stmt.defs()])
            ends.append(self.content)
        keys = {key for end in ends for key in end}
        self.content = {key: self.joined(tuple(end.get(key, 0) for end in ends)) for key in keys}
        for result, numbers in zip(stmt.defs(), zip(*held, strict=True), strict=True):
            if isinstance(result.type, TileType):
                self.holds[result] = self.joined(numbers)

    def joined(self, numbers: tuple[int, ...]) -> int:
        if len(set(numbers)) == 1:
            return numbers[0]
        if numbers not in self.joins:
            self.writes += 1
            self.joins[numbers] = self.writes
        return self.joins[numbers]
