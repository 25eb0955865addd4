"""What joining asks beyond agreement of a store and a load (S1 to S13): one test or more for each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sections.cases import (
    ACC,
    COMPUTE,
    LOAD,
    ROWS,
    SHAPE,
    STORE,
    buffer,
    consumer,
    grid,
    link,
    linked,
    plus,
    producer,
    rows,
    stepping_rows,
    tensor,
    tiled,
    with_buffer,
    with_kind,
    with_stage,
)
from sections.joining import TARGET, join, names, refused, works

from tilewright.ir.layout import MemorySpace
from tilewright.sections import refusals
from tilewright.sections.claims import EXACT, NOTHING, Claim, bounded, compose, merge, no_stronger
from tilewright.sections.forward import Allow, Chain, forward
from tilewright.sections.patterns import (
    Affine,
    AffinePattern,
    Axis,
    ListedPattern,
    OpaquePattern,
    Step,
    Term,
    Tile,
    whole,
)
from tilewright.sections.refusals import Refusal
from tilewright.sections.section import (
    AllReduce,
    Compute,
    Edge,
    Load,
    Phase,
    Recv,
    Section,
    Stage,
    Store,
    TensorLayout,
    Work,
)
from tilewright.sections.verify import faults
from tilewright.targets import load_target


# --- S1: claims ---------------------------------------------------------------------------------------------------
def bounds(least: int) -> st.SearchStrategy[Fraction | None]:
    return st.none() | st.fractions(min_value=least, max_value=16, max_denominator=64)


CLAIMS = st.builds(Claim, bounds(0), bounds(1)) | st.just(EXACT)


@given(CLAIMS, CLAIMS, CLAIMS)
def test_s1_claims_are_a_lattice(a: Claim, b: Claim, c: Claim) -> None:
    assert merge(a, b) == merge(b, a)
    assert merge(merge(a, b), c) == merge(a, merge(b, c))
    assert merge(a, a) == a
    assert no_stronger(merge(a, b), a) and no_stronger(merge(a, b), b)
    assert no_stronger(NOTHING, a) and no_stronger(a, EXACT)


@given(CLAIMS, CLAIMS, CLAIMS)
def test_s1_joining_composes_bounds(a: Claim, b: Claim, c: Claim) -> None:
    assert compose(compose(a, b), c) == compose(a, compose(b, c))
    assert no_stronger(compose(a, b), merge(a, b))
    if a.error is not None and b.error is not None and b.gain is not None:
        assert compose(a, b).error == b.error + b.gain * a.error


def test_s1_two_inexact_claims() -> None:
    first, second = producer(claim=bounded(0.5)), consumer(claim=bounded(0.25, gain=4))
    assert join(first, second).section.claim == bounded(0.25 + 4 * 0.5, gain=4)
    assert str(bounded(0.5, 2)) == "error 0.5, gain 2"


def test_s1_exact_with_exact_is_exact() -> None:
    assert join(producer(), consumer()).section.claim == EXACT
    amplifies = Claim(Fraction(0), None)
    assert join(producer(), consumer(claim=amplifies)).section.claim == amplifies
    assert amplifies.is_exact and str(amplifies) == "exact, gain unbounded"
    assert join(producer(claim=bounded(1)), consumer(claim=amplifies)).section.claim == NOTHING


# --- S2: tensors that both use ------------------------------------------------------------------------------------
def loads_also(section: Section, name: str, pattern: Any) -> Section:
    """The section with a load of one more tensor."""
    shape = SHAPE
    return plus(
        section, Stage(Load(2, pattern), (), (2,)), (tensor(name, shape=shape),), (buffer("u", page=None),), at=0
    )


def stores_also(section: Section, name: str, pattern: Any) -> Section:
    """The section with a store to one more tensor: of what it loads, or of what it has made of `t`."""
    source = 1 if section.name == "c" else 0
    return plus(section, Stage(Store(2, pattern), (source,), ()), (tensor(name),))


def test_s2_both_may_read() -> None:
    first, second = loads_also(producer(), "w", whole(*SHAPE)), loads_also(consumer(), "w", whole(8, 8))
    assert names(join(first, second).section.tensors) == ["x", "w", "y"]


def test_s2_a_consumer_that_stores_what_the_producer_loads() -> None:
    shifted = AffinePattern((16, 128), (Affine(48, (Term(-1),)), Affine()))
    first = loads_also(tiled(producer()), "w", rows())
    refused("S2", refusals.Shared, "second.stages[3]", first, stores_also(tiled(consumer()), "w", shifted))
    unknown = OpaquePattern("an index")
    refused("S2", refusals.Shared, "second.stages[3]", first, stores_also(tiled(consumer()), "w", unknown))
    first = loads_also(tiled(producer()), "w", unknown)
    refused("S2", refusals.Shared, "second.stages[3]", first, stores_also(tiled(consumer()), "w", rows()))
    refused("S2", refusals.Shared, "second.stages[3]", first, stores_also(tiled(consumer()), "w", unknown))


def test_s2_a_consumer_that_loads_what_the_producer_stores() -> None:
    allow = {Allow.SEVERAL_STORES}
    first = stores_also(tiled(producer()), "w", rows())
    refused("S2", refusals.Shared, "first.stages[3]", first, loads_also(tiled(consumer()), "w", rows(8)), allow=allow)
    join(first, loads_also(tiled(consumer()), "w", rows()), allow=allow)


def test_s2_equal_footprints_of_each_item_are_free() -> None:
    first = loads_also(tiled(producer()), "w", rows())
    assert works(join(first, stores_also(tiled(consumer()), "w", rows())).section)[0] == "Load"


def test_s2_items_that_meet_are_not() -> None:
    """Item 1 would read, in the joined loop, what item 0 has stored already."""
    meeting = rows(17)
    first = loads_also(tiled(producer()), "w", meeting)
    refused("S2", refusals.Shared, "second.stages[3]", first, stores_also(tiled(consumer()), "w", meeting))


def test_s2_an_all_reduce_then_a_load() -> None:
    first = plus(producer(), Stage(AllReduce(2, "sites"), (), ()), (tensor("w"),))
    refused("S2", refusals.Shared, "first.stages[3]", first, loads_also(consumer(), "w", whole(*SHAPE)))


# --- S3: capacity -------------------------------------------------------------------------------------------------
def test_s3_the_carrier_has_what_either_needs() -> None:
    joint = join(with_buffer(producer(), 1, pages=2), with_buffer(consumer(), 0, pages=3))
    assert joint.section.buffers[joint.carrier].pages == 3
    joint = join(with_buffer(producer(), 1, pages=4), with_buffer(consumer(), 0, pages=3))
    assert joint.section.buffers[joint.carrier].pages == 4


PAGE = 16 * 128 * 4
"""Bytes of one page of a tiled section."""


def test_s3_the_budget_is_checked_again() -> None:
    """Joined, three buffers follow each other, two at a time; with one kept through, three are live together."""
    first, second = tiled(producer()), tiled(consumer())
    join(first, second, target=TARGET.with_capacity(Vec=2 * PAGE))
    tight = TARGET.with_capacity(Vec=2 * PAGE - 1)
    refusal = refused("S3", refusals.OverBudget, "joined.buffers in UB", first, second, target=tight)
    assert refusal.reason == refusals.OverBudget("UB", 2 * PAGE, 2 * PAGE - 1)
    join(producer(), consumer(), target=tight)  # a template's pages are cut later


def test_s3_what_the_carrier_now_outlives() -> None:
    """After its store, the producer computes on; before the load, so does the consumer: the carrier stays through."""
    late = plus(tiled(producer()), Stage(Load(0, rows()), (), (2,)), (), (buffer("u", page=(16, 128)),))
    late = plus(late, Stage(Compute("add"), (2, 2), (3,)), (), (buffer("v", page=(16, 128)),))
    join(late, tiled(consumer()), target=TARGET.with_capacity(Vec=3 * PAGE))
    tight = TARGET.with_capacity(Vec=3 * PAGE - 1)
    assert refused("S3", refusals.OverBudget, "joined.buffers in UB", late, tiled(consumer()), target=tight)
    early = plus(tiled(consumer()), Stage(Compute("add"), (2, 2), (3,)), (), (buffer("v", page=(16, 128)),), at=0)
    early = plus(early, Stage(Load(1, rows()), (), (2,)), (), (buffer("u", page=(16, 128)),), at=0)
    early = with_kind(early, 4, tensor=2)
    early = replace(early, tensors=(*early.tensors, tensor("z")))
    join(tiled(producer()), early, target=TARGET.with_capacity(Vec=3 * PAGE))
    assert refused("S3", refusals.OverBudget, "joined.buffers in UB", tiled(producer()), early, target=tight)


def test_s3_pages_of_the_carrier_count() -> None:
    first, second = tiled(producer()), with_buffer(tiled(consumer()), 0, pages=3)
    join(first, second, target=TARGET.with_capacity(Vec=4 * PAGE))
    tight = TARGET.with_capacity(Vec=4 * PAGE - 1)
    assert refused("S3", refusals.OverBudget, "joined.buffers in UB", first, second, target=tight)


@given(st.integers(2, 6), st.data())
def test_s3_a_chain_counts_what_its_section_needs(length: int, data: st.DataObject) -> None:
    """The running count of a chain is that of the section which it has become."""
    pages = st.integers(1, 4)
    parts = [tiled(link(f"s{k}", f"t{k}", f"t{k + 1}")) for k in range(length)]
    parts = [with_buffer(with_buffer(part, 0, pages=data.draw(pages)), 1, pages=data.draw(pages)) for part in parts]
    joined: Section = parts[0]
    for k, part in enumerate(parts[1:]):
        joined = join(joined, part, f"t{k + 1}").section
    peak = _peak(joined)
    fits, tight = TARGET.with_capacity(Vec=peak), TARGET.with_capacity(Vec=peak - 1)
    assert _chain(parts, fits) == joined
    assert isinstance(_chain(parts, tight), Refusal)


def _peak(section: Section) -> int:
    """The most bytes live together, counted the plain way."""
    found: list[int] = []
    for k in range(len(section.stages)):
        live = 0
        for b, made in enumerate(section.buffers):
            uses = [n for n, stage in enumerate(section.stages) if b in (*stage.ins, *stage.outs)]
            live += (made.nbytes or 0) if uses and uses[0] <= k <= uses[-1] else 0
        found.append(live)
    return max(found)


def _chain(parts: list[Section], target: Any) -> Section | Refusal:
    chain = Chain(parts[0], target=target)
    for k, part in enumerate(parts[1:]):
        carrier = chain.forward(part, f"t{k + 1}")
        if isinstance(carrier, Refusal):
            return carrier
    return chain.section()


def test_s3_pages_have_one_shape() -> None:
    other = with_buffer(consumer(), 0, page=(64, 256))
    refused("S3", refusals.ShapesDiffer, "second.buffers.in.page", producer(), other)
    join(producer(), with_buffer(consumer(), 0, page=None))


def test_s3_memories_exist() -> None:
    host = load_target("generic")
    missing = next(space for space in MemorySpace if not host.has(space))
    first = plus(producer(), Stage(Recv("left"), (), (2,)), (), (buffer("u", missing),))
    refused("S3", refusals.NoMemory, "first.buffers[2].kind", first, consumer(), target=host)
    second = plus(consumer(), Stage(Recv("left"), (), (2,)), (), (buffer("u", missing),))
    refused("S3", refusals.NoMemory, "second.buffers[2].kind", producer(), second, target=host)


# --- S5: malformed sections ---------------------------------------------------------------------------------------
def test_s5_malformed_edges_are_refused() -> None:
    wrong = replace(producer(), edges=())
    found = forward(wrong, consumer(), "t", target=TARGET)
    assert isinstance(found, Refusal) and (found.rule, found.where) == ("S5", "first.edges")
    found = forward(producer(), replace(consumer(), edges=(Edge(7, 0, ()),)), "t", target=TARGET)
    assert isinstance(found, Refusal) and (found.rule, found.where) == ("S5", "second.edges[0].source")


def test_s5_the_joined_section_is_verified() -> None:
    """The producer builds its result in two stages, and the consumer adds to it in place: three writers of one."""
    first = linked(replace(producer(), stages=(
        producer().stages[LOAD],
        Stage(Compute("exp"), (0,), (1,)),
        Stage(Compute("matmul", (1, 1), 1), (1, 0), (1,)),
        producer().stages[STORE],
    )))  # fmt: skip
    second = with_stage(consumer(), COMPUTE, kind=Compute("matmul", (1, 1), 0), ins=(0,), outs=(0, 1))
    refused("S5", refusals.Malformed, "joined.buffers[1]", first, second)
    joint = join(producer(), second)
    assert faults(joint.section) == ()


# --- S6, S7, S8, S10 ----------------------------------------------------------------------------------------------
def block() -> tuple[Section, Section]:
    """A matmul's plan that packs two tiles per item, and a reader of both: rows of 16, two columns of 64."""
    store = AffinePattern((16, 64), (Affine(), Affine()), (Step(Axis.ITEM, 0, Term(1)), Step(Axis.COLUMN, 1, Term(64))))
    first = with_kind(tiled(producer()), STORE, pattern=store, sub_blocks=(1, 2))
    first = with_buffer(with_stage(first, COMPUTE, kind=Compute("matmul", (1, 2))), 1, page=(16, 64), pages=2)
    second = with_kind(tiled(consumer()), LOAD, pattern=store, num_blocks=2)
    return first, with_buffer(second, 0, page=(16, 64), pages=2)


def test_s6_plans_of_many_items() -> None:
    first, second = with_kind(tiled(producer()), STORE, pattern=stepping_rows()), tiled(consumer())
    refused("33", refusals.NotOneBlock, "joined.work.items", first, second)
    assert len(join(first, second, allow={Allow.MANY_ITEMS}).section.work.items) == len(ROWS.items)
    unplanned = replace(first, phase=Phase.TEMPLATE), replace(second, phase=Phase.TEMPLATE)
    join(*unplanned, allow={Allow.MANY_ITEMS})


def test_s6_each_item_packs_the_pages_that_are_read() -> None:
    first, second = block()
    both = {Allow.MANY_ITEMS, Allow.K_BLOCKS}
    joint = join(first, second, allow=both)
    assert joint.section.buffers[joint.carrier].pages == 2
    where = "second.buffers[0].pages"
    refused("S6", refusals.PagesDiffer, where, first, with_buffer(second, 0, pages=1), allow=both)
    refused("S6", refusals.PagesDiffer, where, with_buffer(first, 1, pages=4), second, allow=both)


def test_s7_a_consumer_that_reads_by_k_blocks() -> None:
    first, second = block()
    refused("21", refusals.Blocks, "second.stages[0].kind.num_blocks", first, second, allow={Allow.MANY_ITEMS})
    join(first, second, allow={Allow.MANY_ITEMS, Allow.K_BLOCKS})
    swapped = AffinePattern(
        (16, 64), (Affine(), Affine(64)), (Step(Axis.ITEM, 0, Term(1)), Step(Axis.COLUMN, 1, Term(-64)))
    )
    other = with_kind(second, LOAD, pattern=swapped)
    refused("30", refusals.TilesDiffer, "second.stages[0].kind.pattern", first, other, allow={Allow.K_BLOCKS})


def test_s8_a_tee_keeps_the_store() -> None:
    joint = join(producer(), consumer(), allow={Allow.TEE}, live=True)
    assert works(joint.section) == ["Load", "exp", "Store", "exp", "Store"]
    assert names(joint.section.tensors) == ["x", "t", "y"]
    assert joint.section.edges[1] == Edge(1, joint.carrier, (2, 3))
    moved = join(with_buffer(producer(), 1, kind=ACC), consumer(), allow={Allow.TEE}, live=True)
    assert works(moved.section) == ["Load", "exp", "Store", "move", "exp", "Store"]
    dead = join(producer(), consumer(), allow={Allow.TEE})
    assert works(dead.section) == ["Load", "exp", "exp", "Store"]


def test_s10_only_the_tensors_store_goes() -> None:
    first = stores_also(producer(), "z", whole(*SHAPE))
    joint = join(first, consumer(), allow={Allow.SEVERAL_STORES})
    assert works(joint.section) == ["Load", "exp", "Store", "exp", "Store"]
    assert names(joint.section.tensors) == ["x", "z", "y"]
    refused("13", refusals.Count, "first.stages", first, consumer(), allow={Allow.TEE})


def test_s12_what_crosses_sites_keeps_its_order() -> None:
    first = plus(producer(), Stage(AllReduce(2, "sites"), (), ()), (tensor("w"),))
    second = plus(consumer(), Stage(Recv("left"), (), (2,)), (), (buffer("u"),))
    second = plus(second, Stage(AllReduce(2, "sites"), (), ()), (tensor("v"),))
    assert works(join(first, second).section) == ["Load", "exp", "AllReduce", "exp", "Store", "Recv", "AllReduce"]


# --- fields that nobody joins -------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class WiderSection(Section):
    mood: str = "good"


@dataclass(frozen=True, slots=True)
class WiderStage(Stage):
    mood: str = "good"


def test_a_new_field_cannot_be_forgotten() -> None:
    def widened(section: Section) -> Section:
        return WiderSection(**{name: getattr(section, name) for name in Section.__slots__})

    with pytest.raises(TypeError, match="mood"):
        forward(widened(producer()), consumer(), "t", target=TARGET)
    with pytest.raises(TypeError, match="mood"):
        forward(producer(), widened(consumer()), "t", target=TARGET)
    stage = consumer().stages[COMPUTE]
    wider = WiderStage(stage.kind, stage.ins, stage.outs)
    stages = (consumer().stages[LOAD], wider, consumer().stages[STORE])
    with pytest.raises(TypeError, match="mood"):
        forward(producer(), replace(consumer(), stages=stages), "t", target=TARGET)


def test_a_listed_pattern_lists_one_tile_for_each_block() -> None:
    tile = Tile((0,), (4,))
    pattern = ListedPattern((((), (tile, tile)),))
    assert pattern.tiles_at((), (1, 2)) == (tile, tile)
    assert pattern.tiles_at((), (1, 1)) is None
    assert pattern.tiles_at((1,), (1, 2)) is None
    assert TensorLayout((4, "n")).elems is None
    assert len(grid((0, 4, 1), (0, 6, 2)).items) == 12
    assert Work(()).items == ()
