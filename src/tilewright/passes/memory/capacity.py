"""The capacity error: which tiles are alive at the peak, and a tile shape that would fit."""

from __future__ import annotations

from math import prod

from tilewright.analysis.buffers import Buffer
from tilewright.analysis.footprint import footprint
from tilewright.errors import CapacityError
from tilewright.ir.scalar import Value
from tilewright.ir.types import TileType
from tilewright.targets import Memory, Target


def capacity_error(group: list[Buffer], memory: Memory, target: Target) -> CapacityError:
    """The error for buffers of one memory that cannot be placed."""
    time = _peak_time(group)
    live = sorted((b for b in group if b.at(time)), key=lambda b: (-b.nbytes, b.name))
    capacity, total = target.capacity(live[0].space), sum(buffer.nbytes for buffer in live)
    outside = next((b for b in group if b.addr is not None and b.addr + b.nbytes > capacity), None)
    largest = _holder(outside or live[0])
    alone = len(live) == 1 or outside is not None
    what = f"{largest.name!r} does" if alone else f"{largest.name!r} and {len(live) - 1} more do"
    required, found = f"at most {capacity:,} bytes" + ("" if alone else " alive together"), _counted(total, len(live))
    if outside is not None:
        found = f"{largest.name!r} pinned to {outside.addr:,} to {outside.end:,}"
    elif total <= capacity:
        found += ", which cannot be packed: what is pinned, or lives on, divides the room"
    return CapacityError(
        f"{what} not fit {live[0].space.value} ({memory.name} of {target.name})",
        span=largest.span,
        required=required,
        found=found,
        help="pin it lower" if outside is not None else propose(live, capacity, target),
        notes=tuple(f"live at the peak: {_describe(buffer)}" for buffer in live),
    )


def pinned_error(one: Buffer, two: Buffer, memory: Memory, target: Target) -> CapacityError:
    """The error for two buffers that are pinned to the same bytes and alive together."""
    first, second = _holder(one), _holder(two)
    free = max(one.end, two.end)
    free = -(-free // memory.alignment) * memory.alignment
    return CapacityError(
        f"{first.name!r} and {second.name!r} are pinned to the same bytes of {two.space.value} "
        f"({memory.name} of {target.name}) and alive together",
        span=second.span,
        required=f"{second.name!r} outside bytes {one.start:,} to {one.end:,}",
        found=f"{second.name!r} pinned to {two.start:,} to {two.end:,}",
        help=f"pin it to {free:,}, or leave its address out",
        notes=(f"pinned there too: {_describe(one)}",),
    )


def _counted(total: int, count: int) -> str:
    return f"{total:,} bytes" + (f" in {count} buffers" if count > 1 else "")


def _peak_time(group: list[Buffer]) -> int:
    """The first time at which most bytes are alive."""
    pieces = [(first, last, b.nbytes) for b in group for first, last in b.ranges]
    changes = sorted(change for first, last, n in pieces for change in ((first, n), (last + 1, -n)))
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
    """``x [17, 40] FP32 (line 7): 2,720 bytes logical, 3,840 physical``: what has meaning, and what it occupies."""
    tile = _holder(buffer)
    kind = tile.type
    assert isinstance(kind, TileType)
    where = f" (line {tile.span.line})" if tile.span.line else ""
    logical = _logical(kind)
    nbytes = f"{buffer.nbytes:,} bytes"
    if logical is None:
        nbytes += " physical"
    elif logical != buffer.nbytes:
        nbytes = f"{logical:,} bytes logical, {buffer.nbytes:,} physical"
    return f"{tile.name} {_shape(kind)} {kind.dtype}{where}: {nbytes}"


def _logical(kind: TileType) -> int | None:
    """The bytes of the part that has meaning, when its extents are known."""
    extents = [extent for extent in kind.valid if isinstance(extent, int)]
    return -(-prod(extents) * kind.dtype.bits // 8) if len(extents) == kind.rank else None


def _shape(kind: TileType) -> str:
    extents = kind.valid if _logical(kind) is not None else kind.shape
    return str(list(extents))


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
