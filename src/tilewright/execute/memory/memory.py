"""On-chip memory as bytes, each with its history, and tiles as places in it.

Memory that nothing wrote holds poison. What writes a tile writes all that the tile occupies, its padding as poison.
Every byte knows the event that wrote it last, and every tile the events that made its elements: when the two differ
at a read, something else was put there in the meantime, whatever the numbers are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewright.errors import MemoryFault
from tilewright.execute.interpreter import Data, poison
from tilewright.execute.memory.clocks import Event, Ledger, Numbers, Shadow
from tilewright.execute.memory.positions import OUTSIDE, Indices
from tilewright.ir.op import Array
from tilewright.ir.scalar import Value
from tilewright.ir.types import TileType

POISON = 0xFFA5
"""Two bytes, as a little-endian integer: NaN in every float, large and negative in integers."""

SEVERAL = -1
"""Stands for the event that made an element where several did, a few bytes each."""

Box = tuple[slice, ...]


class Memory:
    """The bytes of one memory of one core."""

    def __init__(self, name: str, nbytes: int, ledger: Ledger) -> None:
        self.name = name
        size = -(-nbytes // 64) * 64
        self.data = np.full(size // 2, POISON, "<u2").view(np.uint8)
        self.shadow = Shadow(name, (size,), ledger)
        self.defined = np.zeros(size, np.uint8)
        """a bit for each bit of `data`"""
        self._views: dict[np.dtype[Any], Array] = {}

    def view(self, dtype: np.dtype[Any]) -> Array:
        """All of it as elements of `dtype`."""
        if dtype not in self._views:
            self._views[dtype] = self.data.view(dtype)
        return self._views[dtype]


@dataclass(slots=True, eq=False)
class Place:
    """A tile at run time: where each element of its physical shape lies, and the events that made it."""

    memory: Memory
    kind: TileType
    address: int | None
    nbytes: int
    """of its own footprint, from `address` on"""
    index: Indices
    """positions in the memory: bytes, or bits of a packed mask"""
    made_by: Numbers
    """event numbers; 0: undefined, `SEVERAL`: of several"""
    packed: bool
    part: bool = False
    """whether it shows a part of what its buffer holds"""

    @property
    def itemsize(self) -> int:
        return 1 if self.packed else self.kind.dtype.nbytes

    def made(self, event: int, box: Box | None = None) -> Place:
        """The same place after `event` made the elements in `box`."""
        made_by = np.zeros(self.index.shape, np.int32) if box is None else self.made_by.copy()
        made_by[box if box is not None else ...] = event
        return replace(self, made_by=made_by)

    def span(self) -> slice:
        """The bytes that it occupies."""
        assert self.address is not None
        return slice(self.address, self.address + self.nbytes)

    def bytes_of(self, box: Box) -> Indices:
        """The bytes of the elements in `box`, one row per element."""
        index = self.index[box].reshape(-1)
        if self.packed:
            return (index >> 3)[:, None]
        return index[:, None] + np.arange(self.itemsize, dtype=np.int64)[None, :]

    # --- data ---
    def gather(self) -> Data:
        """All elements; those that no event made are not defined, whatever lies there."""
        inside = np.maximum(self.index, 0)
        known = (self.made_by != 0) & (self.index != OUTSIDE)
        dtype = np.dtype(self.kind.dtype.numpy)
        if self.packed:
            bit = (inside & 7).astype(np.uint8)
            array = ((self.memory.data[inside >> 3] >> bit) & 1).astype(np.bool_)
            return Data(array, known & (((self.memory.defined[inside >> 3] >> bit) & 1) == 1))
        array = self.memory.view(dtype)[inside // self.itemsize]
        whole = self.memory.defined[inside] == 0xFF
        if dtype.kind == "b":
            array = self.memory.data[inside] != 0
        return Data(array, known & whole)

    def scatter(self, data: Data, box: Box) -> None:
        """Put the elements in `box` of `data`, which has the physical shape, where they belong."""
        index, values, defined = self.index[box], data.array[box], data.defined[box]
        room = index != OUTSIDE
        index, values, defined = index[room], values[room], defined[room]
        memory = self.memory
        if self.packed:
            byte, bit = index >> 3, (1 << (index & 7)).astype(np.uint8)
            for target, bits in ((memory.data, values.astype(np.bool_)), (memory.defined, defined)):
                np.bitwise_and.at(target, byte, ~bit)
                np.bitwise_or.at(target, byte, np.where(bits, bit, 0).astype(np.uint8))
            return
        if values.dtype.kind == "b":
            memory.data[index] = values
        else:
            memory.view(values.dtype)[index // self.itemsize] = np.where(
                defined, values, poison(values.shape, values.dtype)
            )
        for byte in range(self.itemsize):
            memory.defined[index + byte] = np.where(defined, 0xFF, 0).astype(np.uint8)

    def clear(self, span: slice) -> None:
        """Poison for all that it occupies: a result is written over whatever was there."""
        self.memory.data[span] = np.full(-(-self.nbytes // 2), POISON, "<u2").view(np.uint8)[: self.nbytes]
        self.memory.defined[span] = 0

    # --- history ---
    def check_held(self, box: Box, event: Event, value: Value, ledger: Ledger) -> None:
        """Raises `MemoryFault` when something was put over the elements in `box` since they were made."""
        wanted = self.made_by[box].reshape(-1)
        found = self.memory.shadow.writer[self.bytes_of(box)]
        wrong = (found != wanted[:, None]) & (wanted > 0)[:, None]
        if not wrong.any():
            return
        element, byte = (int(axis[0]) for axis in np.nonzero(wrong))
        maker, other = ledger.event(int(wanted[element])), ledger.event(int(found[element, byte]))
        at = int(self.bytes_of(box)[element, byte])
        if maker is not None and maker.work is not None:
            raise MemoryFault(
                f"race in {self.memory.name}: {value.name!r} is read before it is written",
                span=event.instruction.stmt.span,
                required=f"{event.describe()} after {maker.describe()}",
                found="nothing orders the first after the second",
                help="the hazards of the statement must name the other, as must what orders its engines",
            )
        raise MemoryFault(
            f"{value.name!r} is read after something else was put where it lies in {self.memory.name}",
            span=event.instruction.stmt.span,
            required=f"byte {at} as it was left by {maker.describe() if maker else 'nothing'}",
            found=f"{event.describe()} finds there what was left by {other.describe() if other else 'nobody'}",
            help="tiles that are alive together need bytes of their own",
        )
