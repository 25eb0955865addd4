"""Several sections as one: which two are joined first, so that each join is of one tensor between two sections.

`forward` hands one tensor from one section to the next. So a group of sections is taken apart wherever a single tensor
crosses, and the parts are joined one after the other, in linear time. A tensor with several readers is handed over
last: first its readers become one section, whose loads of it become one load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tilewright.ir.dtypes import DType
from tilewright.ir.layout import MemorySpace
from tilewright.sections.bridge import on_chip
from tilewright.sections.forward import Chain
from tilewright.sections.growing import renumbered
from tilewright.sections.refusals import Crossing, Reason, Refusal
from tilewright.sections.section import BufferId, Edge, Load, Section, Stage, StageId, Store, tensor_of
from tilewright.targets import Target

VEC = MemorySpace.VEC
"""Where casts are computed."""


@dataclass(frozen=True, slots=True)
class Tangled(Reason):
    """More than one tensor crosses wherever the group is taken apart."""

    sections: int

    def __str__(self) -> str:
        return f"{self.sections} sections hang together by more than one tensor at every place"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where what is stored to a tensor was, in `buffer`, when a memory was last fixed for it."""

    buffer: str
    kind: MemorySpace
    dtype: DType


@dataclass(frozen=True, slots=True)
class Member:
    """One section of a group. `stores` and `loads` are the tensors that it writes and reads, by name; `live` those of
    its stores that somebody outside of the group needs."""

    section: Section
    stores: frozenset[str]
    loads: frozenset[str]
    live: frozenset[str]


def fold(members: Sequence[Member], origins: Mapping[str, Origin], target: Target) -> Section | Refusal:
    """The members, which stand in an order in which they may run, as one section."""
    if len(members) == 1:
        return members[0].section
    cuts = _cuts(members)
    if not cuts:
        return Refusal("13", Tangled(len(members)), members[0].section.name)
    places = [0, *(at for at, _ in cuts), len(members)]
    parts = [fold(members[a:b], origins, target) for a, b in pairwise(places)]
    first = parts[0]
    if isinstance(first, Refusal):
        return first
    chain = Chain(first, target=target)
    for (at, tensor), second in zip(cuts, parts[1:], strict=True):
        if isinstance(second, Refusal):
            return second
        live = any(tensor in member.live for member in members[:at])
        refused = hand_over(chain, second, tensor, origins, live=live)
        if refused is not None:
            return refused
    return chain.section()


def hand_over(
    chain: Chain, second: Section, tensor: str, origins: Mapping[str, Origin], *, live: bool
) -> Refusal | None:  # fmt: skip
    """Joins a section that may load `tensor` several times over to the chain, which stores it."""
    second = merge_loads(second, tensor)
    refused = check_crossing(origins.get(tensor), second, tensor, chain.target)
    if refused is not None:
        return refused
    found = chain.forward(second, tensor, live=live)
    return found if isinstance(found, Refusal) else None


# --- where a group is taken apart ----------------------------------------------------------------------------------
def _cuts(members: Sequence[Member]) -> list[tuple[int, str]]:
    """Every place at which one tensor alone crosses, which nobody before it reads, with that tensor; the parts between
    two places hang together by themselves."""
    last = {name: at for at, member in enumerate(members) for name in member.loads}
    crossing: dict[str, bool] = {}
    """whether somebody has read it yet"""
    found: list[tuple[int, str]] = []
    start = 0
    for at, member in enumerate(members[:-1]):
        for name in member.loads & crossing.keys():
            crossing[name] = True
            if last[name] == at:
                del crossing[name]
        crossing |= dict.fromkeys((name for name in member.stores if last.get(name, at) > at), False)
        if len(crossing) == 1 and not next(iter(crossing.values())) and _connected(members[start : at + 1]):
            found.append((at + 1, next(iter(crossing))))
            start = at + 1
    while found and not _connected(members[found[-1][0] :]):
        found.pop()
    return found


def _connected(members: Sequence[Member]) -> bool:
    """Whether the members are joined by the tensors that they hand to each other."""
    writer: dict[str, int] = {}
    near: list[list[int]] = [[] for _ in members]
    for at, member in enumerate(members):
        for name in member.loads:
            other = writer.get(name)
            if other is not None:
                near[at].append(other)
                near[other].append(at)
        for name in member.stores:
            writer[name] = at
    seen, todo = {0}, [0]
    while todo:
        for other in near[todo.pop()]:
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return len(seen) == len(members)


# --- loads ----------------------------------------------------------------------------------------------------------
def merge_loads(section: Section, tensor: str | None = None) -> Section:
    """One load in the place of those of `tensor`, or of any tensor, that fill alike buffers with the same
    tiles. Only where nothing is stored to it."""
    written = {tensor_of(stage.kind) for stage in section.stages if not isinstance(stage.kind, Load)}
    kept: dict[tuple[object, ...], BufferId] = {}
    same: dict[BufferId, BufferId] = {}
    dropped: set[StageId] = set()
    for k, stage in enumerate(section.stages):
        if not isinstance(stage.kind, Load) or stage.kind.tensor in written:
            continue
        if tensor is not None and _name(section, stage.kind) != tensor:
            continue
        made = section.buffers[stage.outs[0]]
        first = kept.setdefault((stage.kind, stage.in_loop, made.kind, made.dtype, made.page), stage.outs[0])
        if first != stage.outs[0]:
            same[stage.outs[0]] = first
            dropped.add(k)
    return _without(section, dropped, same) if dropped else section


def _without(section: Section, dropped: set[StageId], same: dict[BufferId, BufferId]) -> Section:
    """The section without the stages `dropped`; the buffers that they filled are those that `same` says."""
    numbers = {old: new for new, old in enumerate(k for k in range(len(section.stages)) if k not in dropped)}
    places = {old: new for new, old in enumerate(b for b in range(len(section.buffers)) if b not in same)}
    places |= {old: places[other] for old, other in same.items()}
    readers: dict[tuple[StageId, BufferId], list[StageId]] = {}
    writer = {section.stages[k].outs[0]: k for k in numbers if section.stages[k].outs}
    for edge in section.edges:
        buffer = same.get(edge.buffer, edge.buffer)
        source = writer[buffer] if edge.source in dropped else edge.source
        readers.setdefault((numbers[source], places[buffer]), []).extend(numbers[k] for k in edge.to)
    stages = tuple(_renumbered(section.stages[k], places) for k in numbers)
    return replace(
        section,
        stages=stages,
        buffers=tuple(buffer for b, buffer in enumerate(section.buffers) if b not in same),
        edges=tuple(Edge(s, b, tuple(sorted(dict.fromkeys(to)))) for (s, b), to in readers.items()),
    )


def _renumbered(stage: Stage, places: dict[BufferId, BufferId]) -> Stage:
    return renumbered(stage, lambda tensor: tensor, places.__getitem__)


# --- what no kind says -----------------------------------------------------------------------------------------------
def origins_of(section: Section, known: Mapping[str, Origin]) -> dict[str, Origin]:
    """For each tensor that the section stores, where its content was last in a memory that was fixed for it; `known`
    says it of tensors that are loaded to no memory in particular."""
    writers = {stage.outs[0]: stage for stage in section.stages if stage.outs}
    found: dict[str, Origin] = {}
    for stage in section.stages:
        if not isinstance(stage.kind, Store):
            continue
        buffer, writer = stage.ins[0], writers[stage.ins[0]]
        while section.buffers[buffer].kind is None and len(writer.ins) == 1:
            buffer = writer.ins[0]
            writer = writers[buffer]
        held = section.buffers[buffer]
        if held.kind is not None:
            found[_name(section, stage.kind)] = Origin(held.name, held.kind, held.dtype)
        elif isinstance(writer.kind, Load) and _name(section, writer.kind) in known:
            found[_name(section, stage.kind)] = known[_name(section, writer.kind)]
    return found


def check_crossing(origin: Origin | None, second: Section, tensor: str, target: Target) -> Refusal | None:
    """Refuses what would cross DDR unseen. A cast of what comes out of an accumulator has no memory of its own, since
    it may be done on the way; so the way is asked for from where the cast's operand is, with the cast on it or beside
    it in the memory of vectors."""
    load = next((s for s in second.stages if isinstance(s.kind, Load) and _name(second, s.kind) == tensor), None)
    if load is None or origin is None:
        return None
    read = second.buffers[load.outs[0]]
    if read.kind is None or read.kind is origin.kind:
        return None
    direct = on_chip(target, origin.kind, read.kind, origin.dtype, read.dtype)
    apart = _reaches(target, origin.kind, VEC, origin.dtype) and _reaches(target, VEC, read.kind, read.dtype)
    if direct or (target.has(VEC) and apart):
        return None
    return Refusal(
        "S13", Crossing(origin.buffer, read.name, origin.kind, read.kind), f"second.buffers.{read.name}.kind"
    )


def _reaches(target: Target, begin: MemorySpace, end: MemorySpace, dtype: DType) -> bool:
    return begin is end or on_chip(target, begin, end, dtype, dtype)


def _name(section: Section, kind: Load | Store) -> str:
    return section.tensors[kind.tensor].name
