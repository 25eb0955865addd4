"""Windows of operands: what is read for one tile of a product, from the whole tile or from DDR again."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import Let
from tilewright.ir.op import Level, Op
from tilewright.ir.scalar import BinaryKind, Scalar, Shape, Value, binary, maximum, minimum
from tilewright.ir.types import TileType
from tilewright.ops.movement import Load, Move
from tilewright.ops.shape import Slice, TransposeView
from tilewright.passes.tile.tile_matmul.forms import Index
from tilewright.passes.tile.tile_matmul.windows import Window

Emit = Callable[[Op, Value], Value]
"""Appends an operation that stands for a part of a value, and returns its result."""


class Bring(Enum):
    """How an operand reaches the matrix engine's memories."""

    WHOLE = "whole"
    """it is on chip as a whole; windows are taken from it"""
    PANEL = "panel"
    """its rows (of the right operand: columns) for one tile of the result are loaded, all of K"""
    BLOCK = "block"
    """each window is loaded by itself"""


def load_of(value: Value, index: Index, space: MemorySpace = MemorySpace.MAT) -> Let | None:
    """The statement from whose tensor `value` comes unchanged, so that a part of it can be loaded to `space` instead:
    a load of which it is a plain view, or a result that is collected in DDR. None when it is more than that."""
    stmt = index.defs.get(value)
    if not isinstance(stmt, Let) or value in index.temporary:
        return stmt if isinstance(stmt, Let) else None
    match stmt.value:
        case Load() as op:
            return stmt if op.target_memory in (None, space) and len(op.shapes) == 2 else None
        case TransposeView() as op:
            return load_of(op.tile, index, space)
        case Slice() as op if not op.drop_dims and op.valid_shape is None and not op.clamp and op.pad_value is None:
            return load_of(op.tile, index, space)
        case Move() as op if op.target_memory in (None, space) and op.target_type is None:
            plain = (op.blayout, op.slayout, op.pad_value) == (None, None, None)
            return load_of(op.tile, index, space) if plain else None
        case _:
            return None


def view_chain(value: Value, index: Index) -> list[Let]:
    """The statements from `value` back to its load; none for what is collected in DDR."""
    found: list[Let] = []
    while value not in index.temporary:
        stmt = index.defs[value]
        assert isinstance(stmt, Let) and isinstance(stmt.value, Op)
        found.append(stmt)
        if isinstance(stmt.value, Load):
            return found
        value = next(operand for _, operand in stmt.value.operand_items())
    return found


def is_turned(value: Value, index: Index) -> bool:
    """Whether a plain view of a load shows it transposed."""
    turned = False
    for stmt in view_chain(value, index):
        op = stmt.value
        turned ^= isinstance(op, TransposeView) or (isinstance(op, Load) and op.transpose)
    return turned


def narrowed(value: Value, window: Window, index: Index, emit: Emit, scalar: Callable[[Scalar], Scalar]) -> Value:
    """A window of `value`, loaded from DDR. `scalar` gives what stands for the scalars of the old program, `emit` what
    stands for its values."""
    held, stmt = index.temporary.get(value), index.defs[value]
    if held is not None:
        assert isinstance(held, Load)
        return emit(_narrow_load(held, window, lambda extent: extent), value)
    assert isinstance(stmt, Let)
    op = stmt.value
    match op:
        case TransposeView():
            inner = narrowed(op.tile, window.turned, index, emit, scalar)
            return emit(op.replace(tile=inner), value)
        case Slice():
            return narrowed(op.tile, window.within(tuple(map(scalar, op.offset))), index, emit, scalar)
        case Move():
            return narrowed(op.tile, window, index, emit, scalar)
        case Load():
            return emit(_narrow_load(op, window, scalar), value)
        case _:
            raise AssertionError(f"{value.name} is no view of a load")


def _narrow_load(op: Load, window: Window, scalar: Callable[[Scalar], Scalar]) -> Load:
    """The part of a load that gives a window of its tile."""
    if op.transpose:
        window = window.turned
    offsets, extents = window.offsets, window.extents
    old = tuple(scalar(offset) for offset in op.offsets)
    rank = len(old)
    moved = [binary(BinaryKind.ADD, a, b) for a, b in zip(old[-2:], offsets[-min(2, rank) :], strict=True)]
    valid: Shape | None = None
    if op.valid_shape is not None:
        valid = _meant(tuple(map(scalar, op.valid_shape)), op.shapes, window)
    return op.replace(
        tensor=op.tensor,
        offsets=(*old[:-2], *moved),
        shapes=extents,
        valid_shape=None if valid == extents else valid,
        target_memory=op.target_memory,
    )


def part_of(valid: Scalar, physical: Scalar, offset: Scalar, extent: Scalar) -> Scalar:
    """How much of a window has meaning, along one dimension of a tile of which `valid` has."""
    if valid == physical:
        return extent
    if offset == 0 and extent == physical:
        return valid
    rest = binary(BinaryKind.SUB, valid, offset)
    if isinstance(rest, int) and isinstance(extent, int):
        return max(0, min(rest, extent))
    return maximum(minimum(rest, extent), 0)


def sliced(value: Value, window: Window, emit: Emit) -> Value:
    """A window of a tile where it lies; the tile itself when that is all of it."""
    kind = value.type
    assert isinstance(kind, TileType)
    if kind.shape == window.extents:
        return value
    valid = valid_part(kind, window)
    return emit(Slice(value, window.extents, window.offsets, valid, level=Level.TILE, span=value.span), value)


def valid_part(kind: TileType, window: Window) -> Shape:
    """How much of a window of a tile has meaning. Windows state it, so that it stays the same when the tile grows to
    whole boxes."""
    return _meant(kind.valid, kind.shape, window)


def _meant(valid: Shape, physical: Shape, window: Window) -> Shape:
    known = zip(window.meant, valid, physical, window.offsets, window.extents, strict=True)
    return tuple(part_of(*four) if given is None else given for given, *four in known)
