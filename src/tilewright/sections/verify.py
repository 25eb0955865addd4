"""What a section must satisfy before anybody looks at what it means.

*Numbers*: every id names something; names are unique; pages, tiles, blocks and banks are at least 1; a tensor's
elements are those of its layout.
*Dataflow*: loads and receives read no buffer, stores write none; a buffer has one writer, except an accumulator, which
a stage before the K loop starts and one in it continues; nothing is read before it is written; edges say exactly who
reads what, in stage order.
*Work*: coordinates have one number per grid loop; the items are the product of the grid's loops, once each; stages of
the K loop stand together, and there are as many trips as the plan says.
*Patterns*: one offset per dimension of the tensor; terms read coordinates that exist.
*Bodies*: one bind per parameter, and each binds something that the stage has; one result per output.

Faults are returned, never raised, whatever is wrong with the section.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from tilewright.errors import VerifyError
from tilewright.sections.patterns import AffinePattern, Axis, ListedPattern, Pattern, Term
from tilewright.sections.section import (
    AllReduce,
    Body,
    Buffer,
    Compute,
    Load,
    Recv,
    Role,
    Scalar,
    Section,
    Stage,
    Store,
    Tensor,
    tensor_of,
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, at a field of the section (``stages[2].ins``)."""

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


def check_section(section: Section) -> None:
    """Raises `VerifyError` with the first fault, if there is any."""
    found = faults(section)
    if found:
        raise VerifyError(f"section {section.name} is malformed", found=str(found[0]), notes=tuple(map(str, found[1:])))


def faults(section: Section) -> tuple[Fault, ...]:
    """Everything that is wrong; later groups are looked at only where the earlier ones hold."""
    for group in GROUPS:
        found = tuple(group(section))
        if found:
            return found
    return ()


# --- numbers ------------------------------------------------------------------------------------------------------
def _numbers(section: Section) -> Iterator[Fault]:
    yield from _unique("tensors", [tensor.name for tensor in section.tensors])
    yield from _unique("buffers", [buffer.name for buffer in section.buffers])
    yield from _unique("scalars", [scalar.name for scalar in section.scalars])
    for k, tensor in enumerate(section.tensors):
        yield from _tensor(f"tensors[{k}]", tensor)
    for k, buffer in enumerate(section.buffers):
        yield from _buffer(f"buffers[{k}]", buffer)
    if section.mem_banks < 1:
        yield Fault("mem_banks", "there must be a bank")
    if section.acc_tiles_used < 0:
        yield Fault("acc_tiles_used", "cannot be negative")
    if any(extent < 1 for extent in (*section.tile, *section.trips)):
        yield Fault("tile", "tiles and trips must be positive")
    if (section.claim.error or 0) < 0 or (section.claim.gain is not None and section.claim.gain < 1):
        yield Fault("claim", "an error is at least 0, a gain at least 1")


def _unique(where: str, names: Sequence[str]) -> Iterator[Fault]:
    seen: set[str] = set()
    for k, name in enumerate(names):
        if not name or name in seen:
            yield Fault(f"{where}[{k}].name", f"{name!r} is not a name of its own")
        seen.add(name)


def _tensor(where: str, tensor: Tensor) -> Iterator[Fault]:
    if tensor.elems != tensor.layout.elems:
        yield Fault(f"{where}.elems", f"{tensor.elems} elements in a layout of {tensor.layout.elems}")
    if tensor.tiles < 1:
        yield Fault(f"{where}.tiles", "there must be a tile")
    strides = tensor.layout.strides
    if strides is not None and len(strides) != len(tensor.layout.shape):
        yield Fault(f"{where}.layout", "one stride per dimension")
    if any(isinstance(extent, int) and extent < 0 for extent in tensor.layout.shape):
        yield Fault(f"{where}.layout", "an extent is negative")


def _buffer(where: str, buffer: Buffer) -> Iterator[Fault]:
    if not buffer.origin:
        yield Fault(f"{where}.origin", "a buffer keeps the name that it began with")
    if buffer.pages < 1:
        yield Fault(f"{where}.pages", "there must be a page")
    if any(isinstance(extent, int) and extent < 1 for extent in buffer.page or ()):
        yield Fault(f"{where}.page", "an extent is not positive")


# --- ids ----------------------------------------------------------------------------------------------------------
def _ids(section: Section) -> Iterator[Fault]:
    tensors, buffers, stages = len(section.tensors), len(section.buffers), len(section.stages)
    for k, stage in enumerate(section.stages):
        where = f"stages[{k}]"
        tensor = tensor_of(stage.kind)
        if tensor is not None and not 0 <= tensor < tensors:
            yield Fault(f"{where}.kind.tensor", f"there is no tensor {tensor}")
        for field, ids in (("ins", stage.ins), ("outs", stage.outs)):
            yield from _ids_in(f"{where}.{field}", ids, buffers, "buffer")
        if isinstance(stage.kind, Compute) and stage.kind.accumulator is not None:
            both = stage.kind.accumulator in stage.ins and stage.kind.accumulator in stage.outs
            if not both:
                yield Fault(f"{where}.kind.accumulator", "is not among its inputs and outputs")
    for k, edge in enumerate(section.edges):
        yield from _ids_in(f"edges[{k}].source", (edge.source,), stages, "stage")
        yield from _ids_in(f"edges[{k}].buffer", (edge.buffer,), buffers, "buffer")
        yield from _ids_in(f"edges[{k}].to", edge.to, stages, "stage")
    loop = section.work.k_loop
    if loop is not None and loop.accumulator is not None:
        yield from _ids_in("work.k_loop.accumulator", (loop.accumulator,), buffers, "buffer")


def _ids_in(where: str, ids: Sequence[int], count: int, what: str) -> Iterator[Fault]:
    for id in ids:
        if not 0 <= id < count:
            yield Fault(where, f"there is no {what} {id}")


# --- dataflow -----------------------------------------------------------------------------------------------------
def _flow(section: Section) -> Iterator[Fault]:
    for k, stage in enumerate(section.stages):
        yield from _arity(f"stages[{k}]", stage)
    writers, readers = _ends(section)
    loop = section.work.k_loop
    for b, at in enumerate(writers):
        carried = loop is not None and loop.accumulator == b
        allowed = _accumulates(section, at, b)
        if len(at) > (2 if allowed else 1) or (carried and not (allowed and section.stages[at[1]].in_loop)):
            yield Fault(f"buffers[{b}]", f"{section.buffers[b].name} is written by stages {at}")
        if readers[b] and (not at or readers[b][0] <= at[0]):
            yield Fault(f"stages[{readers[b][0]}].ins", f"{section.buffers[b].name} is read before it is written")
    yield from _edges(section, writers, readers)


def _arity(where: str, stage: Stage) -> Iterator[Fault]:
    match stage.kind:
        case Load() | Recv():
            reads, writes = False, True
        case Store():
            reads, writes = True, False
        case Compute():
            reads, writes = True, True
        case AllReduce():
            reads, writes = False, False
        case Scalar():
            reads, writes = True, False
    if stage.ins and not reads:
        yield Fault(f"{where}.ins", "this kind of stage reads no buffer")
    if stage.outs and not writes:
        yield Fault(f"{where}.outs", "this kind of stage writes no buffer")
    if isinstance(stage.kind, Load) and stage.kind.num_blocks < 1:
        yield Fault(f"{where}.kind.num_blocks", "there must be a block")
    blocks = stage.kind.sub_blocks if isinstance(stage.kind, Store | Compute) else None
    if blocks is not None and min(blocks) < 1:
        yield Fault(f"{where}.kind.sub_blocks", "there must be a block")


def _ends(section: Section) -> tuple[list[list[int]], list[list[int]]]:
    """For each buffer, the stages that write it and those that read it, in order."""
    writers: list[list[int]] = [[] for _ in section.buffers]
    readers: list[list[int]] = [[] for _ in section.buffers]
    for k, stage in enumerate(section.stages):
        for b in dict.fromkeys(stage.outs):
            writers[b].append(k)
        for b in dict.fromkeys(stage.ins):
            readers[b].append(k)
    return writers, readers


def _accumulates(section: Section, writers: list[int], buffer: int) -> bool:
    """Whether the last of two writers is one that adds to what the other began."""
    if len(writers) != 2:
        return False
    kind = section.stages[writers[1]].kind
    return isinstance(kind, Compute) and kind.accumulator == buffer


def _edges(section: Section, writers: list[list[int]], readers: list[list[int]]) -> Iterator[Fault]:
    expected: dict[tuple[int, int], tuple[int, ...]] = {}
    for b, at in enumerate(writers):
        for n, writer in enumerate(at):
            until = at[n + 1] if n + 1 < len(at) else len(section.stages)
            expected[writer, b] = tuple(r for r in readers[b] if writer < r <= until)
    seen: set[tuple[int, int]] = set()
    for k, edge in enumerate(section.edges):
        key = (edge.source, edge.buffer)
        if key in seen or key not in expected:
            yield Fault(f"edges[{k}]", f"stage {edge.source} has no such edge to give")
        elif edge.to != expected[key]:
            yield Fault(f"edges[{k}].to", f"{list(edge.to)} where stages {list(expected[key])} read")
        seen.add(key)
    for (source, buffer), to in expected.items():
        if to and (source, buffer) not in seen:
            yield Fault("edges", f"no edge from stage {source} through {section.buffers[buffer].name}")


# --- work ---------------------------------------------------------------------------------------------------------
def _work(section: Section) -> Iterator[Fault]:
    work = section.work
    coords = [item.coord for item in work.items]
    if len({len(coord) for coord in coords}) > 1 or len(set(coords)) != len(coords):
        yield Fault("work.items", "coordinates differ in length, or occur twice")
    if work.k_tiles < 1:
        yield Fault("work.k_tiles", "there must be a tile along K")
    if any(loop.step < 1 for loop in work.grid):
        yield Fault("work.grid", "a step is not positive")
        return
    if work.grid and coords != list(product(*(loop.values for loop in work.grid))):
        yield Fault("work.items", "the items are not those of the grid")
    inside = [k for k, stage in enumerate(section.stages) if stage.in_loop]
    loop = work.k_loop
    if inside and (loop is None or inside != list(range(inside[0], inside[-1] + 1))):
        yield Fault(f"stages[{inside[0]}].in_loop", "the stages of the K loop must stand together in a K loop")
    if loop is not None and (not inside or loop.loop.step < 1 or len(loop.loop.values) != work.k_trip):
        yield Fault("work.k_loop", "a K loop needs stages, and the trips that the plan says")
    if any(isinstance(section.stages[k].kind, Store | AllReduce) for k in inside):
        yield Fault("stages", "nothing is stored or reduced inside the K loop")


# --- patterns -----------------------------------------------------------------------------------------------------
def _patterns(section: Section) -> Iterator[Fault]:
    coordinates = len(section.work.items[0].coord) if section.work.items else None
    for k, stage in enumerate(section.stages):
        if isinstance(stage.kind, Load | Store):
            rank = len(section.tensors[stage.kind.tensor].layout.shape)
            yield from _pattern(f"stages[{k}].kind.pattern", stage.kind.pattern, rank, coordinates)


def _pattern(where: str, pattern: Pattern, rank: int, coordinates: int | None) -> Iterator[Fault]:
    for step in pattern.steps:
        if not 0 <= step.dim < rank:
            yield Fault(f"{where}.steps", f"there is no dimension {step.dim}")
        yield from _term(f"{where}.steps", step.term, coordinates if step.axis is Axis.ITEM else None)
    if isinstance(pattern, AffinePattern):
        if len(pattern.offsets) != rank or len(pattern.extents) != rank:
            yield Fault(where, f"one offset and one extent for each of {rank} dimensions")
        for offset in pattern.offsets:
            for term in offset.terms:
                yield from _term(f"{where}.offsets", term, coordinates)
    elif isinstance(pattern, ListedPattern):
        if any(len(t.offsets) != rank or len(t.extents) != rank for _, tiles in pattern.table for t in tiles):
            yield Fault(where, f"one offset and one extent for each of {rank} dimensions")


def _term(where: str, term: Term, coordinates: int | None) -> Iterator[Fault]:
    if term.divisor < 1 or term.modulus < 0:
        yield Fault(where, "a divisor must be positive, a modulus not negative")
    if coordinates is not None and not 0 <= term.index < coordinates:
        yield Fault(where, f"items have no coordinate {term.index}")


# --- bodies -------------------------------------------------------------------------------------------------------
def _bodies(section: Section) -> Iterator[Fault]:
    scalars = {scalar.name for scalar in section.scalars}
    for k, stage in enumerate(section.stages):
        if stage.body is not None:
            yield from _body(f"stages[{k}].body", stage, stage.body, scalars, len(section.work.grid))


def _body(where: str, stage: Stage, body: Body, scalars: set[str], loops: int) -> Iterator[Fault]:
    if len(body.binds) != len(body.function.params):
        yield Fault(f"{where}.binds", "one for each parameter")
    names_tensor = tensor_of(stage.kind) is not None
    for bind in body.binds:
        match bind.role:
            case Role.INPUT:
                good = 0 <= bind.index < len(stage.ins)
            case Role.TENSOR:
                good = names_tensor
            case Role.COORD:
                good = 0 <= bind.index < loops
            case Role.TRIP:
                good = stage.in_loop
            case Role.SCALAR:
                good = bind.name in scalars
        if not good:
            yield Fault(f"{where}.binds", f"the stage has no {bind.role.value} {bind.name or bind.index}")
    wanted = 1 if isinstance(stage.kind, Store | AllReduce) else len(stage.outs)
    if len(body.function.results) != wanted:
        yield Fault(f"{where}.function", f"{len(body.function.results)} results where {wanted} are wanted")


GROUPS: tuple[Callable[[Section], Iterator[Fault]], ...] = (_numbers, _ids, _flow, _work, _patterns, _bodies)
"""In this order: each relies on what those before it found right."""
