"""The two ends of a join: the producer's store and the consumer's load (rules 13 to 27), and tensors that both use."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.sections.patterns import Coord, Pattern, Tile
from tilewright.sections.refusals import (
    Adds,
    AlsoNamed,
    AlsoRead,
    Blocks,
    Count,
    Multicast,
    NotComputed,
    NotStored,
    Refusal,
    Shared,
    Transposed,
    Unread,
)
from tilewright.sections.section import (
    BufferId,
    Compute,
    Load,
    Section,
    Stage,
    StageId,
    Store,
    TensorId,
    Work,
    tensor_of,
)
from tilewright.sections.tiles import apart

Numbered = list[tuple[StageId, Stage]]
"""Stages with the number by which a refusal names them."""


@dataclass(frozen=True, slots=True)
class StoreEnd:
    """The producer's store: stage `stage` stores buffer `o`."""

    stage: StageId
    kind: Store
    o: BufferId


@dataclass(frozen=True, slots=True)
class LoadEnd:
    """The consumer's load: stage `stage` fills buffer `i`, which stages `readers` read."""

    stage: StageId
    kind: Load
    i: BufferId
    readers: tuple[StageId, ...]


def find_store(name: str, naming: Numbered, stores: int, several: bool) -> StoreEnd | Refusal:
    """Rules 13 to 17 but 16, from the producer's stages that name the tensor. `stores` counts the stores of all
    tensors, of which there may be more than one where `several` (S10)."""
    if stores != 1 and not several:
        return Refusal("13", Count("store in the producer", stores), "first.stages")
    found = [(k, stage, stage.kind) for k, stage in naming if isinstance(stage.kind, Store)]
    if not found:
        return Refusal("14", NotStored(name), "first.stages")
    if len(found) != 1:
        return Refusal("13", Count(f"store of {name}", len(found)), f"first.stages[{found[1][0]}]")
    at, stage, kind = found[0]
    if kind.adds:
        return Refusal("14", Adds(name), f"first.stages[{at}].kind.adds")
    if len(stage.ins) != 1:
        return Refusal("15", Count("buffer that the store reads", len(stage.ins)), f"first.stages[{at}].ins")
    others = [k for k, _ in naming if k != at]
    if others:
        return Refusal("17", AlsoNamed(name, others[0]), f"first.stages[{others[0]}].kind.tensor")
    return StoreEnd(at, kind, stage.ins[0])


def check_alone(buffer: str, readers: list[StageId], store: StageId) -> Refusal | None:
    """Rule 16: nothing but the store reads the buffer."""
    others = [k for k in readers if k != store]
    if others:
        return Refusal("16", AlsoRead(buffer, others[0]), f"first.stages[{others[0]}].ins")
    return None


def find_load(second: Section, tensor: TensorId, blocks: bool) -> LoadEnd | Refusal:
    """Rules 19 to 27. `blocks`: a load may read several blocks per item (S7)."""
    name = second.tensors[tensor].name
    naming = [(k, stage) for k, stage in enumerate(second.stages) if tensor_of(stage.kind) == tensor]
    found = [(k, stage, stage.kind) for k, stage in naming if isinstance(stage.kind, Load)]
    if len(found) != 1:
        return Refusal("19", Count(f"load of {name}", len(found)), "second.stages")
    at, stage, kind = found[0]
    where = f"second.stages[{at}]"
    others = [k for k, _ in naming if k != at]
    if others:
        return Refusal("20", AlsoNamed(name, others[0]), f"second.stages[{others[0]}].kind.tensor")
    if kind.num_blocks != 1 and not blocks:
        return Refusal("21", Blocks(kind.num_blocks), f"{where}.kind.num_blocks")
    if kind.multicast is not None:
        return Refusal("22", Multicast(kind.multicast), f"{where}.kind.multicast")
    if kind.transposed:
        return Refusal("28", Transposed(name), f"{where}.kind.transposed")
    if len(stage.outs) != 1:
        return Refusal("23", Count("buffer that the load fills", len(stage.outs)), f"{where}.outs")
    i = stage.outs[0]
    readers = tuple(k for k, reader in enumerate(second.stages) if i in reader.ins)
    if not readers:
        return Refusal("24", Unread(second.buffers[i].name), f"second.buffers[{i}]")
    for k in readers:
        if not isinstance(second.stages[k].kind, Compute):
            return Refusal("25", NotComputed(second.buffers[i].name, k), f"second.stages[{k}].kind")
    return LoadEnd(at, kind, i, readers)


def check_shared(name: str, first: Numbered, second: Numbered, work: Work) -> Refusal | None:
    """S2, for a tensor that both sections name in these stages. Reading twice is free. Otherwise item j of the second
    section would run before the later items of the first, so each item must keep to tiles of its own, the same ones
    in both sections."""
    writer = next((k for k, stage in first if not isinstance(stage.kind, Load)), None)
    side = "first" if writer is not None else "second"
    if writer is None:
        writer = next((k for k, stage in second if not isinstance(stage.kind, Load)), None)
    if writer is None or not first or not second:
        return None
    at = f"{side}.stages[{writer}]"
    footprints: list[tuple[Coord, Tile]] = []
    for item in work.items:
        left, right = _footprint(first, item.coord), _footprint(second, item.coord)
        if left is None or right is None:
            return Refusal("S2", Shared(name, "its tiles cannot be listed"), at)
        if left != right:
            return Refusal("S2", Shared(name, "an item does not use the same tiles in both"), at)
        footprints += [(item.coord, tile) for tile in left]
    if not apart(footprints):
        return Refusal("S2", Shared(name, "items meet in it"), at)
    return None


def _footprint(stages: Numbered, coord: Coord) -> frozenset[Tile] | None:
    """The tiles that the stages use for an item; None when one of them cannot say."""
    found: set[Tile] = set()
    for _, stage in stages:
        match stage.kind:
            case Load(_, pattern, num_blocks):
                tiles = _tiles(pattern, coord, (1, num_blocks))
            case Store(_, pattern, sub_blocks):
                tiles = _tiles(pattern, coord, sub_blocks)
            case _:
                return None
        if tiles is None:
            return None
        found.update(tiles)
    return frozenset(found)


def _tiles(pattern: Pattern, coord: Coord, blocks: tuple[int, int]) -> tuple[Tile, ...] | None:
    return pattern.tiles_at(coord, blocks)
