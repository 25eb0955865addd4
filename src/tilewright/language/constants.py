"""Constants of the language: dtypes, memory spaces, layouts and kinds, as ``pl.FP32`` and ``pl.Mem.Vec``."""

from __future__ import annotations

from typing import Final

from tilewright.ir import dtypes
from tilewright.ir.function import FunctionKind
from tilewright.ir.layout import BLayout as _BLayout
from tilewright.ir.layout import Compact, MemorySpace, Pad
from tilewright.ir.layout import SLayout as _SLayout
from tilewright.text.names import TileLayout as _TileLayout


class Mem:
    """Memory spaces: roles, which a target resolves to its own memories."""

    DDR: Final = MemorySpace.DDR
    Mat: Final = MemorySpace.MAT
    Left: Final = MemorySpace.LEFT
    Right: Final = MemorySpace.RIGHT
    Acc: Final = MemorySpace.ACC
    Vec: Final = MemorySpace.VEC
    Bias: Final = MemorySpace.BIAS
    LeftScale: Final = MemorySpace.LEFT_SCALE
    RightScale: Final = MemorySpace.RIGHT_SCALE


class PadValue:
    """What stands between a tile's valid and physical shape."""

    null: Final = Pad.NULL
    zero: Final = Pad.ZERO
    max: Final = Pad.MAX
    min: Final = Pad.MIN


class BLayout:
    """Order of rows and columns, or of boxes where a tile is boxed."""

    row_major: Final = _BLayout.ROW_MAJOR
    col_major: Final = _BLayout.COL_MAJOR


class SLayout:
    """Order of elements within a box."""

    none_box: Final = _SLayout.NONE_BOX
    row_major: Final = _SLayout.ROW_MAJOR
    col_major: Final = _SLayout.COL_MAJOR


class TileLayout:
    """Order of elements, for `blayout` and `slayout` alike."""

    none_box: Final = _TileLayout.NONE_BOX
    row_major: Final = _TileLayout.ROW_MAJOR
    col_major: Final = _TileLayout.COL_MAJOR


class CompactMode:
    """Whether only valid data is laid out."""

    null: Final = Compact.NULL
    normal: Final = Compact.NORMAL
    row_plus_one: Final = Compact.ROW_PLUS_ONE


class FunctionType:
    """What a function of a program is for."""

    Orchestration: Final = FunctionKind.ORCHESTRATION
    InCore: Final = FunctionKind.INCORE
    Inline: Final = FunctionKind.INLINE
    Opaque: Final = FunctionKind.OPAQUE


class DataType:
    """Element types, which are also names of `pl` themselves."""

    BF16: Final = dtypes.BF16
    BOOL: Final = dtypes.BOOL
    FP8E4M3FN: Final = dtypes.FP8E4M3FN
    FP8E5M2: Final = dtypes.FP8E5M2
    FP16: Final = dtypes.FP16
    FP32: Final = dtypes.FP32
    INDEX: Final = dtypes.INDEX
    INT4: Final = dtypes.INT4
    INT8: Final = dtypes.INT8
    INT16: Final = dtypes.INT16
    INT32: Final = dtypes.INT32
    INT64: Final = dtypes.INT64
    UINT8: Final = dtypes.UINT8
    UINT16: Final = dtypes.UINT16
    UINT32: Final = dtypes.UINT32
    UINT64: Final = dtypes.UINT64
