"""The capacity error: which tiles are alive at the peak, and a tile shape that would fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.analysis.footprint import footprint
from tilewright.errors import CapacityError
from tilewright.ir.function import Function
from tilewright.ir.scalar import Value
from tilewright.ir.types import TileType
from tilewright.targets import Memory, Target

if TYPE_CHECKING:
    from tilewright.passes.memory.place_buffers import Buffer


def capacity_error(group: list[Buffer], memory: Memory, target: Target, function: Function) -> CapacityError:
    """The error for buffers of one memory that cannot be placed."""
    time = _peak_time(group)
    live = sorted((b for b in group if b.first <= time <= b.last), key=lambda b: (-b.nbytes, b.name))
    total = sum(buffer.nbytes for buffer in live)
    capacity = target.capacity(live[0].space)
    largest = _holder(live[0])
    notes = tuple(f"live at the peak: {_describe(buffer)}" for buffer in live)
    return CapacityError(
        f"the tiles of {function.name} do not fit {memory.name} of {target.name}",
        span=largest.span,
        required=f"at most {capacity:,} bytes alive together",
        found=f"{total:,} bytes in {len(live)} buffers"
        + ("" if total > capacity else ", no packing of which was found"),
        help=propose(live, capacity, target),
        notes=notes,
    )


def _peak_time(group: list[Buffer]) -> int:
    """The first time at which most bytes are alive."""
    changes = sorted([(b.first, b.nbytes) for b in group] + [(b.last + 1, -b.nbytes) for b in group])
    best, best_time, now = -1, 0, 0
    for index, (time, change) in enumerate(changes):
        now += change
        if now > best and (index + 1 == len(changes) or changes[index + 1][0] != time):
            best, best_time = now, time
    return best_time


def _holder(buffer: Buffer) -> Value:
    """The tile that is as large as its buffer; of several the first, which is the one that the user wrote."""
    return buffer.tiles[0]


def _describe(buffer: Buffer) -> str:
    tile = _holder(buffer)
    assert isinstance(tile.type, TileType)
    where = f", line {tile.span.line}" if tile.span.line else ""
    return f"{tile.name} {list(tile.type.shape)} {tile.type.dtype}, {buffer.nbytes:,} bytes{where}"


def propose(live: list[Buffer], capacity: int, target: Target) -> str:
    """The largest cut of the rows of the largest tile, and of every live tile with as many rows, that fits; of its
    columns where rows alone cannot."""
    tile = _holder(live[0]).type
    assert isinstance(tile, TileType)
    for axis in range(tile.rank):
        extent = tile.static_shape[axis]
        smaller = extent // 2
        while smaller >= 1:
            if sum(_shrunk(buffer, axis, extent, smaller, target) for buffer in live) <= capacity:
                shape = [smaller if i == axis else e for i, e in enumerate(tile.static_shape)]
                part = "rows" if axis == 0 else "columns"
                return f"loop over tiles of {smaller} {part}: {shape} fits"
            smaller //= 2
    return "keep fewer tiles alive together, or make them smaller"


def _shrunk(buffer: Buffer, axis: int, extent: int, smaller: int, target: Target) -> int:
    """The bytes of a buffer when its tiles of `extent` along `axis` have `smaller` there."""
    most = 0
    for value in buffer.tiles:
        kind = value.type
        assert isinstance(kind, TileType)
        if kind.rank > axis and kind.shape[axis] == extent:
            shape = tuple(smaller if i == axis else e for i, e in enumerate(kind.shape))
            shape = target.physical_shape(kind.space, shape, kind.dtype, kind.layout)  # type: ignore[arg-type]
            kind = TileType(shape, kind.dtype, kind.space)
        most = max(most, footprint(kind, target))
    return most
