"""Tiles of any number of dimensions as tiles of two: leading dimensions are multiplied into the rows.

[N] is [1, N]; [B, M, N] is [B * M, N], element [b, m, n] at [b * M + m, n]. The valid part must be a box of the rows
as well: after the first leading dimension that is longer than 1, all others are valid throughout.
"""

from __future__ import annotations

from tilewright.errors import UnsupportedError, ValidShapeError
from tilewright.ir.op import Op
from tilewright.ir.scalar import BinaryKind, Scalar, Shape, binary
from tilewright.ir.types import TileType, TileView


def flat_shape(shape: Shape) -> Shape:
    """`shape` as rows and columns."""
    rows: Scalar = 1
    for extent in shape[:-1]:
        rows = binary(BinaryKind.MUL, rows, extent)
    return (rows, shape[-1])


def flat_offsets(shape: Shape, offsets: Shape) -> Shape:
    """The row and column of the element at `offsets` of a tile of `shape`."""
    row: Scalar = 0
    for extent, offset in zip(shape[:-1], offsets[:-1], strict=True):
        row = binary(BinaryKind.ADD, binary(BinaryKind.MUL, row, extent), offset)
    return (row, offsets[-1])


def flat_valid(shape: Shape, valid: Shape) -> Shape:
    """The valid rows and columns of a tile of `shape`. Raises `ValidShapeError` when they are no box."""
    rows: Scalar = 1
    partial = False
    for extent, part in zip(shape[:-1], valid[:-1], strict=True):
        if partial and part != extent:
            raise ValidShapeError(
                "the valid part of a tile of more than two dimensions is no box of its rows",
                required="valid throughout in every dimension between the first and the columns",
                found=f"{list(valid)} of {list(shape)}",
                help="take one index of the leading dimension at a time, in a loop",
            )
        rows = binary(BinaryKind.MUL, rows, part)
        partial = partial or extent != 1
    return (rows, valid[-1])


def check_rows(op: Op, shape: Shape, window: Shape) -> None:
    """Raises `UnsupportedError` unless a window of a tile of `shape` is a run of its rows."""
    first = next((axis for axis, extent in enumerate(window[:-1]) if extent != 1), len(shape))
    if all(window[axis] == shape[axis] for axis in range(first + 1, len(shape) - 1)):
        return
    raise UnsupportedError(
        f"{op.qualified_name} takes a part of a tile that is no run of its rows",
        span=op.span,
        required="one index of each leading dimension, or all of them",
        found=f"{list(window)} of {list(shape)}",
        help="loop over the leading dimensions",
    )


def flat_type(kind: TileType) -> TileType:
    """`kind` with two dimensions; itself when it has two."""
    if kind.rank == 2:
        return kind
    view = kind.view
    flat = TileView(flat_valid(kind.shape, kind.valid), layout=view.layout, pad=view.pad, compact=view.compact)
    return TileType(flat_shape(kind.shape), kind.dtype, kind.space, flat, kind.memref)
