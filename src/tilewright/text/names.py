"""How the constants of the language are spelled: one table for the printer, the reader and the names users import.

Before:  MemorySpace.VEC, Pad.ZERO, BLayout.ROW_MAJOR, dtypes.FP32
After:   pl.Mem.Vec, pl.PadValue.zero, pl.BLayout.row_major, pl.FP32
"""

from __future__ import annotations

from enum import Enum

from tilewright.ir.dtypes import DType
from tilewright.ir.function import FunctionKind
from tilewright.ir.layout import BLayout, Compact, MemorySpace, Pad, SLayout


class Level(Enum):
    """Which part of the machine a section runs on."""

    CORE_GROUP = "CORE_GROUP"
    CORE = "CORE"
    CLUSTER = "CLUSTER"
    AIC = "AIC"
    AIV = "AIV"
    CHIP = "CHIP"
    HOST = "HOST"


class TileLayout(Enum):
    """The order of elements as users write it, for blocks and boxes alike (``blayout=pl.TileLayout.row_major``)."""

    ROW_MAJOR = "row_major"
    COL_MAJOR = "col_major"
    NONE_BOX = "none_box"

    @property
    def block(self) -> BLayout:
        """As the order of blocks. Raises `ValueError` for `none_box`, which only a box can be."""
        return BLayout(self.value)

    @property
    def box(self) -> SLayout:
        """As the order within a box."""
        return SLayout(self.value)


class TensorLayout(Enum):
    """How a tensor's last two dimensions lie in DDR: row-major, column-major, or in boxes."""

    ND = "ND"
    DN = "DN"
    NZ = "NZ"


class SplitMode(Enum):
    """Along which axis a group of vector cores shares a tile."""

    NONE = "NONE"
    UP_DOWN = "UP_DOWN"
    LEFT_RIGHT = "LEFT_RIGHT"


ENUMS: dict[str, type[Enum]] = {
    "Mem": MemorySpace,
    "MemorySpace": MemorySpace,
    "PadValue": Pad,
    "BLayout": BLayout,
    "SLayout": SLayout,
    "TileLayout": TileLayout,
    "TensorLayout": TensorLayout,
    "CompactMode": Compact,
    "FunctionType": FunctionKind,
    "Level": Level,
    "SplitMode": SplitMode,
}
"""Enums of the language by the name after ``pl.``; the first name of an enum is the one that is printed."""


def spell_member(member: Enum) -> str:
    """The name of a member after its enum: ``Vec``, ``zero``, ``row_major``, ``CORE_GROUP``."""
    return member.value if isinstance(member.value, str) else member.name.lower()


_SPELLINGS: dict[Enum, str] = {}

for _enum_name, _enum in ENUMS.items():
    for _member in _enum:
        _SPELLINGS.setdefault(_member, f"pl.{_enum_name}.{spell_member(_member)}")


def spelling(value: DType | Enum) -> str:
    """How text spells a constant: ``pl.Mem.Vec``, ``pl.FP32``."""
    if isinstance(value, DType):
        return f"pl.{value.name}"
    found = _SPELLINGS.get(value)
    return f"pl.{type(value).__name__}.{value.name}" if found is None else found


def enum_member(enum_name: str, member: str) -> Enum | None:
    """What ``pl.<enum_name>.<member>`` stands for; None when it is nothing. A member's Python name (``ZERO``) is
    understood too."""
    for candidate in ENUMS.get(enum_name, ()):
        if member in (spell_member(candidate), candidate.name):
            return candidate
    return None
