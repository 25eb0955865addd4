"""Chains of sections: whichever pair is joined first, the result is the same, names included; and time is linear."""

from __future__ import annotations

import os
from dataclasses import replace
from time import process_time

from hypothesis import given, settings
from hypothesis import strategies as st
from sections.cases import (
    ACC,
    COMPUTE,
    MAT,
    SHAPE,
    VEC,
    buffer,
    link,
    plus,
    rows,
    tensor,
    tiled,
    with_buffer,
    with_stage,
    with_tensor,
)
from sections.joining import TARGET, join

from tilewright.ir.collector import collector_paused
from tilewright.ir.dtypes import BF16
from tilewright.sections.claims import EXACT, bounded
from tilewright.sections.forward import Chain
from tilewright.sections.patterns import whole
from tilewright.sections.rename import rename
from tilewright.sections.section import Compute, Load, Requires, ScalarParam, Section, Stage, Store
from tilewright.sections.verify import faults

EXAMPLES = 25 * int(os.environ.get("TILEWRIGHT_PROPERTIES", "1"))
NAMES = st.sampled_from(["in", "out", "u", "out_f1", "in_f2"])


@st.composite
def part(draw: st.DrawFn, k: int) -> Section:
    """Section number `k` of a chain: it loads t<k> and stores t<k+1>, and does other things too."""
    made = link(f"s{k}", f"t{k}", f"t{k + 1}", requires=Requires(frozenset(f"h{k % 2}"), frozenset(f"l{k}")))
    names = draw(st.lists(NAMES, min_size=3, max_size=3, unique=True))
    for b, name in enumerate(names[:2]):
        made = with_buffer(made, b, name=name, origin=name)
    if draw(st.booleans()):  # a weight, perhaps shared with others
        weight = f"w{draw(st.integers(0, 1))}"
        stage = Stage(Load(2, whole(*SHAPE)), (), (2,))
        made = plus(made, stage, (tensor(weight),), (buffer(names[2]),), at=draw(st.integers(0, 1)))
    made = replace(made, acc_tiles_used=draw(st.integers(0, 3)))
    made = replace(made, claim=draw(st.sampled_from([EXACT, bounded(1, 2), bounded(0.25)])))
    return replace(made, scalars=draw(st.sampled_from([(), (ScalarParam("n", BF16),)])))


@st.composite
def chain(draw: st.DrawFn) -> list[Section]:
    """From 3 to 6 sections, some of which need a move or a rounding between them."""
    parts = [draw(part(k)) for k in range(draw(st.integers(3, 6)))]
    for k in range(len(parts) - 1):
        first, second = parts[k], parts[k + 1]
        match draw(st.sampled_from(["same", "any", "move", "round"])):
            case "same":
                kind = VEC, VEC
            case "any":
                kind = None, VEC
            case "move":
                kind = ACC, VEC
            case _:
                kind = ACC, MAT
                first, second = with_tensor(first, 1, dtype=BF16), with_tensor(second, 0, dtype=BF16)
                second = with_buffer(second, 0, dtype=BF16)
        parts[k], parts[k + 1] = with_buffer(first, 1, kind=kind[0]), with_buffer(second, 0, kind=kind[1])
    return parts


def in_every_bracketing(parts: list[Section]) -> Section:
    """All of the parts joined: from each way to split each run of them, which must agree."""
    made = {(k, k): section for k, section in enumerate(parts)}
    for length in range(1, len(parts)):
        for i in range(len(parts) - length):
            j = i + length
            results = [join(made[i, m], made[m + 1, j], f"t{m + 1}").section for m in range(i, j)]
            assert all(result == results[0] for result in results)
            made[i, j] = results[0]
    return made[0, len(parts) - 1]


@settings(max_examples=EXAMPLES, deadline=None)
@given(chain())
def test_60_chains_join_the_same_in_every_bracketing(parts: list[Section]) -> None:
    joined = in_every_bracketing(parts)
    assert joined.name == "+".join(part.name for part in parts)
    grown = Chain(parts[0], target=TARGET)
    for k, section in enumerate(parts[1:]):
        assert isinstance(grown.forward(section, f"t{k + 1}", allow=()), int)
    assert grown.section() == joined


@settings(max_examples=EXAMPLES, deadline=None)
@given(chain())
def test_61_other_tensors_are_used_as_before(parts: list[Section]) -> None:
    """Loads and stores of every tensor that is not forwarded are those of the parts, in their order."""
    gone = {f"t{k + 1}" for k in range(len(parts) - 1)}
    assert _accesses([in_every_bracketing(parts)]) == [used for used in _accesses(parts) if used[1] not in gone]


def _accesses(parts: list[Section]) -> list[tuple[type[object], str]]:
    return [
        (type(stage.kind), section.tensors[stage.kind.tensor].name)
        for section in parts
        for stage in section.stages
        if isinstance(stage.kind, Load | Store)
    ]


def test_joining_is_pure() -> None:
    """Neither a join nor a refusal changes what goes in, and a refused consumer leaves a chain as it was."""
    first, second = link("a", "x", "t"), link("b", "t", "y")
    before = (hash(first), hash(second))
    join(first, second)
    assert before == (hash(first), hash(second))
    grown = Chain(first, target=TARGET)
    assert not isinstance(grown.forward(with_stage(second, COMPUTE, kind=Compute("exp"), ins=(1,)), "t"), int)
    assert grown.section() == first
    assert isinstance(grown.forward(second, "t"), int)


def test_a_long_chain_joins_in_linear_time() -> None:
    """200 sections in less than a second, and ten times as many in at most twelve times that."""
    measured: list[tuple[float, float]] = []
    with collector_paused():
        for _ in range(4):  # other work on the machine may fall into one of the two
            measured.append((min(_seconds(200) for _ in range(3)), _seconds(2000)))
            if measured[-1][1] <= 12 * measured[-1][0]:
                break
    assert min(short for short, _ in measured) < 1
    assert any(long <= 12 * short for short, long in measured), measured


def _seconds(count: int) -> float:
    weight = Stage(Load(2, whole(*SHAPE)), (), (2,))
    one = plus(tiled(link("s", "x", "y"), rows()), weight, (tensor("w"),), (buffer("u"),), at=0)
    parts = [rename(one, {"x": f"t{k}", "y": f"t{k + 1}"}) for k in range(count)]
    started = process_time()
    grown = Chain(parts[0], target=TARGET)
    for k, section in enumerate(parts[1:]):
        grown.forward(section, f"t{k + 1}")
    joined = grown.section()
    assert faults(joined) == ()
    took = process_time() - started
    assert len(joined.stages) == 2 * count + 2
    return took
