"""Whether blocks of one tensor that several statements touch are apart, whichever work item does them."""

from __future__ import annotations

from itertools import combinations

from tilewright.analysis.spaces import read_tensor
from tilewright.ir.nodes import Let
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.storage import Roots, written_operand
from tilewright.ops.movement import Load, Store
from tilewright.passes.tile.partition.dimensions import Dim, Dimensions, region_axes, tile_of


def conflict(lets: tuple[Let, ...], cuts: tuple[Dim, ...], dims: Dimensions, roots: Roots) -> str | None:
    """Why the classes of `cuts` cannot be done block by block; None when they can: every two accesses of one tensor,
    of which one writes, meet in the same block or not at all."""
    touched: dict[Value, list[Let]] = {}
    writes: set[Let] = set()
    for stmt in lets:
        op = stmt.value
        if not isinstance(op, Op):
            continue
        out = written_operand(op)
        tensor = out or read_tensor(op)
        if tensor is not None:
            touched.setdefault(roots[tensor], []).append(stmt)
        if out is not None:
            writes.add(stmt)
    for root, stmts in touched.items():
        for a, b in combinations(stmts, 2):
            if (a in writes or b in writes) and not _apart(_region(a, cuts, dims), _region(b, cuts, dims), cuts):
                return f"{root.name!r} is written where other blocks of it are read or written"
    return None


Axis = tuple[Scalar, Scalar, Dim | None]
"""Offset and extent along one dimension of a tensor, and the class by which it is cut."""


def _region(stmt: Let, cuts: tuple[Dim, ...], dims: Dimensions) -> list[Axis]:
    op = stmt.value
    assert isinstance(op, (Load, Store))
    tile = op.tile if isinstance(op, Store) else stmt.target
    found: list[Axis] = [(offset, 1, None) for offset in op.offsets]
    for axis, at in enumerate(region_axes(op)):
        cls = dims.root(tile, axis)
        if at >= 0:
            found[at] = (op.offsets[at], tile_of(tile).valid[axis], cls if cls in cuts else None)
    return found


def _apart(a: list[Axis], b: list[Axis], cuts: tuple[Dim, ...]) -> bool:
    for (start, extent, _), (other, length, _) in zip(a, b, strict=True):
        if all(isinstance(x, int) for x in (start, extent, other, length)):
            if start + extent <= other or other + length <= start:  # type: ignore[operator]
                return True
    common = {x[2] for x, y in zip(a, b, strict=True) if x[2] is not None and x[2] == y[2] and x[0] == y[0]}
    return all(cls in common for cls in cuts)
