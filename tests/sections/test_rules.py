"""Joins of two sections: one test for each numbered rule, which says what joins, what is refused and where."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sections.cases import (
    COMPUTE,
    LOAD,
    ROWS,
    STORE,
    VEC,
    buffer,
    consumer,
    grid,
    link,
    plus,
    producer,
    stepping_rows,
    tensor,
    tiled,
    with_buffer,
    with_kind,
    with_stage,
    with_tensor,
)
from sections.joining import join, refused, works

from tilewright.ir.dtypes import FP16, INT32
from tilewright.ir.nodes import LoopKind
from tilewright.sections import refusals
from tilewright.sections.forward import ALL, Allow
from tilewright.sections.patterns import Affine, AffinePattern, ListedPattern, OpaquePattern, Term, whole
from tilewright.sections.section import (
    AllReduce,
    Compute,
    Item,
    Load,
    Numerics,
    Phase,
    Recv,
    Scalar,
    Section,
    Stage,
    Store,
    TensorLayout,
    Work,
)


# --- phases -------------------------------------------------------------------------------------------------------
def test_1_templates_join() -> None:
    joint = join(producer(), consumer())
    assert works(joint.section) == ["Load", "exp", "exp", "Store"]
    assert joint.section.phase is Phase.TEMPLATE


def test_2_plans_join_when_the_second_brings_none_of_its_own() -> None:
    first = tiled(producer(), trips=(4,))
    assert join(first, tiled(consumer())).section.trips == (4,)
    refused("2", refusals.Planned, "second.trips", tiled(producer()), tiled(consumer(), trips=(4,)))
    planned = tiled(consumer(), work=replace(ROWS, k_trip=1))
    refused("2", refusals.Planned, "second.work.k_trip", tiled(producer()), planned)


@pytest.mark.parametrize("phase", [Phase.PLACED, Phase.SCHEDULED, Phase.CERTIFIED])
def test_3_other_phases_do_not_join(phase: Phase) -> None:
    refused("3", refusals.Phases, "phase", producer(), replace(tiled(consumer()), phase=Phase.TILED))
    refused("3", refusals.Phases, "phase", tiled(producer()), consumer())
    refused("3", refusals.Phases, "phase", replace(producer(), phase=phase), replace(consumer(), phase=phase))


def test_4_a_template_has_no_plan() -> None:
    refused("4", refusals.Planned, "first.trips", replace(producer(), trips=(2,)), consumer())
    refused("4", refusals.Planned, "second.trips", producer(), replace(consumer(), trips=(2,)))
    planned = Work((Item(()),), k_trip=1)
    refused("4", refusals.Planned, "first.work.k_trip", replace(producer(), work=planned), consumer())


# --- agreement ----------------------------------------------------------------------------------------------------
def test_5_tiles_are_equal() -> None:
    refused("5", refusals.Disagree, "tile", tiled(producer()), replace(tiled(consumer()), tile=(32,)))


def test_6_items_are_equal_and_in_equal_order() -> None:
    backwards = Work(tuple(reversed(ROWS.items)))
    listed = Work(ROWS.items)
    first = tiled(producer(), work=listed)
    join(first, tiled(consumer(), work=listed))
    refused("6", refusals.Disagree, "work.items", first, tiled(consumer(), work=backwards))
    in_order = grid((0, 64, 16), kind=LoopKind.SEQUENTIAL)
    refused("6", refusals.Disagree, "work.grid", tiled(producer()), tiled(consumer(), work=in_order))


def test_7_there_are_items() -> None:
    nothing = Work(())
    refused("7", refusals.NoItems, "work.items", replace(producer(), work=nothing), replace(consumer(), work=nothing))


def test_8_tiles_along_k_are_one_or_the_producers() -> None:
    def along(count: int, made: Section) -> Section:
        return replace(made, work=replace(made.work, k_tiles=count))

    assert join(along(4, producer()), along(1, consumer())).section.work.k_tiles == 4
    join(along(4, producer()), along(4, consumer()))
    refused("8", refusals.Disagree, "second.work.k_tiles", along(4, producer()), along(2, consumer()))
    refused("8", refusals.Disagree, "second.work.k_tiles", along(1, producer()), along(4, consumer()))


def test_9_banks_are_equal() -> None:
    refused("9", refusals.Disagree, "mem_banks", producer(), consumer(mem_banks=2))


def test_10_numerics_and_attributes_are_equal() -> None:
    refused("10", refusals.Disagree, "numerics", producer(), consumer(numerics=Numerics(INT32)))
    refused("10", refusals.Disagree, "attrs", producer(), consumer(attrs=(("core", "cube"),)))


# --- the tensor ---------------------------------------------------------------------------------------------------
def test_11_both_declare_the_tensor() -> None:
    refused("11", refusals.Undeclared, "first.tensors", link("p", "x", "z"), consumer())
    refused("11", refusals.Undeclared, "second.tensors", producer(), link("c", "z", "y"))


@pytest.mark.parametrize(
    ("field", "value"),
    [("tiles", 2), ("dtype", FP16), ("layout", TensorLayout((64, 128), (1, 64)))],
)
def test_12_the_declarations_agree(field: str, value: object) -> None:
    refused("12", refusals.Disagree, f"tensors.t.{field}", producer(), with_tensor(consumer(), 0, **{field: value}))


def test_12_so_do_the_elements() -> None:
    larger = with_tensor(consumer(), 0, layout=TensorLayout((64, 256)), elems=64 * 256)
    refused("12", refusals.Disagree, "tensors.t.elems", producer(), larger)


# --- the producer's store -----------------------------------------------------------------------------------------
def two_stores() -> Section:
    """A producer that also stores what it loaded, to another tensor."""
    return plus(producer(), Stage(Store(2, whole(64, 128)), (0,), ()), (tensor("z"),))


def test_13_the_producer_stores_once() -> None:
    refused("13", refusals.Count, "first.stages", two_stores(), consumer())
    nothing = replace(producer(), stages=producer().stages[:STORE])
    nothing = with_stage(nothing, COMPUTE, kind=Compute("exp"))
    refused("13", refusals.Count, "first.stages", nothing, consumer())


def test_14_the_store_is_of_this_tensor() -> None:
    other = with_kind(
        plus(producer(), Stage(Load(1, whole(64, 128)), (), (2,)), (tensor("z"),), (buffer("u"),)), 2, tensor=2
    )
    refused("14", refusals.NotStored, "first.stages", other, consumer())
    refused("14", refusals.Adds, "first.stages[2].kind.adds", with_kind(producer(), STORE, adds=True), consumer())


def test_15_the_store_reads_one_buffer() -> None:
    refused("15", refusals.Count, "first.stages[2].ins", with_stage(producer(), STORE, ins=(0, 1)), consumer())


def test_16_nothing_else_reads_the_carrier() -> None:
    also = plus(producer(), Stage(Scalar("read"), (1,), ()))
    refused("16", refusals.AlsoRead, "first.stages[3].ins", also, consumer())


def test_17_nothing_else_of_the_producer_names_the_tensor() -> None:
    also = plus(producer(), Stage(Load(1, whole(64, 128)), (), (2,)), (), (buffer("u"),))
    refused("17", refusals.AlsoNamed, "first.stages[3].kind.tensor", also, consumer())
    twice = plus(producer(), Stage(Store(1, whole(64, 128)), (0,), ()))
    refused("13", refusals.Count, "first.stages[3]", twice, consumer(), allow=ALL)
    reduced = plus(producer(), Stage(AllReduce(1, "all"), (), ()))
    refused("17", refusals.AlsoNamed, "first.stages[3].kind.tensor", reduced, consumer())


def test_18_the_producers_own_loads_are_free() -> None:
    more = plus(producer(), Stage(Load(2, whole(8)), (), (2,)), (tensor("z", shape=(8,)),), (buffer("u"),), at=0)
    more = plus(more, Stage(Recv("left"), (), (3,)), (), (buffer("v"),), at=0)
    assert works(join(more, consumer()).section)[:3] == ["Recv", "Load", "Load"]


# --- the consumer's load ------------------------------------------------------------------------------------------
def test_19_the_consumer_loads_once() -> None:
    again = plus(consumer(), Stage(Load(0, whole(64, 128)), (), (2,)), (), (buffer("u"),))
    refused("19", refusals.Count, "second.stages", producer(), again)
    refused("19", refusals.Count, "second.stages", producer(), with_kind(consumer(), LOAD, tensor=1))


def test_20_nothing_else_of_the_consumer_names_the_tensor() -> None:
    refused(
        "20", refusals.AlsoNamed, "second.stages[2].kind.tensor", producer(), with_kind(consumer(), STORE, tensor=0)
    )


def test_21_the_load_reads_one_block() -> None:
    refused(
        "21", refusals.Blocks, "second.stages[0].kind.num_blocks", producer(), with_kind(consumer(), LOAD, num_blocks=2)
    )


def test_22_the_load_is_not_shared() -> None:
    shared = with_kind(consumer(), LOAD, multicast="row")
    refused("22", refusals.Multicast, "second.stages[0].kind.multicast", producer(), shared)


def test_23_the_load_fills_one_buffer() -> None:
    both = replace(consumer(), buffers=(*consumer().buffers, buffer("u")))
    refused("23", refusals.Count, "second.stages[0].outs", producer(), with_stage(both, LOAD, outs=(0, 2)))


def test_24_somebody_reads_it() -> None:
    unread = plus(consumer(), Stage(Recv("left"), (), (2,)), (), (buffer("u"),), at=0)
    unread = with_stage(unread, 2, ins=(2,))
    refused("24", refusals.Unread, "second.buffers[0]", producer(), unread)


@pytest.mark.parametrize("kind", [Store(1, whole(64, 128)), Scalar("read")])
def test_25_readers_compute(kind: Any) -> None:
    stored = plus(consumer(), Stage(kind, (0,), ()))
    refused("25", refusals.NotComputed, "second.stages[3].kind", producer(), stored)


def test_26_several_may_read() -> None:
    twice = plus(consumer(), Stage(Compute("add"), (0, 0), (2,)), (), (buffer("u"),))
    joint = join(producer(), twice)
    assert works(joint.section) == ["Load", "exp", "exp", "Store", "add"]
    assert joint.section.edges[1].to == (2, 4)


def test_27_other_loads_and_stores_of_the_consumer_are_free() -> None:
    more = plus(consumer(), Stage(Load(2, whole(8)), (), (2,)), (tensor("z", shape=(8,)),), (buffer("u"),), at=0)
    more = plus(more, Stage(Store(3, whole(64, 128)), (1,), ()), (tensor("w"),))
    assert works(join(producer(), more).section) == ["Load", "exp", "Load", "exp", "Store", "Store"]


# --- tiles --------------------------------------------------------------------------------------------------------
def test_28_tiles_are_equal_in_order() -> None:
    upper, lower = (
        (whole(32, 128).tiles_at(()) or ()),
        (AffinePattern((32, 128), (Affine(32), Affine())).tiles_at(()) or ()),
    )
    there = ListedPattern((((), (*upper, *lower)),))
    back = ListedPattern((((), (*lower, *upper)),))
    first = with_kind(producer(), STORE, pattern=there, sub_blocks=(2, 1))
    second = with_kind(consumer(), LOAD, pattern=there, num_blocks=2)
    join(first, second, allow={Allow.K_BLOCKS})
    backwards = with_kind(second, LOAD, pattern=back)
    refused("30", refusals.TilesDiffer, "second.stages[0].kind.pattern", first, backwards, allow={Allow.K_BLOCKS})


def test_28_a_transposed_load_reads_other_pages() -> None:
    turned = with_kind(consumer(), LOAD, transposed=True)
    refused("28", refusals.Transposed, "second.stages[0].kind.transposed", producer(), turned)


def test_28_no_tile_is_written_twice() -> None:
    """The load would have read the last of them, for every item; joined, each item would read its own."""
    same = AffinePattern((16, 128), (Affine(), Affine()))
    first, second = tiled(producer(), same), tiled(consumer(), same)
    refused("28", refusals.Overwritten, "first.stages[2].kind.pattern", first, second)
    overlapping = AffinePattern((17, 128), (Affine(0, (Term(1),)), Affine()))
    first, second = tiled(producer(), overlapping), tiled(consumer(), overlapping)
    refused("28", refusals.Overwritten, "first.stages[2].kind.pattern", first, second)


MANY = grid((0, 4096, 16))
"""More items than are listed one by one."""


def test_28_over_a_large_grid() -> None:
    same = AffinePattern((16, 128), (Affine(), Affine()))
    shifted = AffinePattern((16, 128), (Affine(16, (Term(1),)), Affine()))
    first, second = tiled(producer(), work=MANY), tiled(consumer(), work=MANY)
    join(first, second)
    refused(
        "30", refusals.TilesDiffer, "second.stages[0].kind.pattern", first, with_kind(second, LOAD, pattern=shifted)
    )
    first, second = tiled(producer(), same, work=MANY), tiled(consumer(), same, work=MANY)
    refused("28", refusals.Overwritten, "first.stages[2].kind.pattern", first, second)


def test_29_tiles_that_cannot_be_listed() -> None:
    unknown = OpaquePattern("indices in memory")
    refused(
        "29",
        refusals.Unlisted,
        "first.stages[2].kind.pattern",
        with_kind(producer(), STORE, pattern=unknown),
        consumer(),
    )
    refused(
        "29",
        refusals.Unlisted,
        "second.stages[0].kind.pattern",
        producer(),
        with_kind(consumer(), LOAD, pattern=unknown),
    )


@pytest.mark.parametrize("pattern", [whole(64, 64), AffinePattern((64, 128), (Affine(1), Affine()))])
def test_30_a_window_is_not_the_tile(pattern: AffinePattern) -> None:
    window = with_kind(consumer(), LOAD, pattern=pattern)
    refused("30", refusals.TilesDiffer, "second.stages[0].kind.pattern", producer(), window)


STEPPING = stepping_rows()


def matmul(section: Section, blocks: tuple[int, int] = (1, 1)) -> Section:
    """The section with a matmul where it computed."""
    return with_stage(section, COMPUTE, kind=Compute("matmul", blocks))


def test_31_only_the_stores_steps_matter() -> None:
    first, second = tiled(producer()), tiled(consumer())
    join(first, with_kind(second, LOAD, pattern=STEPPING))
    stepping = with_kind(first, STORE, pattern=STEPPING)
    refused("33", refusals.NotOneBlock, "joined.work.items", stepping, second)


def test_32_templates_join_through_a_stepping_store_with_one_item() -> None:
    one = grid((0, 16, 16))

    def template(made: Section, work: Work) -> Section:
        return replace(tiled(made, work=work), phase=Phase.TEMPLATE)

    first = with_kind(template(producer(), one), STORE, pattern=STEPPING)
    join(first, template(consumer(), one))
    first = with_kind(template(producer(), ROWS), STORE, pattern=STEPPING)
    refused("32", refusals.ManyItems, "first.stages[2].kind.pattern", first, template(consumer(), ROWS))


def test_33_plans_join_through_a_stepping_store_when_all_is_one_block() -> None:
    one = grid((0, 16, 16))
    first = with_kind(tiled(producer(), work=one), STORE, pattern=STEPPING)
    join(matmul(first), tiled(consumer(), work=one))
    join(matmul(first), matmul(tiled(consumer(), work=one)))


@pytest.mark.parametrize("side", ["first", "second"])
def test_34_one_block_has_matmuls_packed_once(side: str) -> None:
    one = grid((0, 16, 16))
    first = with_kind(tiled(producer(), work=one), STORE, pattern=STEPPING)
    second = tiled(consumer(), work=one)
    first, second = (matmul(first, (2, 1)), second) if side == "first" else (first, matmul(second, (1, 2)))
    refused("33", refusals.NotOneBlock, "joined.work.items", first, second)


def test_35_a_map_joins_with_many_items() -> None:
    assert len(join(tiled(producer()), tiled(consumer())).section.work.items) == 4
    assert len(join(matmul(tiled(producer()), (2, 2)), tiled(consumer())).section.work.items) == 4


# --- buffers ------------------------------------------------------------------------------------------------------
def test_36_dtypes_are_equal() -> None:
    other = with_buffer(consumer(), 0, dtype=FP16)
    refused("36", refusals.DTypesDiffer, "second.buffers.in.dtype", producer(), other)


@pytest.mark.parametrize(
    ("o", "i", "carried"), [(None, VEC, VEC), (VEC, None, VEC), (None, None, None), (VEC, VEC, VEC)]
)
def test_36_any_agrees_with_every_kind(o: Any, i: Any, carried: Any) -> None:
    joint = join(with_buffer(producer(), 1, kind=o), with_buffer(consumer(), 0, kind=i))
    assert works(joint.section) == ["Load", "exp", "exp", "Store"]
    assert joint.section.buffers[joint.carrier].kind is carried
