"""A section as text for people: one line per tensor and stage, buffers by name between them.

section exp+add (template, 1 item, exact)
  tensor x: FP32 [64, 128]
  tensor y: FP32 [64, 128]
  buffer out: Vec FP32 1 x [64, 128]
  0 load x [0, 0]+[64, 128] -> in
  1 exp in -> out
  2 store out -> y [0, 0]+[64, 128]
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.sections.patterns import AffinePattern, Axis, ListedPattern, OpaquePattern, Pattern, Term
from tilewright.sections.section import (
    AllReduce,
    Buffer,
    Compute,
    Load,
    Recv,
    Scalar,
    Section,
    Stage,
    Store,
    Tensor,
    Work,
)


def print_section(section: Section) -> str:
    """The text, ended by a newline. Bodies are left out; names and numbers are the section's own."""
    return "\n".join(_lines(section)) + "\n"


def _lines(section: Section) -> Iterator[str]:
    yield f"section {section.name} ({section.phase.value}, {_work(section.work)}, {section.claim})"
    plan = [f"tile {list(section.tile)}"] if section.tile else []
    plan += [f"trips {list(section.trips)}"] if section.trips else []
    plan += [f"{section.mem_banks} banks"] if section.mem_banks != 1 else []
    plan += [f"{section.acc_tiles_used} accumulator tiles"] if section.acc_tiles_used else []
    plan += [f"requires {', '.join(sorted(needs))}"] if (needs := _requires(section)) else []
    plan += [f"{key}={value}" for key, value in section.attrs]
    if plan:
        yield f"  plan: {', '.join(plan)}"
    yield f"  numerics: {section.numerics.accumulate} accumulators, {section.numerics.rounding}"
    for tensor in section.tensors:
        yield f"  tensor {_tensor(tensor)}"
    for scalar in section.scalars:
        yield f"  scalar {scalar.name}: {scalar.dtype}"
    for buffer in section.buffers:
        yield f"  buffer {_buffer(buffer)}"
    for k, stage in enumerate(section.stages):
        yield f"  {k} {'(k) ' if stage.in_loop else ''}{_stage(section, stage)}"
    for edge in section.edges:
        readers = ", ".join(map(str, edge.to)) or "nobody"
        yield f"  edge {edge.source} -{section.buffers[edge.buffer].name}-> {readers}"


def _work(work: Work) -> str:
    items = f"{len(work.items)} item{'' if len(work.items) == 1 else 's'}"
    loops = "".join(f" over {loop.kind.value}({loop.start}, {loop.stop}, {loop.step})" for loop in work.grid)
    along = f", {work.k_tiles} tiles along K" if work.k_tiles != 1 else ""
    trips = f" in {work.k_trip} trips" if work.k_trip is not None else ""
    return items + loops + along + trips


def _requires(section: Section) -> list[str]:
    return [*section.requires.handshakes, *section.requires.interconnect]


def _tensor(tensor: Tensor) -> str:
    strides = "" if tensor.layout.strides is None else f" strides {list(tensor.layout.strides)}"
    tiles = "" if tensor.tiles == 1 else f" in {tensor.tiles} tiles"
    return f"{tensor.name}: {tensor.dtype} {list(tensor.layout.shape)}{strides}{tiles}"


def _buffer(buffer: Buffer) -> str:
    kind = "any" if buffer.kind is None else buffer.kind.value
    page = "?" if buffer.page is None else str(list(buffer.page))
    return f"{buffer.name}: {kind} {buffer.dtype} {buffer.pages} x {page}"


def _stage(section: Section, stage: Stage) -> str:
    ins = ", ".join(section.buffers[b].name for b in stage.ins)
    outs = ", ".join(section.buffers[b].name for b in stage.outs)
    match stage.kind:
        case Load(tensor, pattern, num_blocks, multicast, transposed, pad):
            more = f" x{num_blocks}" if num_blocks != 1 else ""
            more += f" multicast {multicast}" if multicast is not None else ""
            more += " transposed" if transposed else ""
            more += f" pad {pad.name.lower()}" if pad.value else ""
            return f"load {section.tensors[tensor].name} {_pattern(pattern)}{more} -> {outs}"
        case Store(tensor, pattern, sub_blocks, adds, keeps):
            more = f" x{list(sub_blocks)}" if sub_blocks != (1, 1) else ""
            more += " add" if adds else ""
            more += " keeping the rest" if keeps else ""
            return f"store {ins} -> {section.tensors[tensor].name} {_pattern(pattern)}{more}"
        case AllReduce(tensor, group):
            return f"all_reduce {section.tensors[tensor].name} over {group}"
        case Recv(channel):
            return f"recv {channel} -> {outs}"
        case Compute(work, sub_blocks, accumulator):
            more = f" x{list(sub_blocks)}" if sub_blocks not in (None, (1, 1)) else ""
            more += f" onto {section.buffers[accumulator].name}" if accumulator is not None else ""
            return f"{work}{more} {ins} -> {outs}"
        case Scalar(work):
            return f"scalar {work} {ins}".rstrip()


def _pattern(pattern: Pattern) -> str:
    match pattern:
        case AffinePattern(extents, offsets, steps):
            dims = [[str(offset.constant), *(_term(t, f"i{t.index}") for t in offset.terms)] for offset in offsets]
            for step in steps:
                x = f"i{step.term.index}" if step.axis is Axis.ITEM else step.axis.value
                dims[step.dim].append(f"step {_term(step.term, x)}")
            shown = (" + ".join(part for part in dim if part != "0" or len(dim) == 1) for dim in dims)
            return f"[{', '.join(shown)}]+{list(extents)}"
        case ListedPattern(table):
            return f"listed for {len(table)} items"
        case OpaquePattern(reason):
            return f"unknown ({reason})"


def _term(term: Term, x: str) -> str:
    part = x if term.divisor == 1 else f"{x} // {term.divisor}"
    part = part if not term.modulus else f"{part} % {term.modulus}"
    if term.coefficient == 1:
        return part
    return f"{term.coefficient} * ({part})" if " " in part else f"{term.coefficient} * {part}"
