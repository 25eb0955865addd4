"""Small sections for the tests of joins, and ways to change one thing about them.

`producer` loads x, computes, stores t; `consumer` loads t, computes, stores y. They join as they are."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from tilewright.ir.dtypes import FP32, DType
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import LoopKind
from tilewright.sections.claims import EXACT
from tilewright.sections.patterns import Affine, AffinePattern, Axis, Pattern, Step, Term, whole
from tilewright.sections.section import (
    ONE_ITEM,
    Buffer,
    Compute,
    Edge,
    Item,
    Load,
    Loop,
    Numerics,
    Phase,
    Requires,
    Section,
    Stage,
    Store,
    Tensor,
    TensorLayout,
    Work,
)

VEC, ACC, MAT = MemorySpace.VEC, MemorySpace.ACC, MemorySpace.MAT
SHAPE = (64, 128)


def tensor(name: str, dtype: DType = FP32, shape: tuple[int, ...] = SHAPE, tiles: int = 1) -> Tensor:
    layout = TensorLayout(shape)
    return Tensor(name, layout.elems, tiles, dtype, layout)


def buffer(name: str, kind: MemorySpace | None = VEC, dtype: DType = FP32, page: Any = SHAPE, pages: int = 1) -> Buffer:
    return Buffer(name, name, kind, dtype, pages, page)


def linked(section: Section) -> Section:
    """The section with the edges that its stages ask for."""
    edges: list[Edge] = []
    for k, stage in enumerate(section.stages):
        for b in stage.outs:
            until = next((n for n in range(k + 1, len(section.stages)) if b in section.stages[n].outs), None)
            last = len(section.stages) if until is None else until
            readers = tuple(n for n in range(k + 1, len(section.stages)) if n <= last and b in section.stages[n].ins)
            edges.append(Edge(k, b, readers))
    return replace(section, edges=tuple(edges))


def section(name: str, tensors: list[Tensor], buffers: list[Buffer], stages: list[Stage], **fields: Any) -> Section:
    values: dict[str, Any] = {
        "scalars": (), "work": ONE_ITEM, "trips": (), "tile": (), "mem_banks": 1, "numerics": Numerics(),
        "phase": Phase.TEMPLATE, "attrs": (), "claim": EXACT, "requires": Requires(), "acc_tiles_used": 0,
    }  # fmt: skip
    return linked(Section(name, tuple(tensors), tuple(stages), tuple(buffers), (), **(values | fields)))


def link(name: str, source: str, result: str, pattern: Pattern | None = None, **fields: Any) -> Section:
    """load `source` -> exp -> store `result`."""
    pattern = pattern or whole(*SHAPE)
    stages = [
        Stage(Load(0, pattern), (), (0,)),
        Stage(Compute("exp"), (0,), (1,)),
        Stage(Store(1, pattern), (1,), ()),
    ]
    return section(name, [tensor(source), tensor(result)], [buffer("in"), buffer("out")], stages, **fields)


def producer(**fields: Any) -> Section:
    return link("p", "x", "t", **fields)


def consumer(**fields: Any) -> Section:
    return link("c", "t", "y", **fields)


LOAD, COMPUTE, STORE = 0, 1, 2
"""The stages of a link."""


def with_stage(section: Section, at: int, **fields: Any) -> Section:
    stages = list(section.stages)
    stages[at] = replace(stages[at], **fields)
    return linked(replace(section, stages=tuple(stages)))


def with_kind(section: Section, at: int, **fields: Any) -> Section:
    return with_stage(section, at, kind=replace(section.stages[at].kind, **fields))


def with_buffer(section: Section, at: int, **fields: Any) -> Section:
    buffers = list(section.buffers)
    buffers[at] = replace(buffers[at], **fields)
    return replace(section, buffers=tuple(buffers))


def with_tensor(section: Section, at: int, **fields: Any) -> Section:
    tensors = list(section.tensors)
    tensors[at] = replace(tensors[at], **fields)
    return replace(section, tensors=tuple(tensors))


def plus(
    section: Section,
    stage: Stage,
    tensors: tuple[Tensor, ...] = (),
    buffers: tuple[Buffer, ...] = (),
    at: int | None = None,
) -> Section:
    """The section with one more stage, at the end or before stage `at`."""
    stages = list(section.stages)
    stages.insert(len(stages) if at is None else at, stage)
    changed = replace(
        section,
        stages=tuple(stages),
        tensors=(*section.tensors, *tensors),
        buffers=(*section.buffers, *buffers),
    )
    return linked(changed)


def grid(*loops: tuple[int, int, int], kind: LoopKind = LoopKind.PARALLEL, **fields: Any) -> Work:
    """The work of loops (start, stop, step)."""
    made = tuple(Loop(*loop, kind) for loop in loops)
    return Work(tuple(Item(coord) for coord in product(*(loop.values for loop in made))), grid=made, **fields)


ROWS = grid((0, 64, 16))
"""Four items of 16 rows."""


def rows(extent: int = 16, columns: int = 128) -> AffinePattern:
    """What a map over `ROWS` addresses."""
    return AffinePattern((extent, columns), (Affine(0, (Term(1),)), Affine()))


def stepping_rows(extent: int = 16, columns: int = 128) -> AffinePattern:
    """The same tiles, addressed as a matmul does."""
    return AffinePattern((extent, columns), (Affine(), Affine()), (Step(Axis.ITEM, 0, Term(1)),))


def tiled(section: Section, pattern: Pattern | None = None, work: Work = ROWS, **fields: Any) -> Section:
    """The section as a plan over `work`, its load and its store addressing `pattern`."""
    pattern = pattern or rows()
    changed = replace(section, phase=Phase.TILED, work=work, tile=(16,), **fields)
    buffers = tuple(replace(b, page=(16, 128)) for b in changed.buffers)
    changed = replace(changed, buffers=buffers)
    return with_kind(with_kind(changed, LOAD, pattern=pattern), STORE, pattern=pattern)
