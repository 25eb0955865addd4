"""What two sections become when they join: one test for each numbered rule about the result."""

from __future__ import annotations

from dataclasses import replace

from sections.cases import (
    ACC,
    MAT,
    ROWS,
    buffer,
    consumer,
    grid,
    link,
    plus,
    producer,
    rows,
    tensor,
    tiled,
    with_buffer,
    with_tensor,
)
from sections.joining import TARGET, join, names, refused, works

from tilewright.ir.dtypes import BF16, FP32, INT32
from tilewright.sections import refusals
from tilewright.sections.forward import forward
from tilewright.sections.patterns import Affine, AffinePattern, Axis, Step, Term, whole
from tilewright.sections.refusals import Refusal
from tilewright.sections.section import (
    Buffer,
    Compute,
    Load,
    Requires,
    ScalarParam,
    Section,
    Stage,
    Store,
)


# --- the result ---------------------------------------------------------------------------------------------------
def rich() -> tuple[Section, Section]:
    """Sections with more of everything than the rules need."""
    first = plus(producer(), Stage(Load(2, whole(8)), (), (2,)), (tensor("w", shape=(8,)),), (buffer("u"),), at=0)
    second = plus(consumer(), Stage(Load(2, whole(8)), (), (2,)), (tensor("w", shape=(8,)),), (buffer("u"),), at=0)
    second = plus(second, Stage(Compute("add"), (1, 2), (3,)), (), (buffer("sum"),))
    second = plus(second, Stage(Store(3, whole(64, 128)), (3,), ()), (tensor("z"),))
    return first, second


def test_38_tensors_of_the_first_then_new_ones_of_the_second() -> None:
    assert names(join(*rich()).section.tensors) == ["x", "w", "y", "z"]


def test_39_a_tensor_in_both_is_one() -> None:
    first, second = rich()
    assert names(join(first, second).section.tensors).count("w") == 1
    other = with_tensor(second, 2, tiles=2)
    refused("39", refusals.Disagree, "second.tensors[2]", first, other)


def test_39_so_is_a_scalar() -> None:
    first = producer(scalars=(ScalarParam("n", INT32), ScalarParam("m", INT32)))
    second = consumer(scalars=(ScalarParam("n", INT32), ScalarParam("k", FP32)))
    assert names(join(first, second).section.scalars) == ["n", "m", "k"]
    other = consumer(scalars=(ScalarParam("n", FP32),))
    refused("39", refusals.Disagree, "second.scalars[0]", first, other)


def test_40_stages_name_the_new_tensors() -> None:
    section = join(*rich()).section
    named = [
        section.tensors[stage.kind.tensor].name for stage in section.stages if isinstance(stage.kind, Load | Store)
    ]
    assert named == ["w", "x", "w", "y", "z"]


def test_41_buffers_of_the_first_then_those_of_the_second() -> None:
    first, second = rich()
    section = join(first, second).section
    assert section.buffers[: len(first.buffers)] == first.buffers
    assert [b.origin for b in section.buffers] == ["in", "out", "u", "out", "u", "sum"]


def test_42_a_clashing_name_is_made_from_the_original() -> None:
    assert names(join(*rich()).section.buffers) == ["in", "out", "u", "out_f1", "u_f1", "sum"]
    third = link("d", "y", "v")
    twice = join(join(producer(), consumer()).section, third, "y").section
    assert names(twice.buffers) == ["in", "out", "out_f1", "out_f2"]
    taken = with_buffer(producer(), 0, name="out_f1", origin="out_f1")
    assert names(join(taken, consumer()).section.buffers) == ["out_f1", "out", "out_f2"]


def test_45_stages_without_the_store_and_the_load() -> None:
    assert works(join(*rich()).section) == ["Load", "Load", "exp", "Load", "exp", "Store", "add", "Store"]


def test_46_buffers_inside_kinds_are_renumbered() -> None:
    second = plus(consumer(), Stage(Compute("matmul", (1, 1), 2), (2, 0), (2,)), (), (buffer("acc"),), at=1)
    second = plus(second, Stage(Compute("fill"), (), (2,)), at=0)
    section = join(producer(), second).section
    adds = next(
        stage for stage in section.stages if isinstance(stage.kind, Compute) and stage.kind.accumulator is not None
    )
    assert section.buffers[adds.kind.accumulator].name == "acc"  # type: ignore[union-attr, index]


def test_48_the_carriers_edge_goes_to_the_readers() -> None:
    joint = join(*rich())
    edge = next(edge for edge in joint.section.edges if edge.buffer == joint.carrier)
    assert (works(joint.section)[edge.source], [works(joint.section)[k] for k in edge.to]) == ("exp", ["exp"])


def test_49_then_the_edges_of_the_second() -> None:
    section = join(*rich()).section
    assert [section.buffers[edge.buffer].name for edge in section.edges] == ["u", "in", "out", "u_f1", "out_f1", "sum"]


def test_51_the_name() -> None:
    assert join(producer(), consumer()).section.name == "p+c"


def test_53_requirements_are_united() -> None:
    first = producer(requires=Requires(frozenset("a"), frozenset("x")))
    second = consumer(requires=Requires(frozenset("ab"), frozenset("y")))
    assert join(first, second).section.requires == Requires(frozenset("ab"), frozenset("xy"))


def test_54_accumulator_tiles_are_the_maximum() -> None:
    assert join(producer(acc_tiles_used=3), consumer(acc_tiles_used=2)).section.acc_tiles_used == 3
    assert join(producer(acc_tiles_used=1), consumer(acc_tiles_used=2)).section.acc_tiles_used == 2


def test_55_the_plan_is_the_producers() -> None:
    first = tiled(producer(attrs=(("core", "vector"),)), trips=(4,), mem_banks=2)
    second = tiled(consumer(attrs=(("core", "vector"),)), mem_banks=2)
    section = join(first, second).section
    for field in ("work", "trips", "tile", "mem_banks", "numerics", "phase", "attrs"):
        assert getattr(section, field) == getattr(first, field)


def test_56_the_carrier_is_the_producers_buffer() -> None:
    joint = join(*rich())
    assert joint.carrier == 1
    assert joint.section.buffers[joint.carrier] == producer().buffers[1]


def test_57_the_tensor_is_dead_after_the_consumer() -> None:
    refused("57", refusals.Live, "first.tensors.t", producer(), consumer(), live=True)


def test_61_what_is_left_keeps_its_order() -> None:
    """All loads and stores of other tensors stand in the order in which the two sections have them."""
    first, second = rich()
    kept = [stage.kind.pattern for s in (first, second) for stage in s.stages if isinstance(stage.kind, Load | Store)]
    section = join(first, second).section
    assert [s.kind.pattern for s in section.stages if isinstance(s.kind, Load | Store)] == [
        kept[k] for k in (0, 1, 3, 5, 6)
    ]


def test_a_row_reduction_over_columns_is_refused() -> None:
    columns = grid((0, 128, 64))
    half = AffinePattern((64, 64), (Affine(), Affine(0, (Term(1),))))
    first = replace(tiled(producer(), half, work=columns), tile=(64,))
    second = replace(tiled(consumer(), rows(), work=ROWS))
    assert isinstance(forward(first, second, "t", target=TARGET), Refusal)


def test_buffers_are_records() -> None:
    """Bytes are those of all pages, unknown while a page is."""
    assert buffer("b").nbytes == 64 * 128 * 4
    assert Buffer("b", "b", ACC, BF16, 3, (16, 8)).nbytes == 3 * 16 * 8 * 2
    assert Buffer("b", "b", MAT, FP32, 1, (16, "n")).nbytes is None
    assert Step(Axis.ROW, 0, Term(3)).at((7,), 2, 5) == 6
