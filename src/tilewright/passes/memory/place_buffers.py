"""Buffer placement: every buffer gets an address in its memory.

Before:  y: pl.Tile[[64, 64], pl.FP32, pl.MemRef("vec0", nbytes=16384), pl.Mem.Vec] = ...
After:   y: pl.Tile[[64, 64], pl.FP32, pl.MemRef("vec0", addr=0, nbytes=16384), pl.Mem.Vec] = ...

Buffers that are never alive together may overlap; a buffer written by the statement that last reads another does not
overlap it (operations that may work in place have had their buffers joined before). What the body of a pipelined loop
makes is alive as long as the loop runs, so that no trip waits for a buffer of the trip before. Of the plans that fit,
one is taken in which few reuses make an engine wait for another, and of those one with a low peak; `AddressPlan` says
how good it is. Addresses that the user pinned are kept.
Refuses: tiles that are alive together and exceed their memory (`CapacityError`: the tiles live at the peak, largest
first, and a tile shape that fits), and pins that overlap. In a file of registers, what is too large for it stays
without an address: native code streams it through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from tilewright.analysis.buffers import Buffer, collect_buffers
from tilewright.analysis.reuse import BufferUse, buffer_uses
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.ir.rewrite import Rewriter
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import MemRef, TileType, Type
from tilewright.passes.memory.capacity import capacity_error, pinned_error
from tilewright.passes.memory.memory_plan import MemoryPlan, plan_memory
from tilewright.targets import Memory, Target


def place_buffers(program: Program, target: Target, *, engines: bool = True) -> Program:
    """Requires a `MemRef` with bytes on every tile. Ensures an address on each, aligned and within its memory.
    Without `engines` only bytes count, not which engine would have to wait for which."""

    def transform(function: Function) -> Function:
        if function.kind is FunctionKind.ORCHESTRATION:
            return function
        return _Apply(plan_addresses(function, target, engines=engines)).function(function)

    return program.map(transform)


@dataclass(slots=True)
class AddressPlan:
    """Every buffer with its address, by name, and what came of each memory, by its name."""

    buffers: dict[str, Buffer]
    memories: dict[str, MemoryPlan]

    @property
    def peaks(self) -> dict[str, int]:
        """The peak of each memory in which something has an address, in bytes."""
        return {name: plan.peak for name, plan in self.memories.items() if plan.peak}

    def __str__(self) -> str:
        return "\n".join(map(str, self.memories.values()))


def plan_addresses(function: Function, target: Target, *, engines: bool = True) -> AddressPlan:
    """Decides the addresses. Deterministic. Raises `CapacityError`."""
    buffers = collect_buffers(function)
    by_memory: dict[str, list[Buffer]] = {}
    for buffer in buffers.values():
        by_memory.setdefault(target.memory(buffer.space).name, []).append(buffer)
    uses = buffer_uses(function, target, buffers) if engines and buffers else None
    memories: dict[str, MemoryPlan] = {}
    for name, group in by_memory.items():
        memory = target.memory(group[0].space)
        if memory.register_bytes:
            memories[name] = _registers(group, memory, target, uses)
            continue
        for one, two in combinations([buffer for buffer in group if buffer.addr is not None], 2):
            if one.meets(two) and one.start < two.end and two.start < one.end:
                raise pinned_error(one, two, memory, target)
        plan = plan_memory(name, group, target.capacity(group[0].space), memory.alignment, uses)
        if plan is None:
            raise capacity_error(group, memory, target)
        memories[name] = plan
    return AddressPlan(buffers, memories)


def _registers(group: list[Buffer], memory: Memory, target: Target, uses: Mapping[str, BufferUse] | None) -> MemoryPlan:
    """A file of registers: what is larger than it has no address, nor, while the rest does not fit together, the
    largest of the rest. Native code, which takes its own registers, streams these through."""
    capacity = target.capacity(group[0].space)
    streamed = [buffer for buffer in group if buffer.nbytes > capacity or (buffer.addr or 0) + buffer.nbytes > capacity]
    held = [buffer for buffer in group if buffer not in streamed]
    while (plan := plan_memory(memory.name, held, capacity, memory.alignment, uses)) is None:
        largest = max(held, key=lambda buffer: buffer.nbytes)
        held.remove(largest)
        streamed.append(largest)
    for buffer in streamed:
        buffer.addr = None
    plan.streamed = [buffer.name for buffer in streamed]
    return plan


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
