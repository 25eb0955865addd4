"""On-chip memory as bytes: one array per space, and tiles that say where in it each of their elements lies.

Fresh memory holds `POISON`, the byte pair a5 ff: read as f16, bf16 or f32 it is NaN, read as an integer it is a large
negative number that no test computes by chance, so a tile that is read before it is written shows in the result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tilewright.codegen.pto.tables import acc_row_unit, footprint
from tilewright.codegen.pto.types import TileType
from tilewright.errors import PTOError

Array = npt.NDArray[Any]
Indices = npt.NDArray[np.int64]

POISON = 0xFFA5
"""A pair of bytes, as a little-endian integer."""
GRANULE = 32
"""Bytes that one access of on-chip memory moves at least: what races are found by."""

DTYPES: dict[str, np.dtype[np.generic]] = {
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "index": np.dtype(np.int64),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
}
"""NumPy's dtype for each element type."""


def poisoned(nbytes: int) -> npt.NDArray[np.uint8]:
    """`nbytes` of fresh memory."""
    return np.full(-(-nbytes // 2), POISON, "<u2").view(np.uint8)[:nbytes]


class Space:
    """The bytes of one memory space, with a typed view of the whole for each element type."""

    def __init__(self, name: str, nbytes: int) -> None:
        self.name = name
        self.data = poisoned(-(-nbytes // 512) * 512)
        self._views: dict[str, Array] = {"i8": self.data.view(np.int8)}

    def view(self, dtype: str) -> Array:
        """All bytes as elements of `dtype`."""
        view = self._views.get(dtype)
        if view is None:
            view = self._views[dtype] = self.data.view(DTYPES[dtype])
        return view


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the elements of a matrix lie, in elements from its start. `rows` and `cols` are pitches."""

    rows: int
    cols: int
    box: tuple[int, int]
    blocks_by_column: bool
    box_by_column: bool

    @staticmethod
    def of(kind: TileType) -> Layout:
        """The layout that `kind` states."""
        return Layout(kind.rows, kind.cols, kind.box, kind.blayout == "col_major", kind.slayout == "col_major")


@lru_cache(maxsize=4096)
def offsets(layout: Layout, row: int, col: int, rows: int, cols: int) -> Indices:
    """Offsets, in elements, of the `rows` x `cols` elements from (row, col). Shape [rows, cols]; do not write to it."""
    i = np.arange(row, row + rows, dtype=np.int64)[:, None]
    j = np.arange(col, col + cols, dtype=np.int64)[None, :]
    box_rows, box_cols = layout.box
    if layout.blocks_by_column:
        block = (j // box_cols) * -(-layout.rows // box_rows) + i // box_rows
    else:
        block = (i // box_rows) * -(-layout.cols // box_cols) + j // box_cols
    r, c = i % box_rows, j % box_cols
    inner = c * box_rows + r if layout.box_by_column else r * box_cols + c
    found = block * (box_rows * box_cols) + inner
    found.setflags(write=False)
    return found


def window(flat: Array, layout: Layout, box: tuple[int, int, int, int]) -> Array | None:
    """A view of a box (row, column, rows, columns) of the matrix that lies at the start of `flat`.

    Shape [rows, columns], or [row boxes, rows of a box, column boxes, columns of a box] of a matrix of boxes; None
    when the box cuts one of those.
    """
    (box_rows, box_cols), (row, col, rows, cols) = layout.box, box
    if row % box_rows or col % box_cols or rows % box_rows or cols % box_cols:
        return None
    high, wide = -(-layout.rows // box_rows), -(-layout.cols // box_cols)
    outer = (wide, high) if layout.blocks_by_column else (high, wide)
    inner = (box_cols, box_rows) if layout.box_by_column else (box_rows, box_cols)
    axes = (1, 0) if layout.blocks_by_column else (0, 1)
    turned = (3, 2) if layout.box_by_column else (2, 3)
    whole = flat[: high * wide * box_rows * box_cols].reshape(*outer, *inner)
    view = whole.transpose(axes[0], turned[0], axes[1], turned[1])
    part = view[row // box_rows : (row + rows) // box_rows, :, col // box_cols : (col + cols) // box_cols, :]
    return part[:, 0, :, 0] if layout.box == (1, 1) else part


@lru_cache(maxsize=4096)
def granules(layout: Layout, row: int, col: int, rows: int, cols: int, itemsize: int, start: int) -> Indices:
    """Which granules, counted from the space's start, hold the elements of `offsets` when the matrix is at `start`."""
    return np.unique((offsets(layout, row, col, rows, cols) * itemsize + start) // GRANULE)


@lru_cache(maxsize=4096)
def _extremes(layout: Layout, row: int, col: int, rows: int, cols: int) -> tuple[int, int]:
    found = offsets(layout, row, col, rows, cols)
    return int(found.min()), int(found.max())


@lru_cache(maxsize=1024)
def same_positions(a: Layout, b: Layout, rows: int, cols: int) -> bool:
    """Whether two layouts put the first `rows` x `cols` elements at the same places."""
    return a == b or bool((offsets(a, 0, 0, rows, cols) == offsets(b, 0, 0, rows, cols)).all())


@dataclass(slots=True)
class Tile:
    """A tile at run time: where it is, how it lies, how much of it is valid. `set_validshape` changes it in place."""

    kind: TileType
    space: Space
    address: int
    """Bytes from the start of the space, of the matrix that `layout` describes."""
    layout: Layout
    v_row: int
    v_col: int
    row0: int = 0
    col0: int = 0
    """Where in that matrix this tile begins; not 0 for a `subset` only."""

    @property
    def valid(self) -> tuple[int, int]:
        return self.v_row, self.v_col

    @property
    def nbytes(self) -> int:
        """Bytes from `address` to the end of the matrix."""
        return self.layout.rows * self.layout.cols * self.kind.itemsize

    def span(self) -> tuple[int, int]:
        """First byte, and the one after the last, of the valid elements."""
        if not self.v_row or not self.v_col:
            return self.address, self.address
        first, last = _extremes(self.layout, self.row0, self.col0, self.v_row, self.v_col)
        size = self.kind.itemsize
        return self.address + first * size, self.address + (last + 1) * size

    def place(self) -> _Place:
        """Everything that says which bytes the valid elements take, but the address."""
        return self.layout, self.row0, self.col0, self.v_row, self.v_col, self.kind.itemsize

    def box_pitch(self, arch: str) -> Layout:
        """The layout as the cube and the mover out of the accumulator see it: a compact tile is packed by its
        valid shape, another keeps its physical pitch."""
        if self.kind.compact != 1:
            return self.layout
        return packed(self.layout, self.v_row, self.v_col, self.kind, arch)


def packed(layout: Layout, v_row: int, v_col: int, kind: TileType, arch: str) -> Layout:
    """`layout` with its pitch made as small as a valid shape of `v_row` x `v_col` lets it be."""
    box_rows, box_cols = kind.box
    unit = acc_row_unit(kind.dtype, arch) if kind.loc == "acc" else box_rows
    return replace(layout, rows=-(-v_row // unit) * unit, cols=-(-v_col // box_cols) * box_cols)


def check_inside(tile: Tile, arch: str, capacity: int) -> None:
    """Refuse a tile that leaves its space."""
    end = tile.address + footprint(tile.kind, arch)
    if tile.address < 0 or end > capacity:
        raise PTOError(
            f"a tile lies outside {tile.kind.loc}",
            required=f"bytes 0 to {capacity}",
            found=f"bytes {tile.address} to {end}, of {tile.kind}",
        )


_Place = tuple[Layout, int, int, int, int, int]


def overlaps(a: Tile, b: Tile) -> bool:
    """Whether the valid elements of two tiles share a byte."""
    if a.space is not b.space:
        return False
    (a0, a1), (b0, b1) = a.span(), b.span()
    if a0 >= b1 or b0 >= a1:
        return False
    return _share_bytes(a.place(), b.place(), b.address - a.address)


@lru_cache(maxsize=4096)
def _share_bytes(a: _Place, b: _Place, distance: int) -> bool:
    """Whether two places share a byte, the second matrix starting `distance` bytes after the first."""
    taken = [(offsets(*place[:5]).reshape(-1, 1) * place[5] + np.arange(place[5])).reshape(-1) for place in (a, b)]
    return bool(np.isin(taken[0], taken[1] + distance, assume_unique=True).any())


def same_place(a: Tile, b: Tile) -> bool:
    """Whether two tiles put equal indices at the same bytes."""
    return (
        a.space is b.space
        and a.address == b.address
        and (a.row0, a.col0) == (b.row0, b.col0)
        and a.kind.itemsize == b.kind.itemsize
        and a.layout == b.layout
    )
