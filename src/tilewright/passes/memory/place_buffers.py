"""Buffer placement: every buffer gets an address in its memory.

Before:  y: pl.Tile[[64, 64], pl.FP32, pl.MemRef("vec0", nbytes=16384), pl.Mem.Vec] = ...
After:   y: pl.Tile[[64, 64], pl.FP32, pl.MemRef("vec0", addr=0, nbytes=16384), pl.Mem.Vec] = ...

Buffers that are never alive together may overlap; a buffer written by the statement that last reads another does not
overlap it (operations that may work in place have had their buffers joined before). What the body of a pipelined loop
makes is alive as long as the loop runs, so that no trip waits for a buffer of the trip before. A sweep over time takes
the lowest gap that fits; where that does not fit its memory, buffers are placed largest first, and then in the orders
that a bounded search tries. Addresses that the user pinned are kept.
Refuses: tiles that are alive together and exceed their memory (`CapacityError`: the tiles live at the peak, largest
first, and a tile shape that fits). Tiles larger than a file of registers stay without an address there."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, field

from tilewright.analysis.liveness import live_ranges
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import Block, For, Let, LoopKind
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


@dataclass(slots=True, eq=False)
class Buffer:
    """One buffer: the time from its first write to its last use, and the tiles that occupy it."""

    name: str
    space: MemorySpace
    nbytes: int
    first: int
    last: int
    addr: int | None = None
    tiles: list[Value] = field(default_factory=list[Value])

    @property
    def start(self) -> int:
        assert self.addr is not None, f"{self.name} has no address"
        return self.addr

    @property
    def end(self) -> int:
        return self.start + self.nbytes

    def by_address(self) -> tuple[int, int]:
        return self.start, self.end

    def meets(self, other: Buffer) -> bool:
        """Whether the two are alive at one time."""
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
        if not pack(group, capacity, alignment):
            if not memory.register_bytes:
                raise capacity_error(group, memory, target)
            # A tile larger than the register file is streamed through it by native code, and has no address there.
            for buffer in group:
                buffer.addr = None
            continue
        peaks[name] = max(buffer.end for buffer in group)
    return AddressPlan(buffers, peaks)


def collect_buffers(function: Function) -> dict[str, Buffer]:
    """The buffers of `function` with the hull of their tiles' live ranges, whole statements at both ends."""
    live = live_ranges(function)
    pipelined = _pipelined(function.body, None)
    found: dict[str, Buffer] = {}
    for stmt in function.walk():
        for value in (*stmt.block_args(), *stmt.defs()):
            kind = value.type
            if not isinstance(kind, TileType):
                continue
            memref = kind.memref
            assert memref is not None and memref.nbytes is not None and kind.space is not None
            first, last = live.range_of(value)
            first, last = first - first % 2, last | 1
            loop = pipelined.get(value)
            if loop is not None:
                first, last = min(first, 2 * live.begins[loop]), max(last, 2 * live.ends[loop] + 1)
            buffer = found.setdefault(
                memref.name, Buffer(memref.name, kind.space, memref.nbytes, first, last, memref.addr)
            )
            buffer.first = min(buffer.first, first)
            buffer.last = max(buffer.last, last)
            buffer.tiles.append(value)
    return found


def _pipelined(block: Block, loop: For | None) -> dict[Value, For]:
    """For each value that is made in a pipelined loop: the innermost such loop."""
    found: dict[Value, For] = {}
    for stmt in block:
        if loop is not None:
            found |= dict.fromkeys((*stmt.defs(), *stmt.block_args()), loop)
        inner = stmt if isinstance(stmt, For) and stmt.kind is LoopKind.PIPELINE else loop
        for nested in stmt.blocks():
            found |= _pipelined(nested, inner)
    return found


# --- packing ------------------------------------------------------------------------------------------------------
SEARCHED = 20_000
"""Buffers that the last attempt places at most, all orders together: a fraction of a second."""


def pack(group: list[Buffer], capacity: int, alignment: int) -> bool:
    """Gives the buffers of one memory addresses; whether all fit. On failure none but pinned ones have one."""
    free = [buffer for buffer in group if buffer.addr is None]
    pinned = [buffer for buffer in group if buffer.addr is not None]
    if any(buffer.end > capacity for buffer in pinned):
        return False
    if _sweep(free, pinned, capacity, alignment):
        return True
    if peak_of(group) <= capacity and (
        _largest_first(free, pinned, capacity, alignment) or _Search(free, pinned, capacity, alignment).run()
    ):
        return True
    for buffer in free:
        buffer.addr = None
    return False


def peak_of(group: Iterable[Buffer]) -> int:
    """The most bytes that are alive at one time: no packing needs less."""
    changes = sorted(change for b in group for change in ((b.first, 1, b.nbytes), (b.last + 1, 0, -b.nbytes)))
    peak = now = 0
    for _, _, change in changes:
        now += change
        peak = max(peak, now)
    return peak


def _lowest_gap(nbytes: int, taken: Iterable[Buffer], alignment: int) -> int:
    """The lowest aligned address at which `nbytes` do not meet `taken`, which are sorted by address."""
    address = 0
    for other in taken:
        if address + nbytes <= other.start:
            break
        address = max(address, -(-other.end // alignment) * alignment)
    return address


def _sweep(free: list[Buffer], pinned: list[Buffer], capacity: int, alignment: int) -> bool:
    """Places buffers in the order in which they come alive; whether all fit."""
    active: list[Buffer] = []  # by address
    fits = True
    for buffer in sorted(free, key=lambda b: (b.first, -b.nbytes)):
        active = [other for other in active if other.last >= buffer.first]
        fixed = [other for other in pinned if other.meets(buffer)]
        taken = sorted((*active, *fixed), key=Buffer.by_address) if fixed else active
        buffer.addr = _lowest_gap(buffer.nbytes, taken, alignment)
        insort(active, buffer, key=Buffer.by_address)
        fits = fits and buffer.end <= capacity
    return fits


def _largest_first(free: list[Buffer], pinned: list[Buffer], capacity: int, alignment: int) -> bool:
    """Places the largest buffers first; whether all fit. Quadratic, and only tried when the sweep fails."""
    done = sorted(pinned, key=Buffer.by_address)
    for buffer in sorted(free, key=lambda b: (-b.nbytes, b.first)):
        buffer.addr = _lowest_gap(buffer.nbytes, (other for other in done if other.meets(buffer)), alignment)
        if buffer.end > capacity:
            return False
        insort(done, buffer, key=Buffer.by_address)
    return True


class _Search:
    """Tries the orders in which buffers may be placed, each at its lowest gap: one of them is a best packing, since
    taking the buffers of a best packing by address moves none of them up. Gives up after `SEARCHED` placements."""

    def __init__(self, free: list[Buffer], pinned: list[Buffer], capacity: int, alignment: int) -> None:
        self.free = sorted(free, key=lambda b: (-b.nbytes, b.first))
        self.done = sorted(pinned, key=Buffer.by_address)
        self.capacity = capacity
        self.alignment = alignment
        self.left = SEARCHED

    def run(self) -> bool:
        return self.place(self.free, 0)

    def place(self, rest: list[Buffer], lowest: int) -> bool:
        """Places `rest`, none below `lowest`: an order by address is enough."""
        if not rest:
            return True
        tried: set[tuple[int, int, int]] = set()
        for index, buffer in enumerate(rest):
            kind = (buffer.nbytes, buffer.first, buffer.last)
            if kind in tried or self.left <= 0:
                continue
            tried.add(kind)
            self.left -= 1
            taken = [other for other in self.done if other.meets(buffer)]
            buffer.addr = _lowest_gap(buffer.nbytes, taken, self.alignment)
            if lowest <= buffer.addr and buffer.end <= self.capacity:
                insort(self.done, buffer, key=Buffer.by_address)
                if self.place(rest[:index] + rest[index + 1 :], buffer.addr):
                    return True
                self.done = [other for other in self.done if other is not buffer]
        return False


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
