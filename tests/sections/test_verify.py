"""Malformed sections: each invariant of the verifier broken once, and refused by every join without an exception."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from sections.cases import (
    COMPUTE,
    LOAD,
    STORE,
    buffer,
    consumer,
    grid,
    linked,
    plus,
    producer,
    tensor,
    tiled,
    with_buffer,
    with_kind,
    with_stage,
    with_tensor,
)
from sections.joining import TARGET, join

from tilewright.errors import VerifyError
from tilewright.ir.dtypes import FP32
from tilewright.ir.function import Function, Param
from tilewright.ir.nodes import LoopKind, Return
from tilewright.ir.scalar import Value
from tilewright.ir.types import TileType
from tilewright.sections.claims import Claim
from tilewright.sections.forward import forward
from tilewright.sections.patterns import Affine, AffinePattern, Axis, ListedPattern, Step, Term, Tile, whole
from tilewright.sections.refusals import Refusal
from tilewright.sections.section import (
    AllReduce,
    Bind,
    Body,
    Compute,
    Edge,
    KLoop,
    Load,
    Loop,
    Role,
    ScalarParam,
    Section,
    Stage,
    Store,
    TensorLayout,
    Work,
)
from tilewright.sections.verify import check_section, faults

TRIPS = Loop(0, 4, 1, LoopKind.SEQUENTIAL)


def k_loop() -> Section:
    """A matmul over four tiles along K: fill, then load and add in the loop, then store."""
    loads = AffinePattern((64, 128), (Affine(), Affine()), (Step(Axis.COLUMN, 1, Term(128)),))
    stages = (
        Stage(Compute("fill"), (), (1,)),
        Stage(Load(0, loads, num_blocks=4), (), (0,), in_loop=True),
        Stage(Compute("matmul", (1, 1), 1), (1, 0), (1,), in_loop=True),
        Stage(Store(1, whole(64, 128)), (1,), ()),
    )
    loop = KLoop(TRIPS, 1)
    work = Work(tiled(producer()).work.items[:1], 4, 4, grid((0, 16, 16)).grid, loop)
    made = replace(tiled(producer()), stages=(), work=work, trips=(4,))
    made = with_tensor(made, 0, layout=TensorLayout((64, 512)), elems=64 * 512)
    return linked(replace(made, stages=stages))


def body(results: int = 1, binds: tuple[Bind, ...] = (Bind(Role.INPUT),)) -> Body:
    value = Value("x", TileType((64, 128), FP32))
    return Body(Function("f", (Param(value),), (Return((value,) * results),)), binds)


def bound(*binds: Bind, results: int = 1, at: int = COMPUTE) -> Section:
    """A producer with a body at a stage."""
    return with_stage(producer(scalars=(ScalarParam("n", FP32),)), at, body=body(results, binds))


def listed(*tiles: Tile) -> Section:
    return with_kind(producer(), LOAD, pattern=ListedPattern((((), tiles),)))


def with_pattern(pattern: AffinePattern) -> Section:
    return with_kind(tiled(producer()), LOAD, pattern=pattern)


def with_step(step: Step) -> Section:
    return with_pattern(AffinePattern((16, 128), ROW, (step,)))


def with_term(term: Term) -> Section:
    return with_pattern(AffinePattern((16, 128), (Affine(0, (term,)), Affine())))


def with_work(section: Section, **fields: Any) -> Section:
    return replace(section, work=replace(section.work, **fields))


def two_writers() -> Section:
    return linked(plus(producer(), Stage(Compute("exp"), (0,), (1,)), at=1))


ROW = (Affine(), Affine())
MALFORMED: dict[str, tuple[Section, str]] = {
    "tensor named twice": (with_tensor(producer(), 1, name="x"), "tensors[1].name"),
    "tensor without a name": (with_tensor(producer(), 1, name=""), "tensors[1].name"),
    "buffer named twice": (with_buffer(producer(), 1, name="in"), "buffers[1].name"),
    "scalar named twice": (producer(scalars=(ScalarParam("n", FP32),) * 2), "scalars[1].name"),
    "elements": (with_tensor(producer(), 0, elems=5), "tensors[0].elems"),
    "tiles": (with_tensor(producer(), 0, tiles=0), "tensors[0].tiles"),
    "strides": (with_tensor(producer(), 0, layout=TensorLayout((64, 128), (1,))), "tensors[0].layout"),
    "extent": (with_tensor(producer(), 0, layout=TensorLayout((-64, -128))), "tensors[0].layout"),
    "origin": (with_buffer(producer(), 0, origin=""), "buffers[0].origin"),
    "pages": (with_buffer(producer(), 0, pages=0), "buffers[0].pages"),
    "page": (with_buffer(producer(), 0, page=(64, 0)), "buffers[0].page"),
    "banks": (producer(mem_banks=0), "mem_banks"),
    "accumulators": (producer(acc_tiles_used=-1), "acc_tiles_used"),
    "tile": (producer(tile=(0,)), "tile"),
    "error": (producer(claim=Claim(Fraction(-1), Fraction(1))), "claim"),
    "gain": (producer(claim=Claim(Fraction(0), Fraction(1, 2))), "claim"),
    "no such tensor": (with_kind(producer(), STORE, tensor=2), "stages[2].kind.tensor"),
    "no such buffer in": (with_stage(producer(), COMPUTE, ins=(7,)), "stages[1].ins"),
    "no such buffer out": (with_stage(producer(), COMPUTE, outs=(-1,)), "stages[1].outs"),
    "accumulator": (with_kind(producer(), COMPUTE, accumulator=0), "stages[1].kind.accumulator"),
    "no such source": (replace(producer(), edges=(Edge(9, 0, ()),)), "edges[0].source"),
    "no such edge buffer": (replace(producer(), edges=(Edge(0, 9, ()),)), "edges[0].buffer"),
    "no such reader": (replace(producer(), edges=(Edge(0, 0, (9,)),)), "edges[0].to"),
    "reader twice": (replace(producer(), edges=(Edge(0, 0, (1, 1)),)), "edges[0].to"),
    "no such carried buffer": (with_work(k_loop(), k_loop=KLoop(TRIPS, 9)), "work.k_loop.accumulator"),
    "load that reads": (with_stage(producer(), LOAD, ins=(1,)), "stages[0].ins"),
    "store that writes": (with_stage(producer(), STORE, outs=(0,)), "stages[2].outs"),
    "reduce that reads": (plus(producer(), Stage(AllReduce(1, "all"), (0,), ())), "stages[3].ins"),
    "no blocks": (with_kind(producer(), LOAD, num_blocks=0), "stages[0].kind.num_blocks"),
    "no sub-blocks": (with_kind(producer(), STORE, sub_blocks=(1, 0)), "stages[2].kind.sub_blocks"),
    "two writers": (two_writers(), "buffers[1]"),
    "read before written": (with_stage(producer(), COMPUTE, ins=(1,), outs=(0,)), "buffers[0]"),
    "never written": (with_stage(with_buffer(producer(), 0), LOAD, outs=()), "stages[1].ins"),
    "no edge": (replace(producer(), edges=producer().edges[:1]), "edges"),
    "other readers": (replace(producer(), edges=(Edge(0, 0, (1, 2)), producer().edges[1])), "edges[0].to"),
    "edge of nobody": (replace(producer(), edges=(Edge(2, 0, ()),)), "edges[0]"),
    "edge twice": (replace(producer(), edges=producer().edges * 2), "edges[2]"),
    "item twice": (with_work(producer(), items=producer().work.items * 2), "work.items"),
    "coordinates": (with_work(producer(), items=(*producer().work.items, *grid((0, 2, 1)).items)), "work.items"),
    "no tiles along K": (with_work(producer(), k_tiles=0), "work.k_tiles"),
    "step": (with_work(producer(), grid=(Loop(0, 4, 0, LoopKind.PARALLEL),)), "work.grid"),
    "items of another grid": (with_work(tiled(producer()), grid=grid((0, 32, 16)).grid), "work.items"),
    "loop without stages": (with_work(producer(), k_loop=KLoop(TRIPS, None)), "work.k_loop"),
    "stages without loop": (with_work(k_loop(), k_loop=None), "stages[1].in_loop"),
    "stages of the loop apart": (with_stage(k_loop(), 0, in_loop=True), ""),
    "other trips": (with_work(k_loop(), k_trip=3), "work.k_loop"),
    "store in the loop": (with_stage(k_loop(), STORE + 1, in_loop=True), "stages"),
    "rank of offsets": (with_pattern(AffinePattern((16, 128), (Affine(),))), "stages[0].kind.pattern"),
    "rank of extents": (with_kind(producer(), LOAD, pattern=AffinePattern((64,), ROW)), "stages[0].kind.pattern"),
    "rank of tiles": (listed(Tile((0,), (64,))), "stages[0].kind.pattern"),
    "dimension of a step": (with_step(Step(Axis.ROW, 2, Term(1))), "stages[0].kind.pattern.steps"),
    "coordinate of a step": (with_step(Step(Axis.ITEM, 0, Term(1, 1))), "stages[0].kind.pattern.steps"),
    "divisor": (with_term(Term(1, 0, 0)), "stages[0].kind.pattern.offsets"),
    "modulus": (with_term(Term(1, 0, 1, -1)), "stages[0].kind.pattern.offsets"),
    "coordinate": (with_term(Term(1, 1)), "stages[0].kind.pattern.offsets"),
    "binds": (bound(), "stages[1].body.binds"),
    "no such input": (bound(Bind(Role.INPUT, 1)), "stages[1].body.binds"),
    "no tensor": (bound(Bind(Role.TENSOR)), "stages[1].body.binds"),
    "no such coordinate": (bound(Bind(Role.COORD)), "stages[1].body.binds"),
    "no loop": (bound(Bind(Role.TRIP)), "stages[1].body.binds"),
    "no such scalar": (bound(Bind(Role.SCALAR, name="m")), "stages[1].body.binds"),
    "results": (bound(Bind(Role.INPUT), results=2), "stages[1].body.function"),
    "results of a store": (bound(Bind(Role.INPUT), results=0, at=STORE), "stages[2].body.function"),
}  # fmt: skip
MALFORMED["stages of the loop apart"] = (
    linked(replace(k_loop(), stages=(
        replace(k_loop().stages[0], in_loop=True), Stage(Compute("fill"), (), (2,)), *k_loop().stages[1:]
    ), buffers=(*k_loop().buffers, buffer("u")))),
    "stages[0].in_loop",
)  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_s5_malformed_sections_are_named_and_refused(name: str) -> None:
    section, where = MALFORMED[name]
    found = faults(section)
    assert found and found[0].where == where, [str(fault) for fault in found]
    with pytest.raises(VerifyError, match="malformed"):
        check_section(section)
    as_first = forward(section, consumer(), "t", target=TARGET)
    as_second = forward(link_before(), section, "x", target=TARGET)
    assert isinstance(as_first, Refusal) and (as_first.rule, as_first.where) == ("S5", f"first.{where}")
    assert isinstance(as_second, Refusal) and (as_second.rule, as_second.where) == ("S5", f"second.{where}")


def link_before() -> Section:
    """A section that stores x."""
    return with_tensor(with_tensor(producer(), 0, name="w"), 1, name="x")


def test_sections_that_are_well_formed() -> None:
    extent = with_tensor(producer(), 0, layout=TensorLayout((64, "n")), elems=None)
    for section in (producer(), consumer(), tiled(producer()), k_loop(), extent, bound(Bind(Role.SCALAR, name="n"))):
        check_section(section)
    check_section(with_stage(k_loop(), 2, body=body(binds=(Bind(Role.TRIP),))))
    check_section(with_stage(k_loop(), 3, body=body(binds=(Bind(Role.TENSOR),))))
    check_section(with_stage(k_loop(), 3, body=body(binds=(Bind(Role.COORD),))))


def test_16_what_adds_to_the_carrier_is_part_of_how_it_is_made() -> None:
    """The accumulator of a K loop is stored, and forwarded, like any other buffer."""
    second = tiled(consumer(), whole(64, 128), grid((0, 16, 16)))
    first = with_buffer(k_loop(), 1, page=(16, 128))
    joint = join(first, second)
    assert joint.carrier == 1
    assert joint.section.work == first.work and joint.section.trips == (4,)
    carried = [edge for edge in joint.section.edges if edge.buffer == joint.carrier]
    assert carried == [Edge(0, 1, (2,)), Edge(2, 1, (3,))]
    assert tensor("t") not in joint.section.tensors
