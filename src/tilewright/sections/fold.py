"""Several sections as one: which two are joined first, so that each join is of one tensor between two sections.

`forward` hands one tensor from one section to the next. A tensor with several readers is handed over last: first its
readers become one section, whose loads of it become one load. So a group of sections is taken apart where a single
tensor crosses, near the middle, or else after its first section, and put together again from the parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.ir.layout import MemorySpace
from tilewright.sections.bridge import on_chip
from tilewright.sections.forward import forward
from tilewright.sections.growing import renumbered
from tilewright.sections.refusals import Crossing, Reason, Refusal
from tilewright.sections.section import BufferId, Edge, Load, Section, Stage, StageId, Store
from tilewright.targets import Target

VEC = MemorySpace.VEC
"""Where casts are computed."""
PEELED = 64
"""Sections of a group that no single tensor takes apart; larger ones would take time quadratic in their number."""


@dataclass(frozen=True, slots=True)
class Tangled(Reason):
    """More than one tensor crosses wherever the group is taken apart."""

    sections: int

    def __str__(self) -> str:
        return f"{self.sections} sections hang together by more than one tensor at every place"


@dataclass(frozen=True, slots=True)
class Member:
    """One section of a group. `stores` and `loads` are the tensors that it writes and reads, by name; `live` those of
    its stores that somebody outside of the group needs."""

    section: Section
    stores: frozenset[str]
    loads: frozenset[str]
    live: frozenset[str]


def fold(members: Sequence[Member], target: Target) -> Section | Refusal:
    """The members, which stand in an order in which they may run, as one section. Takes n log n where a single tensor
    crosses at many places."""
    if len(members) == 1:
        return members[0].section
    for at in _cuts(members):
        tensor = _crossing(members[:at], members[at:])
        if tensor is None:
            continue
        first, second = fold(members[:at], target), fold(members[at:], target)
        if isinstance(first, Refusal):
            return first
        if isinstance(second, Refusal):
            return second
        live = any(tensor in member.live for member in members[:at])
        return join(first, second, tensor, target, live=live)
    return Refusal("13", Tangled(len(members)), members[0].section.name)


def join(first: Section, second: Section, tensor: str, target: Target, *, live: bool) -> Section | Refusal:
    """Two sections as one that hands over `tensor`; the second may load it several times over."""
    second = merge_loads(second, tensor)
    crossing = check_crossing(first, second, tensor, target)
    if crossing is not None:
        return crossing
    found = forward(first, second, tensor, target=target, live=live)
    return found if isinstance(found, Refusal) else found.section


# --- where a group is taken apart ----------------------------------------------------------------------------------
def _cuts(members: Sequence[Member]) -> list[int]:
    """Places to take a group apart, nearest to the middle first, at which few enough tensors cross to look closer;
    the place after the first member last."""
    last = {name: at for at, member in enumerate(members) for name in member.loads}
    crossing = [0] * (len(members) + 1)
    for at, member in enumerate(members):
        for name in member.stores:
            if last.get(name, at) > at:
                crossing[at + 1] += 1
                crossing[last[name] + 1] -= 1
    found: list[int] = []
    now = 0
    for at in range(1, len(members)):
        now += crossing[at]
        if now == 1:
            found.append(at)
    middle = len(members) / 2
    found.sort(key=lambda at: abs(at - middle))
    return found if len(members) <= PEELED else found[:4]


def _crossing(left: Sequence[Member], right: Sequence[Member]) -> str | None:
    """The one tensor that goes from the left part to the right one, where nothing left reads it too and both parts
    hang together by themselves."""
    stored = {name for member in left for name in member.stores}
    read = {name for member in right for name in member.loads}
    names = stored & read
    if len(names) != 1:
        return None
    name = next(iter(names))
    if any(name in member.loads for member in left) or any(name in member.stores for member in right):
        return None
    return name if _connected(left) and _connected(right) else None


def _connected(members: Sequence[Member]) -> bool:
    """Whether the members are joined by the tensors that they hand to each other."""
    writer = {name: at for at, member in enumerate(members) for name in member.stores}
    near: list[list[int]] = [[] for _ in members]
    for at, member in enumerate(members):
        for name in member.loads:
            other = writer.get(name, at)
            if other < at:
                near[at].append(other)
                near[other].append(at)
    seen, todo = {0}, [0]
    while todo:
        for other in near[todo.pop()]:
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return len(seen) == len(members)


# --- loads ----------------------------------------------------------------------------------------------------------
def merge_loads(section: Section, tensor: str) -> Section:
    """`section` with one load in the place of those of `tensor` that fill alike buffers with the same tiles. Only where
    nothing is stored to it."""
    ids = [k for k, declared in enumerate(section.tensors) if declared.name == tensor]
    naming = [k for k, s in enumerate(section.stages) if isinstance(s.kind, Load | Store) and s.kind.tensor in ids]
    loads = [k for k in naming if isinstance(section.stages[k].kind, Load)]
    if len(loads) < 2 or loads != naming:
        return section
    kept: dict[tuple[object, ...], BufferId] = {}
    same: dict[BufferId, BufferId] = {}
    dropped: set[StageId] = set()
    for k in loads:
        stage = section.stages[k]
        buffer = section.buffers[stage.outs[0]]
        first = kept.setdefault((stage.kind, buffer.kind, buffer.dtype, buffer.page), stage.outs[0])
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
def check_crossing(first: Section, second: Section, tensor: str, target: Target) -> Refusal | None:
    """Refuses what would cross DDR unseen. A cast of what comes out of an accumulator has no memory of its own, since
    it may be done on the way; so the way is asked for from where the cast's operand is, with the cast on it or beside
    it in the memory of vectors."""
    o = next((s.ins[0] for s in first.stages if isinstance(s.kind, Store) and _names(first, s.kind) == tensor), None)
    i = next((s.outs[0] for s in second.stages if isinstance(s.kind, Load) and _names(second, s.kind) == tensor), None)
    if o is None or i is None or first.buffers[o].kind is not None:
        return None
    end, made = second.buffers[i].kind, first.buffers[o]
    source = _behind(first, o)
    begin = first.buffers[source].kind
    if end is None or begin is None or begin is end:
        return None
    dtype = first.buffers[source].dtype
    direct = on_chip(target, begin, end, dtype, made.dtype)
    apart = _reaches(target, begin, VEC, dtype) and _reaches(target, VEC, end, made.dtype)
    if direct or (target.has(VEC) and apart):
        return None
    return Refusal("S13", Crossing(made.name, second.buffers[i].name, begin, end), f"second.buffers.{i}.kind")


def _reaches(target: Target, begin: MemorySpace, end: MemorySpace, dtype: object) -> bool:
    return begin is end or on_chip(target, begin, end, dtype, dtype)  # type: ignore[arg-type]


def _behind(section: Section, buffer: BufferId) -> BufferId:
    """The buffer of which `buffer` is made without a memory being fixed."""
    writers = {stage.outs[0]: stage for stage in section.stages if stage.outs}
    while section.buffers[buffer].kind is None and len(writers[buffer].ins) == 1:
        buffer = writers[buffer].ins[0]
    return buffer


def _names(section: Section, kind: Load | Store) -> str:
    return section.tensors[kind.tensor].name
