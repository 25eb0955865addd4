"""Whether what the producer packs for an item is what the consumer would have loaded for it (rules 28 to 35).

Both must address the same tiles in the same order, item by item; no tile may be written twice, since a load would then
have read the last of them; and a store that steps as a matmul's does needs a plan in which one item packs exactly the
pages that one item reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from tilewright.sections.maps import disjoint, same_map
from tilewright.sections.patterns import ONE_BLOCK, AffinePattern, Coord, Tile
from tilewright.sections.refusals import Overwritten, Refusal, TilesDiffer, Unlisted
from tilewright.sections.section import Compute, Load, Section, Stage, Store, Work

FEW = 64
"""Up to so many tiles, listing them costs less than asking about maps."""


def same_tiles(store: Store, load: Load, work: Work, tensor: str, places: tuple[str, str]) -> Refusal | None:
    """Rules 28 to 30, for a store and a load of `tensor` that stand at `places`."""
    blocks, rights = store.sub_blocks, (1, load.num_blocks)
    left, right = store.pattern, load.pattern
    many = len(work.items) * blocks[0] * blocks[1] > FEW
    if isinstance(left, AffinePattern) and isinstance(right, AffinePattern) and many:
        if not same_map(left, blocks, right, rights, work):
            return Refusal("30", TilesDiffer("other tiles, or in another order,", "its own"), places[1])
        if not disjoint(left, blocks, work):
            return Refusal("28", Overwritten(tensor), places[0])
        return None
    stored_tiles: list[tuple[Coord, Tile]] = []
    for item in work.items:
        stored, loaded = left.tiles_at(item.coord, blocks), right.tiles_at(item.coord, rights)
        if stored is None:
            return Refusal("29", Unlisted(item.coord, "the store's pattern does not say"), places[0])
        if loaded is None:
            return Refusal("29", Unlisted(item.coord, "the load's pattern does not say"), places[1])
        if stored != loaded:
            return Refusal("30", TilesDiffer(_list(stored), _list(loaded)), places[1])
        stored_tiles += [((*item.coord, n), tile) for n, tile in enumerate(stored)]
    if not apart(stored_tiles):
        return Refusal("28", Overwritten(tensor), places[0])
    return None


def one_block(section: Section) -> bool:
    """Rule 34: one item, and every matmul of it packed once."""
    return len(section.work.items) == 1 and packed_once(section.stages)


def packed_once(stages: Iterable[Stage]) -> bool:
    """Whether every matmul packs a single sub-block."""
    return all(stage.kind.sub_blocks in (None, ONE_BLOCK) for stage in stages if isinstance(stage.kind, Compute))


def apart(tiles: list[tuple[Coord, Tile]]) -> bool:
    """Whether no element belongs to tiles of two owners. Along a dimension where an extent is a name, tiles are taken
    to meet. Tiles are sorted into cells as large as the largest of them, so that only neighbours are compared."""
    if len(tiles) < 2:
        return True
    rank = len(tiles[0][1].offsets)
    known = [d for d in range(rank) if all(isinstance(tile.extents[d], int) for _, tile in tiles)]
    sides = [max(1, *(_extent(tile, d) for _, tile in tiles)) for d in known]
    cells: dict[tuple[int, ...], list[tuple[Coord, Tile]]] = {}
    for owner, tile in tiles:
        cell = tuple(tile.offsets[d] // side for d, side in zip(known, sides, strict=True))
        for near in product(*((c - 1, c, c + 1) for c in cell)):
            for other, there in cells.get(near, ()):
                if other != owner and _meet(tile, there, known):
                    return False
        cells.setdefault(cell, []).append((owner, tile))
    return True


def _extent(tile: Tile, dim: int) -> int:
    extent = tile.extents[dim]
    assert isinstance(extent, int)
    return extent


def _meet(left: Tile, right: Tile, dims: list[int]) -> bool:
    return all(
        left.offsets[d] < right.offsets[d] + _extent(right, d) and right.offsets[d] < left.offsets[d] + _extent(left, d)
        for d in dims
    )


def _list(tiles: tuple[Tile, ...]) -> str:
    shown = ", ".join(map(str, tiles[:3]))
    return shown if len(tiles) <= 3 else f"{shown}, ... ({len(tiles)} tiles)"
