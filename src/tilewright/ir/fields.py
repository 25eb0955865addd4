"""The fields of an op class: what each holds, and the functions that mark them in a class body."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from tilewright.ir.layout import MemorySpace


class Level(Enum):
    """Whether an operation works on tensors in DDR or on tiles."""

    TENSOR = "tensor"
    TILE = "tile"


class Kind(Enum):
    """What a field holds."""

    OPERAND = "operand"
    """an SSA value (tensor or tile); with ``scalar=True`` also a scalar"""
    SCALAR = "scalar"
    """one scalar expression"""
    SCALARS = "scalars"
    """a tuple of scalar expressions (offsets, shapes)"""
    ATTRIBUTE = "attribute"
    """static data: a dtype, a flag, a memory space"""


@dataclass(slots=True)
class Field:
    """One field of an op class. `levels` limits it to one form; `scratch` marks an operand that hardware wants and
    users may leave out (`materialize_scratch` fills it)."""

    kind: Kind
    spaces: tuple[MemorySpace, ...] = ()
    default: Any = ...
    levels: tuple[Level, ...] = (Level.TENSOR, Level.TILE)
    aliases: tuple[str, ...] = ()
    scalar: bool = False
    scratch: bool = False
    variadic: bool = False
    ddr: bool = False
    name: str = ""
    annotation: str = ""
    """the type that its class states, as it is written there"""

    @property
    def required(self) -> bool:
        return self.default is ...


def operand(
    *,
    spaces: tuple[MemorySpace, ...] = (),
    default: Any = ...,
    levels: tuple[Level, ...] = (Level.TENSOR, Level.TILE),
    aliases: tuple[str, ...] = (),
    scalar: bool = False,
    scratch: bool = False,
    ddr: bool = False,
) -> Any:
    """A tensor or tile. `spaces`: the memories in which the tile form reads it, preferred first; empty accepts any.
    `ddr`: the tile form also takes a tensor, and leaves it in DDR.
    `scalar=True`: a scalar may stand there instead, which is the op's scalar form."""
    return Field(
        Kind.OPERAND, spaces, None if scratch and default is ... else default, levels, aliases, scalar, scratch, ddr=ddr
    )


def scalar(
    *, default: Any = ..., levels: tuple[Level, ...] = (Level.TENSOR, Level.TILE), aliases: tuple[str, ...] = ()
) -> Any:
    """One scalar expression."""
    return Field(Kind.SCALAR, default=default, levels=levels, aliases=aliases)


def scalars(
    *, default: Any = ..., levels: tuple[Level, ...] = (Level.TENSOR, Level.TILE), aliases: tuple[str, ...] = ()
) -> Any:
    """A tuple of scalar expressions: offsets, a shape."""
    return Field(Kind.SCALARS, default=default, levels=levels, aliases=aliases)


def attribute(
    *, default: Any = ..., levels: tuple[Level, ...] = (Level.TENSOR, Level.TILE), aliases: tuple[str, ...] = ()
) -> Any:
    """Static, hashable data."""
    return Field(Kind.ATTRIBUTE, default=default, levels=levels, aliases=aliases)
