"""Access patterns as exact integer maps, from (item, ordinal of the tile) to the tile's first element.

Two accesses agree when their maps are equal: a map keeps the order in which tiles are addressed, which a set would
lose. Nothing is enumerated, so a grid of a million items costs what a grid of one does.
"""

from __future__ import annotations

from typing import Any

from tilewright.sections.patterns import AffinePattern, Axis, Blocks, Term
from tilewright.sections.section import Item, Loop, Work


def same_map(left: AffinePattern, lefts: Blocks, right: AffinePattern, rights: Blocks, work: Work) -> bool:
    """Whether the two address the same tiles in the same order for every item; `lefts` and `rights` are their
    sub-blocks."""
    if left.extents != right.extents:
        return False
    return bool(_map(left, lefts, work).is_equal(_map(right, rights, work)))


def disjoint(pattern: AffinePattern, blocks: Blocks, work: Work) -> bool:
    """Whether no element belongs to two of the tiles, over all items and sub-blocks. Along a dimension whose extent
    is a name, tiles are taken to meet."""
    import islpy as isl

    rank = len(pattern.offsets)
    here, there = [f"e{d}" for d in range(rank)], [f"f{d}" for d in range(rank)]
    close = [
        f"-{extent} < e{d} - f{d} < {extent}" for d, extent in enumerate(pattern.extents) if isinstance(extent, int)
    ]
    meets: Any = isl.Map(f"{{ [{', '.join(here)}] -> [{', '.join(there)}] : {' and '.join(close) or 'true'} }}")
    tiles = _map(pattern, blocks, work)
    pairs: Any = tiles.apply_range(meets).apply_range(tiles.reverse())
    return bool(pairs.is_subset(isl.Map.identity(pairs.get_space())))


def _map(pattern: AffinePattern, blocks: Blocks, work: Work) -> Any:
    """``{ [item..., ordinal] -> [offset...] }``."""
    import islpy as isl

    rank = len(work.items[0].coord) if work.items else 0
    names = [f"i{k}" for k in range(rank)]
    offsets = [_offset(pattern, d) for d in range(len(pattern.offsets))]
    where = [_domain(names, work.grid, work.items), f"o = {blocks[1]}r + c"]
    where += [f"0 <= r < {blocks[0]} and 0 <= c < {blocks[1]}"]
    where += [f"e{d} = {offset}" for d, offset in enumerate(offsets)]
    results = ", ".join(f"e{d}" for d in range(len(offsets)))
    return isl.Map(f"{{ [{', '.join([*names, 'o'])}] -> [{results}] : exists (r, c : {' and '.join(where)}) }}")


def _domain(names: list[str], grid: tuple[Loop, ...], items: tuple[Item, ...]) -> str:
    """The items: bounds and steps where a grid makes them, else one by one."""
    if grid:
        parts = (
            f"{loop.start} <= {name} < {loop.stop} and ({name} - {loop.start}) mod {loop.step} = 0"
            for name, loop in zip(names, grid, strict=True)
        )
        return " and ".join(parts)
    points = (" and ".join(f"{n} = {x}" for n, x in zip(names, item.coord, strict=True)) or "true" for item in items)
    return f"({' or '.join(f'({point})' for point in points) or 'false'})"


def _offset(pattern: AffinePattern, dim: int) -> str:
    base = pattern.offsets[dim]
    parts = [str(base.constant)] + [_term(term, f"i{term.index}") for term in base.terms]
    for step in pattern.steps:
        if step.dim == dim:
            match step.axis:
                case Axis.ITEM:
                    parts.append(_term(step.term, f"i{step.term.index}"))
                case Axis.ROW:
                    parts.append(_term(step.term, "r"))
                case Axis.COLUMN:
                    parts.append(_term(step.term, "c"))
    return " + ".join(parts)


def _term(term: Term, x: str) -> str:
    part = x if term.divisor == 1 else f"floor({x}/{term.divisor})"
    part = f"(({part}) mod {term.modulus})" if term.modulus else part
    return f"({term.coefficient} * {part})"
