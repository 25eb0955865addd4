"""Tiles that are made of nothing: all zeros, or nothing yet."""

from __future__ import annotations

import numpy as np

from tilewright.ir.op import Level, Op, operand_values
from tilewright.ir.scalar import constant_value


def is_zero_fill(op: Op) -> bool:
    """Whether every element of the tile that `op` makes is +0: asked of the op's own meaning."""
    if op.level is not Level.TILE or any(True for _ in op.operand_items()) or op.effect.value != "pure":
        return False
    fields = [value for _, value in operand_values(op)]
    if not all(_is_constant(value) for value in fields):
        return False
    given = [_number(value) for value in fields]
    defined = op.defined(*given)
    if defined is None or not np.size(defined) or not np.all(defined):
        return False
    array = np.asarray(op.evaluate(*given))
    return not array.any() and not np.signbit(array.astype(np.float32)).any()


def is_undefined(op: Op) -> bool:
    """Whether `op` makes a tile of which no element is defined yet."""
    if op.level is not Level.TILE or any(True for _ in op.operand_items()):
        return False
    return not any(access.writes for access in op.accesses())


def _is_constant(value: object) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(item, int) for item in value)  # type: ignore[misc]
    return value is None or isinstance(value, int) or constant_value(value) is not None  # type: ignore[arg-type]


def _number(value: object) -> object:
    return value if value is None or isinstance(value, (int, tuple)) else constant_value(value)  # type: ignore[arg-type]
