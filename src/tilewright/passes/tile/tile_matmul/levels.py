"""What is loaded whole, in panels, or block by block: the fewest bytes through DDR of what fits the big memory."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from tilewright.analysis.footprint import footprint
from tilewright.analysis.tile_chooser import L0Tile, Problem, Stationary, alignment
from tilewright.analysis.tile_model import round_up
from tilewright.ir.dtypes import DType
from tilewright.ir.layout import MemorySpace
from tilewright.ir.types import TileType
from tilewright.passes.tile.tile_matmul.operands import Bring
from tilewright.targets import Target


@dataclass(frozen=True, slots=True)
class Operand:
    """What is known of one operand before it is decided how to bring it."""

    dtype: DType
    shape: tuple[int, ...]
    can_load: bool
    """it comes from DDR unchanged, so that parts of it can be loaded"""
    in_loop: bool
    """it is made inside the loop that the grid goes around: each tile of the result makes it anew"""

    def options(self, in_place: bool, blocks: bool) -> tuple[Bring, ...]:
        if not self.can_load:
            return (Bring.WHOLE,)
        if in_place:
            return (Bring.WHOLE, Bring.BLOCK) if blocks else (Bring.WHOLE,)
        first = (Bring.PANEL,) if self.in_loop else (Bring.WHOLE, Bring.PANEL)
        return (*first, Bring.BLOCK) if blocks else first


@dataclass(frozen=True, slots=True)
class Choice:
    """How both operands are brought, and whether the grid's outer loop goes over rows."""

    lhs: Bring
    rhs: Bring
    rows_outside: bool


def choose(
    problem: Problem, tile: L0Tile, operands: tuple[Operand, Operand], target: Target, taken: int, *, in_place: bool
) -> Choice:
    """`taken`: bytes of the big memory that other tiles hold meanwhile. When nothing fits, what takes least room."""
    rows, cols, steps = tile.grid(problem)
    m, n, k = alignment(problem, target)
    room = target.capacity(MemorySpace.MAT) - taken
    lhs, rhs = operands
    found: list[tuple[bool, int, int, int, Choice]] = []
    orders = _orders(tile)
    options = product(
        lhs.options(in_place, steps > 1), rhs.options(in_place, steps > 1), range(len(orders))
    )  # fmt: skip
    for left, right, order in options:
        outside = orders[order]
        held = _bytes(left, lhs, (min(tile.m, problem.m), problem.k, tile.k), (m, k), target, 0)
        held += _bytes(right, rhs, (min(tile.n, problem.n), problem.k, tile.k), (n, k), target, 1)
        repeated = lhs.in_loop or rhs.in_loop
        once = outside and not repeated and left is not Bring.BLOCK
        traffic = _traffic(left, lhs, 1 if once else cols)
        once = not outside and not repeated and right is not Bring.BLOCK
        traffic += _traffic(right, rhs, 1 if once else rows)
        fits = held <= room
        found.append((not fits, 0 if fits else held, traffic, order, Choice(left, right, outside)))
    return min(found, key=lambda entry: entry[:-1])[-1]


def _orders(tile: L0Tile) -> tuple[bool, ...]:
    """Whether rows may go outside, preferred first: what is held decides."""
    match tile.stationary:
        case Stationary.A:
            return (True,)
        case Stationary.B:
            return (False,)
        case Stationary.OUTPUT:
            return (True, False)


def _bytes(
    bring: Bring, operand: Operand, extents: tuple[int, int, int], boxes: tuple[int, int], target: Target, side: int
) -> int:
    """Room in the big memory, in the boxes (outer, depth) of the whole way from there; blocks stream through two
    buffers."""
    outer, depth, step = extents
    match bring:
        case Bring.WHOLE:
            (outer, depth), copies = operand.shape[:: -1 if side else 1], 1
        case Bring.PANEL:
            copies = 1
        case Bring.BLOCK:
            depth, copies = step, 2
    rounded = round_up(outer, boxes[0]), round_up(depth, boxes[1])
    shape = rounded[::-1] if side else rounded
    return copies * footprint(TileType(shape, operand.dtype, MemorySpace.MAT), target)


def _traffic(bring: Bring, operand: Operand, times: int) -> int:
    """Bytes through DDR when a panel is brought `times` times."""
    if not operand.can_load:
        return 0
    size = operand.shape[0] * operand.shape[1] * operand.dtype.bits // 8
    return size if bring is Bring.WHOLE else size * times
