"""The index map of a loop form as sums, where it is no more than that.

    lambda op, i, j: (i + op.offsets[0], j)        offsets (op.offsets[0], 0), coefficients ((1, 0), (0, 1))

What is a sum can be walked with a step per dimension, compared with another map, and given to a loop as an index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.ir.dtypes import INDEX
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Shape, Value, linear_terms, values_in
from tilewright.ir.types import ScalarType


@dataclass(frozen=True, slots=True)
class AffineMap:
    """An index map that is a sum: a constant offset per dimension of the array, and per dimension of the iteration a
    coefficient."""

    offsets: Shape
    coefficients: tuple[tuple[int, ...], ...]
    """[dimension of the array][dimension of the iteration]"""

    @property
    def is_identity(self) -> bool:
        rank = len(self.coefficients)
        unit = tuple(tuple(int(i == j) for j in range(rank)) for i in range(rank))
        return self.coefficients == unit and all(offset == 0 for offset in self.offsets)

    def at(self, ix: Shape) -> Shape:
        """The element that the iteration `ix` is sent to."""
        found: list[Scalar] = []
        for offset, row in zip(self.offsets, self.coefficients, strict=True):
            total: Scalar = 0
            for factor, i in zip(row, ix, strict=True):
                total = total + factor * i
            found.append(total + offset)
        return tuple(found)

    def covers(self, extents: Shape, region: Shape) -> bool:
        """Whether each dimension of an iteration over `extents` is sent to one of the `region` with the same extent."""
        reached: list[int] = []
        for axis, extent in enumerate(extents):
            if extent == 1:
                continue
            hits = [d for d, row in enumerate(self.coefficients) if row[axis]]
            if len(hits) != 1 or region[hits[0]] != extent:
                return False
            reached += hits
        return all(extent == 1 or d in reached for d, extent in enumerate(region))


def counters(rank: int) -> tuple[Value, ...]:
    """Values that stand for the indices of an iteration."""
    return tuple(Value(f"i{axis}", ScalarType(INDEX)) for axis in range(rank))


def affine_map(op: Op, index_map: Callable[..., Shape], rank: int) -> AffineMap | None:
    """The index map of a loop form over `rank` dimensions as sums; None when it is more than that."""
    ix = counters(rank)
    offsets: list[Scalar] = []
    rows: list[tuple[int, ...]] = []
    for expression in index_map(op, *ix):
        terms, constant = linear_terms(expression)
        rows.append(tuple(terms.pop(i, 0) for i in ix))
        offset: Scalar = constant
        for term, factor in terms.items():
            if any(value in ix for value in values_in(term)):
                return None
            offset = term * factor + offset
        offsets.append(offset)
    return AffineMap(tuple(offsets), tuple(rows))
