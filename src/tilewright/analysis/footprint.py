"""Bytes that a tile occupies: the one place where they are computed.

The tile chooser, the planner of addresses, capacity errors and hints all call `footprint`, so that none of them can
believe in another size than the rest. (The certificate's checker computes its own, and a test holds the two equal.)
"""

from __future__ import annotations

from math import prod

from tilewright.errors import CapacityError, VerifyError
from tilewright.ir.dtypes import BOOL
from tilewright.ir.layout import Layout, MemorySpace
from tilewright.ir.types import TileType
from tilewright.targets import Target

LIMIT = 1 << 62
"""Bytes at which an address no longer fits the machine's 64-bit arithmetic."""

MASK_ROW_BYTES = 32
"""A packed mask's row is a multiple of so many bytes on Ascend (assembler)."""


def footprint(tile: TileType, target: Target) -> int:
    """Bytes that a tile of type `tile` occupies in its space of `target`.

    The last two dimensions are rounded up to the box of the tile's layout and element type (and to the row multiple
    that the memory has for the type); leading dimensions are a batch of such tiles. Masks are bit-packed where the
    machine compares into packed masks. Raises `VerifyError` for a tile without a space, `CapacityError` past 2**62."""
    if tile.space is None:
        raise VerifyError("a tile without a memory space has no footprint", found=repr(tile))
    shape = tile.static_shape
    if packs_masks(target) and tile.dtype is BOOL:
        nbytes = _packed_mask(shape)
    else:
        nbytes = -(-prod(physical(tile, target)) * tile.dtype.bits // 8)
    if nbytes >= LIMIT:
        raise CapacityError(
            "a tile is larger than any memory", required=f"under {LIMIT} bytes", found=f"{nbytes} bytes for {tile!r}"
        )
    return nbytes


def physical(tile: TileType, target: Target) -> tuple[int, ...]:
    """The shape of `tile` rounded up to whole boxes of its layout in its space."""
    assert tile.space is not None
    if packs_masks(target) and tile.dtype is BOOL:  # rows of bits, whose padding the footprint counts
        return tile.static_shape
    return target.physical_shape(tile.space, tile.static_shape, tile.dtype, layout_on(tile, target))


def layout_on(tile: TileType, target: Target) -> Layout:
    """How `tile` lies on `target`: as its type says, else as the target's memory does."""
    assert tile.space is not None
    return tile.view.layout or target.layout(tile.space, tile.static_shape)


def packs_masks(target: Target) -> bool:
    """Whether a comparison gives one bit per element (Ascend), rather than one byte."""
    return target.family == "ascend"


def fits(tile: TileType, target: Target) -> bool:
    """Whether one such tile fits its space on its own."""
    space = tile.space or MemorySpace.DDR
    return footprint(tile, target) <= target.capacity(space)


def _packed_mask(shape: tuple[int, ...]) -> int:
    """A row of C elements takes ceil(C / 8) bytes, rounded up to 32."""
    if not shape:
        return MASK_ROW_BYTES
    row = -(-shape[-1] // 8)
    return prod(shape[:-1]) * -(-row // MASK_ROW_BYTES) * MASK_ROW_BYTES
