"""The joined section while it grows, one consumer at a time (rules 38 to 56).

A chain of thousands of sections must join in linear time, so what is forwarded leaves a hole in its list, and numbers
are made dense once, at the end. Every field of every part is taken apart by name: a field that somebody adds, and that
nobody has said how to join, stops the join at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from tilewright.sections.bridge import Bridge
from tilewright.sections.claims import compose
from tilewright.sections.ends import LoadEnd, Numbered, StoreEnd
from tilewright.sections.section import (
    AllReduce,
    Buffer,
    BufferId,
    Compute,
    Edge,
    Load,
    Recv,
    Requires,
    Scalar,
    ScalarParam,
    Section,
    Stage,
    StageId,
    StageKind,
    Store,
    Tensor,
    TensorId,
    tensor_of,
)
from tilewright.sections.tiles import packed_once


@lru_cache(maxsize=64)
def _field_names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def parts(node: Any, *names: str) -> tuple[Any, ...]:
    """The fields of a dataclass, which must be exactly `names`; a programming error otherwise."""
    found = _field_names(node.__class__)
    if found != names:
        raise TypeError(f"{type(node).__name__} has fields {found}, and the join knows what becomes of {names}")
    return tuple([getattr(node, name) for name in names])


@dataclass(frozen=True, slots=True)
class Link:
    """A join that has been found good: the ends, what stands between them, and whether the store stays (S8)."""

    store: StoreEnd
    load: LoadEnd
    bridge: Bridge
    tee: bool


class Growing:
    """A section to which consumers are joined. Ids are those of the lists, holes counted, until `section`."""

    def __init__(self, first: Section) -> None:
        (
            name, tensors, stages, buffers, edges, scalars, _work, _trips, _tile, _banks, _numerics, _phase, _attrs,
            self.claim, requires, self.acc_tiles_used,
        ) = parts(first, *FIELDS)  # fmt: skip
        self.plan = first
        self.names: list[str] = [name]
        self.tensors: list[Tensor | None] = list(tensors)
        self.stages: list[Stage | None] = list(stages)
        self.buffers: list[Buffer] = list(buffers)
        self.edges: list[Edge] = list(edges)
        self.scalars: dict[str, ScalarParam] = {scalar.name: scalar for scalar in scalars}
        self.handshakes: set[str] = set(requires.handshakes)
        self.interconnect: set[str] = set(requires.interconnect)
        self.packed_once = packed_once(first.stages)
        self.stores = 0
        self._tensor_ids = {tensor.name: k for k, tensor in enumerate(first.tensors)}
        self._written: set[str] = set()
        self._naming: dict[TensorId, list[StageId]] = {}
        self._readers: dict[BufferId, list[StageId]] = {}
        self._writer: dict[BufferId, StageId] = {}
        self._edges: dict[BufferId, list[int]] = {}
        self._taken = {buffer.name for buffer in first.buffers}
        self._suffixes: dict[str, int] = {}
        for k, stage in enumerate(first.stages):
            self._index(k, stage)
        for k, edge in enumerate(first.edges):
            self._edges.setdefault(edge.buffer, []).append(k)

    # --- what the rules ask ---
    def tensor(self, name: str) -> Tensor | None:
        id = self._tensor_ids.get(name)
        return None if id is None else self.tensors[id]

    def naming(self, name: str) -> Numbered:
        """The stages that name a tensor."""
        id = self._tensor_ids.get(name)
        return [(k, self.stage(k)) for k in self._naming.get(id, ())] if id is not None else []

    def is_written(self, name: str) -> bool:
        """Whether a stage does more with the tensor than load it."""
        return name in self._written

    def stage(self, id: StageId) -> Stage:
        stage = self.stages[id]
        assert stage is not None
        return stage

    def readers(self, buffer: BufferId) -> list[StageId]:
        """The stages that read a buffer and leave it as it is; those that add to it are part of how it is made."""
        return [k for k in self._readers.get(buffer, ()) if buffer not in self.stage(k).outs]

    def writer(self, buffer: BufferId) -> StageId:
        """The last stage that writes a buffer."""
        return self._writer[buffer]

    def carrier(self, o: BufferId, i: Buffer) -> Buffer:
        """Buffer `o` once it also is what the consumer calls `i`: it holds what either needs (S3)."""
        buffer = self.buffers[o]
        return replace(buffer, kind=buffer.kind or i.kind, pages=max(buffer.pages, i.pages))

    # --- growing ---
    def append(self, second: Section, link: Link) -> dict[BufferId, BufferId]:
        """Joins `second` as `link` says; the numbers that its buffers now have."""
        (
            name, _tensors, stages, _buffers, edges, scalars, _work, _trips, _tile, _banks, _numerics, _phase, _attrs,
            claim, requires, acc_tiles_used,
        ) = parts(second, *FIELDS)  # fmt: skip
        if not link.tee:
            self._forget(second.tensors[link.load.kind.tensor].name, link.store.stage)
        tensors = self._append_tensors(second, link)
        buffers = self._append_buffers(second, link)
        reads = self._append_bridge(link, buffers)
        numbers: dict[StageId, StageId] = {}
        for k, stage in enumerate(stages):
            if k != link.load.stage:
                numbers[k] = len(self.stages)
                self._append_stage(renumbered(stage, tensors.__getitem__, buffers.__getitem__))
        self._append_edges(edges, link, buffers, numbers, reads)
        self.scalars.update({scalar.name: scalar for scalar in scalars if scalar.name not in self.scalars})
        self.names.append(name)
        self.claim = compose(self.claim, claim)
        self.handshakes |= requires.handshakes
        self.interconnect |= requires.interconnect
        self.packed_once = self.packed_once and packed_once(second.stages)
        self.acc_tiles_used = max(self.acc_tiles_used, acc_tiles_used)
        return buffers

    def _index(self, id: StageId, stage: Stage) -> None:
        tensor = tensor_of(stage.kind)
        if tensor is not None:
            self._naming.setdefault(tensor, []).append(id)
            declared = self.tensors[tensor]
            if not isinstance(stage.kind, Load) and declared is not None:
                self._written.add(declared.name)
        self.stores += isinstance(stage.kind, Store)
        for b in dict.fromkeys(stage.ins):
            self._readers.setdefault(b, []).append(id)
        for b in stage.outs:
            self._writer[b] = id

    def _append_stage(self, stage: Stage) -> StageId:
        id = len(self.stages)
        self.stages.append(stage)
        self._index(id, stage)
        return id

    def _append_edge(self, edge: Edge) -> None:
        self._edges.setdefault(edge.buffer, []).append(len(self.edges))
        self.edges.append(edge)

    def _forget(self, name: str, store: StageId) -> None:
        """The tensor and its store are gone."""
        id = self._tensor_ids.pop(name)
        self.tensors[id] = None
        self._naming.pop(id)
        self._written.discard(name)
        self.stages[store] = None
        self.stores -= 1

    def _append_tensors(self, second: Section, link: Link) -> dict[TensorId, TensorId]:
        """38, 39: tensors of `second` that are new come after those that are there."""
        ids: dict[TensorId, TensorId] = {}
        for k, tensor in enumerate(second.tensors):
            parts(tensor, "name", "elems", "tiles", "dtype", "layout")
            if k == link.load.kind.tensor and not link.tee:
                continue
            known = self._tensor_ids.get(tensor.name)
            if known is None:
                known = self._tensor_ids[tensor.name] = len(self.tensors)
                self.tensors.append(tensor)
            ids[k] = known
        return ids

    def _append_buffers(self, second: Section, link: Link) -> dict[BufferId, BufferId]:
        """41, 42, 37: the carrier takes the place of what the load filled, unless something stands between them."""
        ids: dict[BufferId, BufferId] = {}
        for k, buffer in enumerate(second.buffers):
            _name, origin, kind, dtype, pages, page = parts(buffer, *BUFFER_FIELDS)
            if k == link.load.i and link.bridge.kind is None:
                self.buffers[link.store.o] = self.carrier(link.store.o, buffer)
                ids[k] = link.store.o
                continue
            ids[k] = len(self.buffers)
            self.buffers.append(Buffer(self._free(origin), origin, kind, dtype, pages, page))
        return ids

    def _free(self, origin: str) -> str:
        """`origin`, or the first of `origin_f1`, `origin_f2`, ... that nobody has."""
        name, n = origin, self._suffixes.get(origin, 0)
        while name in self._taken:
            n += 1
            name = f"{origin}_f{n}"
        self._suffixes[origin] = n
        self._taken.add(name)
        return name

    def _append_bridge(self, link: Link, buffers: dict[BufferId, BufferId]) -> StageId | None:
        """The stage between the two buffers, where there is one."""
        if link.bridge.kind is None:
            return None
        return self._append_stage(Stage(link.bridge.kind, (link.store.o,), (buffers[link.load.i],), link.bridge.body))

    def _append_edges(
        self,
        edges: tuple[Edge, ...],
        link: Link,
        buffers: dict[BufferId, BufferId],
        numbers: dict[StageId, StageId],
        between: StageId | None,
    ) -> None:
        """48, 49: what the load fed is now fed by the producer's own edge."""
        loaded = next(edge for edge in edges if (edge.source, edge.buffer) == (link.load.stage, link.load.i))
        readers = tuple(numbers[k] for k in loaded.to)
        at = self._edges[link.store.o][-1]
        kept = (link.store.stage,) if link.tee else ()
        source, buffer, _to = parts(self.edges[at], *EDGE_FIELDS)
        self.edges[at] = Edge(source, buffer, (*kept, *(readers if between is None else (between,))))
        self._readers[link.store.o] = [k for k in self._readers[link.store.o] if self.stages[k] is not None]
        if between is not None:
            self._append_edge(Edge(between, buffers[link.load.i], readers))
        for edge in edges:
            source, buffer, to = parts(edge, *EDGE_FIELDS)
            if edge is not loaded:
                self._append_edge(Edge(numbers[source], buffers[buffer], tuple(numbers[k] for k in to)))

    # --- the end ---
    def section(self) -> Section:
        """What has been joined, numbered without holes."""
        tensors = _dense(self.tensors)
        stages = _dense(self.stages)
        plan = self.plan
        return Section(
            name="+".join(self.names),
            tensors=tuple(tensor for tensor in self.tensors if tensor is not None),
            stages=tuple(
                renumbered(stage, tensors.__getitem__, _same) for stage in self.stages if stage is not None
            ),
            buffers=tuple(self.buffers),
            edges=tuple(
                Edge(stages[edge.source], edge.buffer, tuple(stages[k] for k in edge.to)) for edge in self.edges
            ),
            scalars=tuple(self.scalars.values()),
            work=plan.work,
            trips=plan.trips,
            tile=plan.tile,
            mem_banks=plan.mem_banks,
            numerics=plan.numerics,
            phase=plan.phase,
            attrs=plan.attrs,
            claim=self.claim,
            requires=Requires(frozenset(self.handshakes), frozenset(self.interconnect)),
            acc_tiles_used=self.acc_tiles_used,
        )  # fmt: skip


FIELDS = (
    "name", "tensors", "stages", "buffers", "edges", "scalars", "work", "trips", "tile", "mem_banks", "numerics",
    "phase", "attrs", "claim", "requires", "acc_tiles_used",
)  # fmt: skip
BUFFER_FIELDS = ("name", "origin", "kind", "dtype", "pages", "page")
EDGE_FIELDS = ("source", "buffer", "to")


def _same(id: int) -> int:
    return id


def _dense(items: list[Any]) -> dict[int, int]:
    """New numbers for those that are not holes."""
    return {k: n for n, k in enumerate(k for k, item in enumerate(items) if item is not None)}


def renumbered(stage: Stage, tensor: Callable[[int], int], buffer: Callable[[int], int]) -> Stage:
    """The stage with other ids, those inside its kind too (40, 46). Its body holds none."""
    kind, ins, outs, body, in_loop = parts(stage, "kind", "ins", "outs", "body", "in_loop")
    new = _renumbered_kind(kind, tensor, buffer)
    return Stage(new, tuple([buffer(b) for b in ins]), tuple([buffer(b) for b in outs]), body, in_loop)


def _renumbered_kind(kind: StageKind, tensor: Callable[[int], int], buffer: Callable[[int], int]) -> StageKind:
    match kind:
        case Load():
            id, *rest = parts(kind, "tensor", "pattern", "num_blocks", "multicast", "transposed", "pad")
            return Load(tensor(id), *rest)
        case Store():
            id, *rest = parts(kind, "tensor", "pattern", "sub_blocks", "adds", "keeps")
            return Store(tensor(id), *rest)
        case AllReduce():
            id, group = parts(kind, "tensor", "group")
            return AllReduce(tensor(id), group)
        case Recv():
            parts(kind, "channel")
            return kind
        case Compute():
            work, sub_blocks, accumulator = parts(kind, "work", "sub_blocks", "accumulator")
            return Compute(work, sub_blocks, None if accumulator is None else buffer(accumulator))
        case Scalar():
            parts(kind, "work")
            return kind
