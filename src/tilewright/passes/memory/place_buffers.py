"""Buffer placement: every buffer gets an address in its memory.

Before:  y: pl.Tile[[64, 64], pl.FP32, pl.MemRef("vec0", nbytes=16384), pl.Mem.Vec] = ...
After:   y: pl.Tile[[64, 64], pl.FP32, pl.MemRef("vec0", addr=0, nbytes=16384), pl.Mem.Vec] = ...

Buffers that are never alive together may overlap; a buffer written by the statement that last reads another does not
overlap it (operations that may work in place have had their buffers joined before). A sweep over time takes the lowest
gap that fits; where that does not fit its memory, buffers are placed largest first. Addresses that the user pinned
are kept.
Refuses: tiles that are alive together and exceed their memory (`CapacityError`: the tiles live at the peak, largest
first, and a tile shape that fits). Tiles larger than a file of registers stay without an address there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tilewright.analysis.liveness import live_ranges
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.ir.rewrite import Rewriter
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import MemRef, TileType, Type
from tilewright.passes.memory.capacity import capacity_error
from tilewright.targets import Target


def place_buffers(program: Program, target: Target) -> Program:
    """Requires a `MemRef` with bytes on every tile. Ensures an address on each, aligned and within its memory."""

    def transform(function: Function) -> Function:
        if function.kind is FunctionKind.ORCHESTRATION:
            return function
        return _Apply(plan_addresses(function, target)).function(function)

    return program.map(transform)


@dataclass(slots=True)
class Buffer:
    """One buffer: the time from its first write to its last use, and the tiles that occupy it."""

    name: str
    space: MemorySpace
    nbytes: int
    first: int
    last: int
    addr: int | None = None
    tiles: list[Value] = field(default_factory=list[Value])

    def meets(self, other: Buffer) -> bool:
        return self.first <= other.last and other.first <= self.last


@dataclass(slots=True)
class AddressPlan:
    """Every buffer with its address, by name, and the peak of each memory in bytes."""

    buffers: dict[str, Buffer]
    peaks: dict[str, int]


def plan_addresses(function: Function, target: Target) -> AddressPlan:
    """Decides the addresses. Raises `CapacityError`."""
    buffers = collect_buffers(function)
    by_memory: dict[str, list[Buffer]] = {}
    for buffer in buffers.values():
        by_memory.setdefault(target.memory(buffer.space).name, []).append(buffer)
    peaks: dict[str, int] = {}
    for name, group in by_memory.items():
        space = group[0].space
        memory = target.memory(space)
        capacity, alignment = target.capacity(space), memory.alignment
        if not _sweep(group, capacity, alignment) and not _largest_first(group, capacity, alignment):
            if not memory.register_bytes:
                raise capacity_error(group, memory, target, function)
            # A tile larger than the register file is streamed through it by native code, and has no address there.
            for buffer in group:
                buffer.addr = None
            continue
        peaks[name] = max((b.addr or 0) + b.nbytes for b in group)
    return AddressPlan(buffers, peaks)


def collect_buffers(function: Function) -> dict[str, Buffer]:
    """The buffers of `function` with the hull of their tiles' live ranges, whole statements at both ends."""
    live = live_ranges(function)
    found: dict[str, Buffer] = {}
    for stmt in function.walk():
        for value in (*stmt.block_args(), *stmt.defs()):
            kind = value.type
            if not isinstance(kind, TileType):
                continue
            assert kind.memref is not None and kind.memref.nbytes is not None and kind.space is not None
            first, last = live.range_of(value)
            buffer = found.get(kind.memref.name)
            if buffer is None:
                memref = kind.memref
                buffer = Buffer(memref.name, kind.space, kind.memref.nbytes, first - 1, last | 1, memref.addr)
                found[memref.name] = buffer
            buffer.first = min(buffer.first, first - first % 2)
            buffer.last = max(buffer.last, last | 1)
            buffer.tiles.append(value)
    return found


# --- packing ------------------------------------------------------------------------------------------------------
def _lowest_gap(nbytes: int, taken: Iterable[Buffer], alignment: int) -> int:
    """The lowest aligned address at which `nbytes` do not meet `taken`."""
    address = 0
    for other in sorted(taken, key=lambda buffer: buffer.addr or 0):
        assert other.addr is not None
        if address + nbytes <= other.addr:
            break
        address = max(address, -(-(other.addr + other.nbytes) // alignment) * alignment)
    return address


def _sweep(group: list[Buffer], capacity: int, alignment: int) -> bool:
    """Places buffers in the order in which they come alive; whether all fit."""
    pinned = [buffer for buffer in group if buffer.addr is not None]
    placed: dict[str, int] = {}
    active: list[Buffer] = []
    for buffer in sorted(group, key=lambda b: (b.first, -b.nbytes, b.name)):
        if buffer in pinned:
            continue
        active = [other for other in active if other.last >= buffer.first]
        taken = active + [other for other in pinned if other.meets(buffer)]
        buffer.addr = _lowest_gap(buffer.nbytes, taken, alignment)
        placed[buffer.name] = buffer.addr
        active.append(buffer)
    fits = all((buffer.addr or 0) + buffer.nbytes <= capacity for buffer in group)
    if not fits:
        for buffer in group:
            buffer.addr = None if buffer.name in placed else buffer.addr
    return fits


def _largest_first(group: list[Buffer], capacity: int, alignment: int) -> bool:
    """Places the largest buffers first; whether all fit. Quadratic, and only tried when the sweep fails."""
    done = [buffer for buffer in group if buffer.addr is not None]
    for buffer in sorted(group, key=lambda b: (-b.nbytes, b.first, b.name)):
        if buffer in done:
            continue
        buffer.addr = _lowest_gap(buffer.nbytes, (other for other in done if other.meets(buffer)), alignment)
        done.append(buffer)
    return all((buffer.addr or 0) + buffer.nbytes <= capacity for buffer in group)


class _Apply(Rewriter):
    """Writes the addresses into the types."""

    def __init__(self, plan: AddressPlan) -> None:
        super().__init__()
        self.plan = plan

    def retype(self, old: Value, type: Type) -> Value:
        if isinstance(type, TileType) and type.memref is not None:
            memref = type.memref
            type = type.with_(memref=MemRef(memref.name, self.plan.buffers[memref.name].addr, memref.nbytes))
        return super().retype(old, type)

    def visit_let(self, stmt: Let) -> None:
        value = stmt.value.with_operands(self.get) if isinstance(stmt.value, Op) else self.scalar(stmt.value)
        self.emit(Let(self.retype(stmt.target, stmt.target.type.substitute(self.get)), value, span=stmt.span))

    def carried_type(self, arg: Value, init: Scalar) -> Type:
        return arg.type.substitute(self.get)
