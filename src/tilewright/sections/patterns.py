"""Which tiles of its tensor a load or store addresses, for each work item and in which order.

A tile is a box of the tensor. An affine pattern gives its offsets as sums of terms in the item's coordinate and in the
ordinal of the sub-block; a listed one names the tiles item by item; an opaque one cannot say. Two accesses agree when
they address the same tiles in the same order, which is asked either by listing both (`tiles_at`) or, for affine
patterns, as equality of integer maps (`sections.maps`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import product

Coord = tuple[int, ...]
Blocks = tuple[int, int]
"""Rows and columns of sub-blocks, ordered row by row."""
Extent = int | str
"""Elements; a name where the extent is known at run time only."""
ONE_BLOCK: Blocks = (1, 1)


@dataclass(frozen=True, slots=True)
class Tile:
    """One box of a tensor: first element and extents, in elements per dimension."""

    offsets: tuple[int, ...]
    extents: tuple[Extent, ...]

    def __str__(self) -> str:
        return f"{list(self.offsets)}+{list(self.extents)}"


@dataclass(frozen=True, slots=True)
class Term:
    """``coefficient * (x // divisor % modulus)``, where `x` is coordinate number `index` of the item. `modulus` 0:
    none is taken."""

    coefficient: int
    index: int = 0
    divisor: int = 1
    modulus: int = 0

    def at(self, x: int) -> int:
        part = x // self.divisor
        return self.coefficient * (part % self.modulus if self.modulus else part)


@dataclass(frozen=True, slots=True)
class Affine:
    """A sum of terms in the item's coordinate, and a constant."""

    constant: int = 0
    terms: tuple[Term, ...] = ()

    def at(self, coord: Coord) -> int:
        return self.constant + sum(term.at(coord[term.index]) for term in self.terms)


class Axis(Enum):
    """What an address steps with: the work item, or the row or column of the sub-block within it."""

    ITEM = "item"
    ROW = "row"
    COLUMN = "column"


@dataclass(frozen=True, slots=True)
class Step:
    """The address moves along `dim` of the tensor by `term` of the item's coordinate, or of the sub-block's row or
    column (`Term.index` is then not read)."""

    axis: Axis
    dim: int
    term: Term

    def at(self, coord: Coord, row: int, column: int) -> int:
        match self.axis:
            case Axis.ITEM:
                return self.term.at(coord[self.term.index])
            case Axis.ROW:
                return self.term.at(row)
            case Axis.COLUMN:
                return self.term.at(column)


@dataclass(frozen=True, slots=True)
class AffinePattern:
    """Tiles of `extents` at `offsets`, plus `steps`. A map names its tile by `offsets` alone; `steps` say that the
    address moves as a matmul's does, whose items and sub-blocks are laid out by a plan."""

    extents: tuple[Extent, ...]
    offsets: tuple[Affine, ...]
    steps: tuple[Step, ...] = ()

    def tiles_at(self, coord: Coord, sub_blocks: Blocks = ONE_BLOCK) -> tuple[Tile, ...] | None:
        """The tiles addressed for the item at `coord`, sub-blocks row by row; None when they cannot be listed."""
        base = [offset.at(coord) for offset in self.offsets]
        if not self.steps:
            return (Tile(tuple(base), self.extents),) * (sub_blocks[0] * sub_blocks[1])
        tiles: list[Tile] = []
        for row, column in product(range(sub_blocks[0]), range(sub_blocks[1])):
            moved = list(base)
            for step in self.steps:
                moved[step.dim] += step.at(coord, row, column)
            tiles.append(Tile(tuple(moved), self.extents))
        return tuple(tiles)


@dataclass(frozen=True, slots=True)
class ListedPattern:
    """The tiles of each item, written out; an item that is not in the table cannot be listed. `steps` only say
    whether the address steps."""

    table: tuple[tuple[Coord, tuple[Tile, ...]], ...]
    steps: tuple[Step, ...] = ()

    def tiles_at(self, coord: Coord, sub_blocks: Blocks = ONE_BLOCK) -> tuple[Tile, ...] | None:
        """As `AffinePattern.tiles_at`; one tile must be listed per sub-block."""
        for key, tiles in self.table:
            if key == coord and len(tiles) == sub_blocks[0] * sub_blocks[1]:
                return tiles
        return None


@dataclass(frozen=True, slots=True)
class OpaquePattern:
    """Tiles that depend on data, or on scalars that only the run knows. `reason` says which."""

    reason: str
    steps: tuple[Step, ...] = ()

    def tiles_at(self, coord: Coord, sub_blocks: Blocks = ONE_BLOCK) -> tuple[Tile, ...] | None:
        """Never: nothing is known."""
        return None


Pattern = AffinePattern | ListedPattern | OpaquePattern


def whole(*extents: Extent) -> AffinePattern:
    """The pattern of an access to one box at the origin."""
    return AffinePattern(extents, tuple(Affine() for _ in extents))
