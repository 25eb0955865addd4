"""Functions that are no section: each reason once, with the statement that it is about."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sections.cases import SHAPE, buffer, link, plus, tensor, with_kind, with_stage
from sections.joining import TARGET
from sections.test_lift import body

from tilewright.sections.fold import Member, Tangled, fold
from tilewright.sections.lift import NoSection, lift
from tilewright.sections.patterns import OpaquePattern, whole
from tilewright.sections.refusals import Refusal
from tilewright.sections.section import Load, Section, Stage, Store

PARAMS = "n: pl.Scalar[pl.INDEX], x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]"
COPY = "t = pl.tile.load(x, [0, 0], [64, 64])\nout_1 = pl.tile.store(t, [0, 0], out)\n"
ITEM = "    t = pl.tile.load(x, [i * 16, 0], [16, 64])\n    o_1 = pl.tile.store(t, [i * 16, 0], o)\n"

REFUSED = {
    "it returns something else": COPY + "return out_1, x",
    "how many items": f"for i, (o,) in pl.parallel(n, init_values=(out,)):\n{ITEM}    o_2 = pl.yield_(o_1)\nreturn o_2",
    "trips depend": f"for i, (o,) in pl.range(4, init_values=(out,)):\n{ITEM}    o_2 = pl.yield_(o_1)\nreturn o_2",
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_no_section(why: str) -> None:
    found = lift(body(REFUSED[why], PARAMS))
    assert isinstance(found, Refusal) and isinstance(found.reason, NoSection)
    assert why in str(found) and found.rule == "lift"


def test_no_items_are_none() -> None:
    text = f"for i, (o,) in pl.parallel(0, init_values=(out,)):\n{ITEM}    o_2 = pl.yield_(o_1)\nreturn o_2"
    found = lift(body(text, PARAMS))
    assert isinstance(found, Refusal) and "how many items" in str(found)


def test_a_carried_scalar() -> None:
    text = f"for i, (o, k) in pl.parallel(4, init_values=(out, n)):\n{ITEM}    o_2, k_2 = pl.yield_(o_1, k)\nreturn o_2"
    function = body(text, PARAMS)
    assert isinstance(lift(function), Section)
    swapped = body(text.replace("(o_1, k)", "(o_1, k + 1)"), PARAMS)
    found = lift(swapped)
    assert isinstance(found, Refusal) and "hand on something else" in str(found)
    assert found.statement is not None and found.statement in swapped.body


def test_extents_without_a_name() -> None:
    params = PARAMS.replace("x: pl.Tensor[[64, 64]", "x: pl.Tensor[[n * 2, 64]")
    found = lift(body(COPY + "return out_1", params))
    assert isinstance(found, Refusal) and "an extent of x" in str(found)


@pytest.mark.parametrize("window", ["[48, 0], [16, 64], clamp=True", "[0, 0], [16, 64], valid_shape=[n // 2, 64]"])
def test_a_load_whose_extents_only_the_run_knows(window: str) -> None:
    section = lift(body(f"t = pl.tile.load(x, {window})\nout_1 = pl.tile.store(t, [0, 0], out)\nreturn out_1", PARAMS))
    assert isinstance(section, Section)
    load = next(stage.kind for stage in section.stages if isinstance(stage.kind, Load))
    assert isinstance(load.pattern, OpaquePattern)


def test_memory_at_places_that_are_computed() -> None:
    text = "i = pl.tile.load(at, [0, 0], [1, 8])\ng = pl.tile.mgather(x, i)\nout_1 = pl.tile.store(g, [0, 0], out)\n"
    found = lift(body(text + "return out_1", f"{PARAMS}, at: pl.Tensor[[1, 8], pl.INT32]"))
    assert isinstance(found, Refusal) and "reads memory where its operands say" in str(found)


def test_a_message_that_nobody_loads() -> None:
    found = lift(body('r = pl.tensor.recv([64, 64], pl.FP32, channel="left")\n' + COPY + "return out_1", PARAMS))
    assert isinstance(found, Refusal) and "a message of another site" in str(found)


# --- groups -------------------------------------------------------------------------------------------------------
def member(section: Section, *live: str) -> Member:
    def named(kind: type[Load] | type[Store]) -> frozenset[str]:
        found = (s.kind for s in section.stages if isinstance(s.kind, Load | Store) and isinstance(s.kind, kind))
        return frozenset(section.tensors[access.tensor].name for access in found)

    return Member(section, named(Store), named(Load), frozenset(live))


def tangle() -> list[Member]:
    """Two sections that hand each other two tensors."""
    first = link("a", "x", "t")
    first = plus(first, replace(first.stages[2], kind=Store(2, whole(*SHAPE)), ins=(0,)), (tensor("u"),))
    second = link("b", "t", "y")
    second = plus(second, Stage(Load(2, whole(*SHAPE)), (), (2,)), (tensor("u"),), (buffer("v"),), at=0)
    return [member(first), member(with_stage(second, 2, ins=(0, 2)))]


def test_two_tensors_between_two_sections() -> None:
    found = fold(tangle(), {}, TARGET)
    assert isinstance(found, Refusal) and found.reason == Tangled(2)
    found = fold([*tangle(), member(link("c", "y", "z"))], {}, TARGET)
    assert isinstance(found, Refusal) and found.reason == Tangled(2)
    found = fold([member(link("c", "z", "x")), *tangle()], {}, TARGET)
    assert isinstance(found, Refusal) and found.reason == Tangled(2)


def test_what_forwarding_refuses() -> None:
    window = with_kind(link("b", "t", "y"), 0, pattern=whole(8, 8))
    found = fold([member(link("a", "x", "t")), member(window)], {}, TARGET)
    assert isinstance(found, Refusal) and found.rule == "30"


def fan(count: int) -> list[Member]:
    """One section that all others read, each of which also reads the one before it."""
    members = [member(link("s0", "x", "t"))]
    for k in range(1, count):
        made = link(f"s{k}", "t", f"u{k}")
        if k > 1:
            made = plus(made, Stage(Load(2, whole(*SHAPE)), (), (2,)), (tensor(f"u{k - 1}"),), (buffer("v"),), at=0)
            made = with_stage(made, 2, ins=(0, 2))
        members.append(member(made))
    return members


def test_a_tensor_with_many_readers_is_handed_over_last() -> None:
    found = fold(fan(5), {}, TARGET)
    assert isinstance(found, Section) and [t.name for t in found.tensors] == ["x", "u4"]
    found = fold(fan(80), {}, TARGET)
    assert isinstance(found, Section) and [t.name for t in found.tensors] == ["x", "u79"]
