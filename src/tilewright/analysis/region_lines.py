"""What one dimension of a buffer is touched at: two numbers where nothing is fixed, else an exact integer set.

    B[i * 3 + j, k], i < 4, j < 2, k < 5                   (0, 10) and (0, 4), without a set
    B[i * 3 + j, k] where i + j < 3                        (0, 6) and (0, 4), of the set
    B[h * 8 + j] inside of `h`, where B exists             [h] -> { [x] : 8 h <= x < 8 h + 8 }

The box of a union is that of the dimensions one by one, so sets of several dimensions are never united. Sets are kept
by their text, which is the same for accesses of the same shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from tilewright.analysis.region_minima import scalar_of
from tilewright.ir.scalar import Scalar, Shape, Value, linear_terms

if TYPE_CHECKING:
    import islpy as isl

    Line = tuple[int, int] | isl.Set
    """The first and the last element, or a set of one dimension."""


def plain_lines(
    offsets: Shape, extents: Shape, shape: Shape | None, trips: Mapping[Value, tuple[int, int]]
) -> tuple[Line, ...] | None:
    """The lines of an access under no condition, whose indices are sums of multiples of `trips`, each in one index
    only, and so independent of each other. None where this is not the whole truth: where it may lie outside of `shape`
    too, for one."""
    lines: list[Line] = []
    seen: set[Scalar] = set()
    for dim, (offset, extent) in enumerate(zip(offsets, extents, strict=True)):
        terms, first = linear_terms(offset)
        if not isinstance(extent, int) or extent < 1 or any(term not in trips or term in seen for term in terms):
            return None
        seen |= terms.keys()
        last = first + extent - 1
        for term, factor in terms.items():
            assert isinstance(term, Value)
            low, high = sorted(factor * end for end in trips[term])
            first, last = first + low, last + high
        if shape is not None:
            size = shape[dim]
            if not isinstance(size, int) or first < 0 or last >= size:
                return None
        lines.append((first, last))
    return tuple(lines)


@lru_cache(maxsize=4096)
def lines_of(text: str) -> tuple[Line, ...] | None:
    """The lines of the set that `text` writes, None where it is empty."""
    import islpy as isl

    touched, dims = isl.Set(text), isl.dim_type.set
    return None if touched.is_empty() else tuple(_line(touched, dim) for dim in range(touched.dim(dims)))


def _line(touched: isl.Set, dim: int) -> Line:
    import islpy as isl

    dims = isl.dim_type.set
    line = touched.project_out(dims, dim + 1, touched.dim(dims) - dim - 1).project_out(dims, 0, dim)
    if line.dim(isl.dim_type.param) or not line.dim_is_bounded(dims, 0):
        return line
    return line.dim_min_val(0).to_python(), line.dim_max_val(0).to_python()


def forget_sets() -> None:
    """Drops the sets kept from earlier plans, for measuring."""
    lines_of.cache_clear()


def extent_of(
    lines: Sequence[Line], old: Scalar, values: Mapping[str, Value], strict: bool
) -> tuple[Scalar, Scalar, str]:
    """The new extent and minimum of a dimension touched at `lines`, and why it is the old one."""
    if not isinstance(old, int):
        return old, 0, "has an extent that is not a constant"
    ends = [line for line in lines if isinstance(line, tuple)]
    hull = (min(first for first, _ in ends), max(last for _, last in ends)) if ends else None
    rest = [line for line in lines if not isinstance(line, tuple)]
    if not rest:
        assert hull is not None
        extent = hull[1] - hull[0] + 1
        return (old, 0, "") if strict and extent >= old else (extent, hull[0], "")
    import islpy as isl

    dims, params = isl.dim_type.set, isl.dim_type.param
    line = _united([*rest, *([isl.Set(f"{{ [x] : {hull[0]} <= x <= {hull[1]} }}")] if hull else [])])
    if not line.dim_is_bounded(dims, 0):
        return old, 0, "is touched where nothing is known of the index"
    apart = isl.Map.from_domain_and_range(line.lexmin(), line.lexmax()).deltas()
    apart = apart.project_out(params, 0, apart.dim(params))
    if not apart.dim_is_bounded(dims, 0):
        return old, 0, "is touched over an extent without a constant bound"
    extent = apart.dim_max_val(0).to_python() + 1
    return (old, 0, "") if strict and extent >= old else (extent, scalar_of(line.dim_min(0), values), "")


def _united(sets: list[isl.Set]) -> isl.Set:
    while len(sets) > 1:
        odd = sets[-1:] if len(sets) % 2 else []
        sets = [left.union(right).coalesce() for left, right in zip(sets[::2], sets[1::2], strict=False)] + odd
    return sets[0].coalesce()
