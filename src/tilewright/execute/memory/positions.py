"""Where each element of a tile lies: in bytes from the tile's first byte, of a packed mask in bits.

Boxes, the pitch of rows and columns, packing by the valid shape and masks of one bit per element are those of the
tile's type on the target, so that what one operation leaves is read back right only by one that agrees about them.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from tilewright.analysis.footprint import MASK_ROW_BYTES, layout_on, packs_masks, physical
from tilewright.errors import UnsupportedError
from tilewright.ir.dtypes import BOOL
from tilewright.ir.layout import BLayout, Compact, Layout, MemorySpace, SLayout
from tilewright.ir.types import TileType
from tilewright.targets import Target

Indices = npt.NDArray[np.int64]
PACKED_BY_ENGINE = (MemorySpace.LEFT, MemorySpace.RIGHT, MemorySpace.ACC)
"""What the matrix engine itself reads and writes: there a compact tile has the pitch of its valid shape; elsewhere the
mark is only handed on."""
OUTSIDE = -1
"""The position of an element for which a packed tile has no room: outside of its valid part, rounded to boxes."""


def is_packed(kind: TileType, target: Target) -> bool:
    """Whether the elements are single bits."""
    return kind.dtype is BOOL and packs_masks(target)


@lru_cache(maxsize=4096)
def positions(kind: TileType, target: Target, valid: tuple[int, ...]) -> Indices:
    """The position of each element, in the physical shape of `kind`, whose valid shape is `valid` at run time.

    Do not write to it. Raises `UnsupportedError` for elements of less than a byte that are not masks."""
    shape = kind.static_shape
    if is_packed(kind, target):
        found = _bits(shape)
    else:
        if kind.dtype.bits < 8:
            raise UnsupportedError("the memory machine has no elements of less than a byte", found=repr(kind))
        found = _elements(kind, target, valid) * kind.dtype.nbytes
        found[found < 0] = OUTSIDE
    found.setflags(write=False)
    return found


def _bits(shape: tuple[int, ...]) -> Indices:
    columns = shape[-1] if shape else 1
    pitch = -(-columns // (8 * MASK_ROW_BYTES)) * 8 * MASK_ROW_BYTES
    rows = np.arange(prod(shape[:-1]), dtype=np.int64)[:, None] * pitch
    return (rows + np.arange(columns)[None, :]).reshape(shape)


def _elements(kind: TileType, target: Target, valid: tuple[int, ...]) -> Indices:
    """Positions in elements."""
    shape = kind.static_shape
    whole = physical(kind, target)
    assert kind.space is not None
    layout = layout_on(kind, target)
    box = target.box(kind.space, layout, kind.dtype, shape)
    (rows, columns), pitch = _matrix(shape), _matrix(whole)
    if kind.space in PACKED_BY_ENGINE and kind.view.compact is Compact.NORMAL and len(valid) >= 2:
        pitch = tuple(max(1, -(-extent // side)) * side for extent, side in zip(valid[-2:], box, strict=True))
    one = _in_matrix(layout, (rows, columns), (pitch[0], pitch[1]), box)
    batch = np.arange(prod(shape[:-2]), dtype=np.int64)[:, None, None] * (pitch[0] * pitch[1])
    return np.where(one < 0, OUTSIDE, one + batch).reshape(shape)


def _matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    return (1, *(shape or (1,)))[-2:]  # type: ignore[return-value]


def _in_matrix(layout: Layout, shape: tuple[int, int], pitch: tuple[int, int], box: tuple[int, int]) -> Indices:
    i = np.arange(shape[0], dtype=np.int64)[:, None]
    j = np.arange(shape[1], dtype=np.int64)[None, :]
    by_column = layout.blayout is BLayout.COL_MAJOR
    if layout.slayout is SLayout.NONE_BOX:
        found = j * pitch[0] + i if by_column else i * pitch[1] + j
    else:
        (high, wide), (r, c) = box, (i % box[0], j % box[1])
        block = (j // wide) * -(-pitch[0] // high) + i // high if by_column else (i // high) * -(-pitch[1] // wide) + (
            j // wide
        )  # fmt: skip
        inner = c * high + r if layout.slayout is SLayout.COL_MAJOR else r * wide + c
        found = block * (high * wide) + inner
    return np.where((i < pitch[0]) & (j < pitch[1]), found, OUTSIDE)
