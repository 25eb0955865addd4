"""Rectangles of a result, and the runs of equal ones that a loop covers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.ir.scalar import BinaryKind, Scalar, Shape, binary


@dataclass(frozen=True, slots=True)
class Window:
    """`rows` x `cols` elements at [row, col]."""

    row: Scalar
    rows: int
    col: Scalar
    cols: int
    meant: tuple[Scalar | None, Scalar | None] = (None, None)
    """how much of it has meaning, along a dimension where whoever reads it decides that; None: what its tile says"""

    @property
    def offsets(self) -> tuple[Scalar, Scalar]:
        return self.row, self.col

    @property
    def extents(self) -> tuple[int, int]:
        return self.rows, self.cols

    @property
    def turned(self) -> Window:
        """The same elements of the transposed tile."""
        rows, cols = self.meant
        return Window(self.col, self.cols, self.row, self.rows, (cols, rows))

    def within(self, offsets: Shape) -> Window:
        """The same elements of the tile of which this one is the part at `offsets`."""
        row, col = (binary(BinaryKind.ADD, a, b) for a, b in zip(self.offsets, offsets, strict=True))
        return Window(row, self.rows, col, self.cols, self.meant)


@dataclass(frozen=True, slots=True)
class Segment:
    """Parts of `size` from `start` up to `stop`, which a run-time extent may cut short in the last one."""

    start: int
    stop: Scalar
    size: int

    @property
    def single(self) -> bool:
        return isinstance(self.stop, int) and self.stop <= self.start + self.size


def segments(extent: Scalar, size: int, start: int = 0, limit: Scalar | None = None) -> Iterator[Segment]:
    """`extent` from `start` in parts of `size`: those of full size, then what is left, which has its own size. An
    extent that is known only at run time gives one run of parts of full size; one part, where it is at most `limit`
    and that is no more."""
    if not isinstance(extent, int):
        if not isinstance(limit, int) or limit > start + size:
            yield Segment(start, extent, size)
        elif limit > start:
            yield Segment(start, start + size, size)
        return
    full = start + (extent - start) // size * size
    if full > start:
        yield Segment(start, full, size)
    if full < extent:
        yield Segment(full, extent, extent - full)
