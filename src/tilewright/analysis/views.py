"""Which operations only look at their operand in another way, told from the facts of their classes.

A view is an operation that moves nothing by itself: its class says `view_of`, or it needs no space for its operand
and its result lives wherever the operand does. What the consumers of a view want of it, they want of its operand.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache

from tilewright.ir.dtypes import INDEX
from tilewright.ir.loops import Index
from tilewright.ir.op import Inherit, Op, is_array
from tilewright.ir.scalar import Scalar, Value, values_in
from tilewright.ir.types import ScalarType, TensorType


class Orientation(Enum):
    """How the last two dimensions of a view lie to those of its operand."""

    SAME = "same"
    TRANSPOSED = "transposed"
    OTHER = "other"
    """the elements are dealt out anew: nothing is known"""


def viewed_field(op: Op) -> str | None:
    """The operand that `op` is a view of; None when `op` computes, moves or writes."""
    if op.view_of is not None:
        return op.view_of
    needs = op.lowering is not None and bool(op.lowering.fields)
    if op.writes is None and not needs and isinstance(op.result_space, Inherit):
        return op.result_space.field
    return None


def viewed(op: Op) -> Value | None:
    """The value that `op` is a view of."""
    field = viewed_field(op)
    value = None if field is None else getattr(op, field)
    return value if is_array(value) else None


def orientation(op: Op) -> Orientation:
    """How a view's result lies to its operand: read off the loop form of the operation."""
    source = viewed(op)
    form = op.loops
    if source is None or not isinstance(form, Index):
        return Orientation.OTHER
    rank = len(getattr(op.infer(), "shape", ()))
    if rank != len(getattr(source.type, "shape", ())) or rank < 2:
        return Orientation.OTHER
    indices = _indices(rank)
    read = [_indices_in(at, indices) for at in form.map(op, *indices)]
    straight = [frozenset((index,)) for index in indices]
    if read == straight:
        return Orientation.SAME
    swapped = [*straight[:-2], straight[-1], straight[-2]]
    return Orientation.TRANSPOSED if read == swapped else Orientation.OTHER


def _indices_in(scalar: Scalar, indices: tuple[Value, ...]) -> frozenset[Value]:
    return frozenset() if isinstance(scalar, int) else frozenset(v for v in values_in(scalar) if v in indices)


@lru_cache(maxsize=16)
def _indices(rank: int) -> tuple[Value, ...]:
    """Values that stand for the indices of one element."""
    return tuple(Value(f"i{axis}", ScalarType(INDEX)) for axis in range(rank))


def creates(op: Op) -> bool:
    """Whether `op` only makes room: an array from no array, at no cost, its elements undefined."""
    return not any(op.operand_items()) and isinstance(op.infer(), TensorType) and op.work().kind == "none"
