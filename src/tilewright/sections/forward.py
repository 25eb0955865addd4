"""Forwarding: two sections become one, and the tensor between them never reaches memory.

Before:  load x -> [a] -> exp -> [b] -> store t        load t -> [c] -> add 1 -> [d] -> store y
After:   load x -> [a] -> exp -> [b] -> add 1 -> [d] -> store y

The producer's last buffer feeds the consumer's compute. That is the same program only if the page that the producer
packs for an item is the page that the consumer would have loaded for it; each rule below (they are numbered, and a
refusal says its number) is one way in which it might not be. Nothing is raised and nothing is half-joined.

Whether anybody reads the tensor later (57) is the caller's to know, who sees the whole program, and says with `live`;
so is whether the carrier's proven range is one that the consumer may meet (58).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from tilewright.ir.types import Type
from tilewright.sections.agreement import check_phases, check_plans, check_tensor
from tilewright.sections.bridge import bridge
from tilewright.sections.budget import Feed, Tally, check_budget, check_memories
from tilewright.sections.ends import LoadEnd, StoreEnd, check_alone, check_shared, find_load, find_store
from tilewright.sections.growing import Growing, Link
from tilewright.sections.refusals import (
    Disagree,
    Live,
    Malformed,
    ManyItems,
    NotOneBlock,
    PagesDiffer,
    Refusal,
)
from tilewright.sections.section import BufferId, Phase, Section, tensor_of
from tilewright.sections.tiles import packed_once, same_tiles
from tilewright.sections.verify import faults
from tilewright.targets import Target


class Allow(Enum):
    """What may go beyond the rules as they are; each lifts the rule that it names."""

    MANY_ITEMS = "S6"
    """plans of many items, and of items packed in blocks, when the pages packed are the pages read (32 to 34)"""
    K_BLOCKS = "S7"
    """consumers that read the producer's sub-blocks one after the other (21)"""
    TEE = "S8"
    """tensors that somebody reads later: the store stays, the load goes (57)"""
    SEVERAL_STORES = "S10"
    """producers with other stores beside the one of this tensor (13)"""


ALL = frozenset(Allow)


@dataclass(frozen=True, slots=True)
class Joint:
    """Two sections joined. `carrier` is the producer's buffer that holds what the tensor held."""

    section: Section
    carrier: BufferId


def forward(
    first: Section,
    second: Section,
    tensor: str,
    *,
    target: Target,
    allow: Collection[Allow] = ALL,
    live: bool = False,
) -> Joint | Refusal:
    """`first` and `second` as one section, which hands over `tensor` on chip, or why that cannot be.

    `live`: somebody reads the tensor after `second`. Time is linear in the two sections."""
    chain = Chain(first, target=target)
    carrier = chain.forward(second, tensor, allow=allow, live=live)
    if isinstance(carrier, Refusal):
        return carrier
    joined = chain.section()
    wrong = faults(joined)
    if wrong:
        return Refusal("S5", Malformed(str(wrong[0])), f"joined.{wrong[0].where}")
    return Joint(joined, carrier)


class Chain:
    """Sections joined one after the other, in time linear in all of them together.

    Equal to calling `forward` again and again, which copies what is there already each time. A refused consumer
    leaves the chain as it was."""

    def __init__(self, first: Section, *, target: Target) -> None:
        self.target = target
        self._refused = _malformed(first, "first")
        if self._refused is None:
            self._grown = Growing(first)
            self._tally = Tally(first, target)
            self._refused = check_memories(first, target, "first")

    def section(self) -> Section:
        """What has been joined so far. Not to be asked of a chain whose first section was refused."""
        return self._grown.section()

    def forward(
        self, second: Section, tensor: str, *, allow: Collection[Allow] = ALL, live: bool = False
    ) -> BufferId | Refusal:
        """Joins `second`, as `tilewright.sections.forward.forward` does, and returns the carrier."""
        if self._refused is not None:
            return self._refused
        link = self._link(second, tensor, allow, live)
        if isinstance(link, Refusal):
            return link
        grown, o, direct = self._grown, link.store.o, link.bridge.kind is None
        before, reader = grown.buffers[o], second.buffers[link.load.i]
        feed = Feed(o, before, grown.carrier(o, reader) if direct else before, link.load.i, direct)
        growth = self._tally.joined(second, feed)
        refused = check_budget(growth.peaks, self.target)
        if refused is not None:
            return refused
        self._tally.commit(second, feed, growth, grown.append(second, link))
        return o

    def _link(self, second: Section, tensor: str, allow: Collection[Allow], live: bool) -> Link | Refusal:
        """Every rule, in order."""
        grown = self._grown
        refused = (
            _malformed(second, "second")
            or check_memories(second, self.target, "second")
            or check_phases(grown.plan, second)
            or check_plans(grown.plan, second)
        )
        if refused is not None:
            return refused
        ids = {declared.name: k for k, declared in enumerate(second.tensors)}
        declared = second.tensors[ids[tensor]] if tensor in ids else None
        refused = check_tensor(tensor, grown.tensor(tensor), declared)
        if refused is not None:
            return refused
        if live and Allow.TEE not in allow:
            return Refusal("57", Live(tensor), f"first.tensors.{tensor}")
        store = find_store(tensor, grown.naming(tensor), grown.stores, Allow.SEVERAL_STORES in allow)
        if isinstance(store, Refusal):
            return store
        load = find_load(second, ids[tensor], Allow.K_BLOCKS in allow)
        if isinstance(load, Refusal):
            return load
        refused = (
            check_alone(grown.buffers[store.o].name, grown.readers(store.o), store.stage)
            or self._check_tiles(second, tensor, store, load, Allow.MANY_ITEMS in allow)
            or self._check_others(second, tensor)
        )
        if refused is not None:
            return refused
        o, i, kind = grown.buffers[store.o], second.buffers[load.i], second.tensors[ids[tensor]]
        between = bridge(o, i, kind, load.kind, self._type_of(store.o), self.target)
        if isinstance(between, Refusal):
            return between
        return Link(store, load, between, live)

    def _check_tiles(self, second: Section, tensor: str, store: StoreEnd, load: LoadEnd, many: bool) -> Refusal | None:
        """Rules 28 to 35, and S6."""
        grown, items = self._grown, len(self._grown.plan.work.items)
        places = (f"first.stages[{store.stage}].kind.pattern", f"second.stages[{load.stage}].kind.pattern")
        refused = same_tiles(store.kind, load.kind, grown.plan.work, tensor, places)
        if refused is not None:
            return refused
        if not store.kind.pattern.steps:
            return None
        packs = grown.packed_once and packed_once(second.stages)
        if items == 1 and (packs or grown.plan.phase is Phase.TEMPLATE):
            return None
        if not many and grown.plan.phase is Phase.TEMPLATE:
            return Refusal("32", ManyItems(items), places[0])
        if not many:
            return Refusal("33", NotOneBlock(f"{items} items" if items != 1 else "sub-blocks"), "joined.work.items")
        tiles = store.kind.sub_blocks[0] * store.kind.sub_blocks[1]
        packed, read = grown.buffers[store.o].pages, second.buffers[load.i].pages
        if packed != tiles or read != tiles:
            return Refusal("S6", PagesDiffer(packed, read, tiles), f"second.buffers[{load.i}].pages")
        return None

    def _check_others(self, second: Section, tensor: str) -> Refusal | None:
        """39 and S2, for what both sections name beside the tensor that is forwarded."""
        grown = self._grown
        writes = {tensor_of(stage.kind) for stage in second.stages if stage.outs == ()}
        for k, declared in enumerate(second.tensors):
            known = grown.tensor(declared.name)
            if known is None or declared.name == tensor:
                continue
            if known != declared:
                return Refusal("39", Disagree(declared.name, str(known), str(declared)), f"second.tensors[{k}]")
            if not grown.is_written(declared.name) and k not in writes:
                continue
            naming = [(n, stage) for n, stage in enumerate(second.stages) if tensor_of(stage.kind) == k]
            refused = check_shared(declared.name, grown.naming(declared.name), naming, grown.plan.work)
            if refused is not None:
                return refused
        for k, scalar in enumerate(second.scalars):
            if grown.scalars.get(scalar.name, scalar) != scalar:
                there = grown.scalars[scalar.name]
                return Refusal("39", Disagree(scalar.name, str(there), str(scalar)), f"second.scalars[{k}]")
        return None

    def _type_of(self, buffer: BufferId) -> Type | None:
        """The type of the tiles in a buffer, where a stage's statements say it."""
        stage = self._grown.stage(self._grown.writer(buffer))
        if stage.body is None:
            return None
        result = stage.body.function.results[stage.outs.index(buffer)]
        return None if isinstance(result, int) else getattr(result, "type", None)


def _malformed(section: Section, side: str) -> Refusal | None:
    """S5: what the verifier finds."""
    wrong = faults(section)
    if wrong:
        return Refusal("S5", Malformed(str(wrong[0])), f"{side}.{wrong[0].where}")
    return None
