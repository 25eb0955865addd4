"""Where the tiles of a function lie while it runs: places from types, views of places, and what must lie where.

A place is made from a tile's own type: its address, layout and valid shape. A view of all of a tile lies as its own
type says; a view of a part shows elements of what it views, moved by as much as its address differs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from tilewright.analysis.footprint import footprint, layout_on
from tilewright.errors import MemoryFault, OutOfBoundsError
from tilewright.execute.interpreter import Environment, Interpreter
from tilewright.execute.memory.clocks import Ledger, Numbers
from tilewright.execute.memory.memory import SEVERAL, Box, Memory, Place
from tilewright.execute.memory.positions import PACKED_BY_ENGINE, is_packed, positions
from tilewright.ir.function import Function
from tilewright.ir.layout import Compact, SLayout
from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.ir.scalar import Shape, Value
from tilewright.ir.types import TileType
from tilewright.targets import Target


class Places:
    """The memories of one core that runs `function`, and the places of tiles in them."""

    def __init__(self, function: Function, target: Target, interpreter: Interpreter, ledger: Ledger) -> None:
        self.target = target
        self.interpreter = interpreter
        self.ledger = ledger
        self.extents = _extents(function, target)
        self.memories: dict[str, Memory] = {}

    def memory(self, name: str) -> Memory:
        if name not in self.memories:
            top = self.target.memories[name].capacity
            used = self.extents.get(name, 0)
            self.memories[name] = Memory(name, used if top is None else min(top, used), self.ledger)
        return self.memories[name]

    def place(self, value: Value, kind: TileType, env: Environment) -> Place:
        """Where a tile of its own lies. Raises `MemoryFault` when that is not inside its memory."""
        space, memref = kind.space, kind.memref
        if space is None or memref is None or memref.nbytes is None:
            raise MemoryFault(f"{value.name!r} has no buffer", required="a placed program", found=repr(kind))
        memory, needed = self.target.memory(space), footprint(kind, self.target)
        valid = self.interpreter.extents(kind.valid, env)
        if any(not 0 <= v <= s for v, s in zip(valid, kind.static_shape, strict=True)):
            raise MemoryFault(f"the valid shape of {value.name!r} does not fit", found=f"{valid} of {kind!r}")
        index, packed = positions(kind.without_memref(), self.target, valid), is_packed(kind, self.target)
        made_by = np.zeros(index.shape, np.int32)
        if memref.addr is None:  # native code streams it through registers
            own = Memory(value.name, needed, self.ledger)
            return Place(own, kind, None, needed, index, made_by, packed)
        top = self.target.capacity(space)
        if memref.addr < 0 or memref.addr + needed > min(top, memref.addr + memref.nbytes):
            raise MemoryFault(
                f"{value.name!r} does not lie within its buffer in {memory.name}",
                required=f"{needed} bytes of a buffer of {memref.nbytes} and a memory of {top}",
                found=f"bytes {memref.addr} to {memref.addr + needed}",
            )
        if memref.addr % memory.alignment:
            raise MemoryFault(
                f"{value.name!r} is not aligned in {memory.name}",
                required=f"a multiple of {memory.alignment} bytes", found=f"byte {memref.addr}",
            )  # fmt: skip
        first = memref.addr * 8 if packed else memref.addr
        index = np.where(index < 0, index, index + first)
        return Place(self.memory(memory.name), kind, memref.addr, needed, index, made_by, packed)

    def check_packed(self, place: Place, env: Environment) -> None:
        """Raises `MemoryFault` unless a tile of boxes lies as the matrix engine packs it: by its valid shape."""
        kind = place.kind
        layout = layout_on(kind, self.target)
        if kind.space not in PACKED_BY_ENGINE or layout.slayout is SLayout.NONE_BOX or place.part:
            return
        valid = self.interpreter.extents(kind.valid, env)
        corner = tuple(slice(0, extent) for extent in valid)
        own, packed = (
            positions(each.without_memref(), self.target, valid)[corner]
            for each in (kind, kind.with_(compact=Compact.NORMAL))
        )
        if not (own == packed).all():
            raise MemoryFault(
                "the matrix engine packs a tile by its valid shape, and its type says another pitch",
                required="compact=pl.CompactMode.normal",
                found=f"{kind!r}, of which {list(valid)} is valid",
            )

    def view(self, stmt: Let, op: Op, env: Environment) -> Place:
        """Another look at a tile: at its own place when it has all of it, else the elements that it shows."""
        assert op.view_of is not None and isinstance(stmt.target.type, TileType)
        source: Place = env[getattr(op, op.view_of)]
        for name, box in self.boxes(op, env, writes=False):
            if name == op.view_of:
                inside(op, name, box, source.index.shape)
        own = self.place(stmt.target, stmt.target.type, env)
        check_pad(op, stmt.target, stmt.target.type)
        if own.kind.dtype is not source.kind.dtype and own.address is not None and not source.part:
            return replace(own, made_by=_of_bytes(source, own))
        operands = self.view_operands(op, env)
        shown, made_by = (np.array(op.evaluate(array, *operands)) for array in (source.index, source.made_by))
        if own.address is None or source.address is None:
            return replace(source, kind=stmt.target.type, index=shown, made_by=made_by, part=True)
        whole = not source.part and shown.size == source.index.size
        if whole and own.packed == source.packed:
            return replace(own, made_by=made_by)
        shift = (own.address - source.address) * (8 if own.packed else 1)
        if shift % own.itemsize or shown.min(initial=0) + shift < 0 or (
            (shown.max(initial=0) + shift) // (8 if own.packed else 1) + own.itemsize > len(own.memory.data)
        ):  # fmt: skip
            raise MemoryFault(f"the view {stmt.target.name!r} lies outside {own.memory.name}", found=repr(own.kind))
        return replace(own, index=shown + shift, made_by=made_by, part=True)

    def view_operands(self, op: Op, env: Environment) -> list[Any]:
        """What `evaluate` takes after the array that is viewed."""
        from_op = [f for f in op.fields if f.kind.name in ("OPERAND", "SCALAR", "SCALARS") and f.name != op.view_of]
        found: list[Any] = []
        for given in from_op:
            value: Any = getattr(op, given.name)
            if isinstance(value, tuple):
                found.append(self.interpreter.extents(cast(Shape, value), env))
            else:
                found.append(None if value is None else self.interpreter.scalar(value, env))
        return found

    def boxes(self, op: Op, env: Environment, *, writes: bool) -> list[tuple[str, Box]]:
        """The boxes of operands that `op` reads, or writes; empty ones left out."""
        found: list[tuple[str, Box]] = []
        for access in op.accesses():
            if access.field is None or access.writes is not writes:
                continue
            offsets = self.interpreter.extents(access.offsets, env)
            extents = self.interpreter.extents(access.extents, env)
            if all(extent > 0 for extent in extents):
                found.append((access.field, tuple(slice(o, o + e) for o, e in zip(offsets, extents, strict=True))))
        return found


def _extents(function: Function, target: Target) -> dict[str, int]:
    """The bytes of each memory up to the last that the function uses."""
    found: dict[str, int] = {}
    for stmt in function.walk():
        for value in (*stmt.block_args(), *stmt.defs()):
            kind = value.type
            if isinstance(kind, TileType) and kind.space is not None and kind.memref and kind.memref.nbytes:
                name = target.memory(kind.space).name
                top = (kind.memref.addr or 0) + max(kind.memref.nbytes, footprint(kind, target))
                found[name] = max(found.get(name, 0), top)
    return found


def _of_bytes(source: Place, own: Place) -> Numbers:
    """The events that made the elements of another type which the bytes of `source` are seen as."""
    made = np.repeat(source.made_by.reshape(-1), source.itemsize).reshape(-1, own.itemsize)
    one = np.where((made == made[:, :1]).all(axis=1), made[:, 0], SEVERAL)
    return np.where((made == 0).any(axis=1), 0, one).astype(np.int32).reshape(own.index.shape)


def check_pad(op: Op, made: Value, kind: TileType) -> None:
    """Raises `MemoryFault` when a type says of what surrounds the valid part what the operation does not do."""
    inferred = op.infer()
    if isinstance(inferred, TileType) and inferred.view.pad is not kind.view.pad:
        raise MemoryFault(
            f"{made.name!r} is said to be padded otherwise than {op.qualified_name} pads it",
            required=f"pad={inferred.view.pad}",
            found=f"pad={kind.view.pad}",
        )


def inside(op: Op, name: str, box: Box, shape: tuple[int, ...]) -> None:
    """Raises `OutOfBoundsError` when `box` leaves an operand of `shape`."""
    for axis, (part, limit) in enumerate(zip(box, shape, strict=True)):
        if not 0 <= part.start <= part.stop <= limit:
            raise OutOfBoundsError(
                f"{op.qualified_name} reaches outside {getattr(op, name).name!r}",
                required=f"axis {axis} has {limit} elements", found=f"elements {part.start} to {part.stop - 1}",
                help="clamp the region, or say how much of it is valid with valid_shape",
            )  # fmt: skip


def same_elements(a: Place, b: Place) -> bool:
    """Whether two places have every element at the same bytes."""
    same = a.memory is b.memory and a.address == b.address and a.itemsize == b.itemsize and a.packed == b.packed
    return same and a.index.shape == b.index.shape and bool((a.index == b.index).all())
