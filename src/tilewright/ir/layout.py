"""Where a tile lives and how its elements lie there.

A memory space is a *role*; a target resolves it to one of its memories. A `Layout` is the block layout (order of
boxes), the box layout (order of elements in a box) and the bytes of a box, as in the Ascend instruction set.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class MemorySpace(Enum):
    """Roles of memory. The value is the name in the language (``pl.Mem.Vec``)."""

    DDR = "DDR"
    MAT = "Mat"
    LEFT = "Left"
    RIGHT = "Right"
    ACC = "Acc"
    VEC = "Vec"
    BIAS = "Bias"
    LEFT_SCALE = "LeftScale"
    RIGHT_SCALE = "RightScale"

    def __repr__(self) -> str:
        return f"pl.Mem.{self.value}"


class BLayout(Enum):
    """Order of rows and columns, or of boxes where the tile is boxed."""

    ROW_MAJOR = "row_major"
    COL_MAJOR = "col_major"


class SLayout(Enum):
    """Order of elements within a box; `NONE_BOX` is a plain matrix."""

    NONE_BOX = "none_box"
    ROW_MAJOR = "row_major"
    COL_MAJOR = "col_major"


class Pad(Enum):
    """What stands between the valid and the physical shape."""

    NULL = 0
    ZERO = 1
    MAX = 2
    MIN = 3


class Compact(Enum):
    """Whether only valid data is laid out (`NORMAL`), so that the pitch follows the valid shape."""

    NULL = 0
    NORMAL = 1
    ROW_PLUS_ONE = 2


@dataclass(frozen=True, slots=True)
class Layout:
    """Two layouts are the same only if every field agrees (matmul R19, with pad and compact beside it)."""

    blayout: BLayout
    slayout: SLayout
    fractal: int = 512
    """Bytes of a box: 512 (16 x 32 B), 1024 (accumulator, 16 x 16 elements), 32 (MX scales)."""


ROW_MAJOR = Layout(BLayout.ROW_MAJOR, SLayout.NONE_BOX)
COL_MAJOR = Layout(BLayout.COL_MAJOR, SLayout.NONE_BOX)
NZ = Layout(BLayout.COL_MAJOR, SLayout.ROW_MAJOR)
ZN = Layout(BLayout.ROW_MAJOR, SLayout.COL_MAJOR)
NZ_ACC = Layout(BLayout.COL_MAJOR, SLayout.ROW_MAJOR, 1024)

_IMPLIED = {
    MemorySpace.MAT: NZ,
    MemorySpace.LEFT: NZ,
    MemorySpace.RIGHT: ZN,
    MemorySpace.ACC: NZ_ACC,
    MemorySpace.LEFT_SCALE: Layout(BLayout.ROW_MAJOR, SLayout.ROW_MAJOR, 32),
    MemorySpace.RIGHT_SCALE: Layout(BLayout.COL_MAJOR, SLayout.COL_MAJOR, 32),
}


def implied_layout(space: MemorySpace, shape: tuple[int, ...]) -> Layout:
    """The layout of a tile in `space` whose type states none. A column vector [M, 1] in an unboxed space is
    column-major, so that its elements are contiguous. A target whose memories are laid out otherwise has the
    difference written into the types by `legalize_layouts`."""
    boxed = _IMPLIED.get(space)
    if boxed is not None:
        return boxed
    return COL_MAJOR if len(shape) == 2 and shape[1] == 1 and shape[0] != 1 else ROW_MAJOR
