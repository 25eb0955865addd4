"""Whatever joins must mean the same: random pairs of sections are run in sequence, and joined, on small tensors.

Sections here read and write windows of one-dimensional tensors that may overlap, meet between items, stick out, or
belong to both sides. A computation mixes its inputs, so that a page in another place, or of another moment, shows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from sections.cases import buffer, grid, section, tensor
from sections.joining import TARGET

from tilewright.ir.nodes import LoopKind
from tilewright.sections.forward import ALL, Joint, forward
from tilewright.sections.patterns import Affine, AffinePattern, Axis, Coord, Step, Term, Tile
from tilewright.sections.section import Buffer, Compute, Load, Phase, Section, Stage, Store, Tensor, Work
from tilewright.sections.verify import faults

EXAMPLES = 120 * int(os.environ.get("TILEWRIGHT_PROPERTIES", "1"))
SIZE = 6
PRIME = 9973
Page = list[int | None]
"""The elements of one tile; None where it sticks out of its tensor, or holds what depends on that."""
Memory = dict[str, Page]


# --- running ------------------------------------------------------------------------------------------------------
def run(section: Section, memory: Memory) -> None:
    """Runs a section on tensors, item after item."""
    for item in section.work.items:
        pages: dict[int, list[Page]] = {}
        for stage in section.stages:
            _stage(section, stage, item.coord, memory, pages)


def _stage(section: Section, stage: Stage, coord: Coord, memory: Memory, pages: dict[int, list[Page]]) -> None:
    match stage.kind:
        case Load(id, pattern, num_blocks):
            source = memory[section.tensors[id].name]
            boxes = pattern.tiles_at(coord, (1, num_blocks)) or ()
            pages[stage.outs[0]] = [[_at(source, e) for e in _elements(tile)] for tile in boxes]
        case Store(id, pattern, sub_blocks):
            goal = memory[section.tensors[id].name]
            stored = pages[stage.ins[0]]
            for k, tile in enumerate(pattern.tiles_at(coord, sub_blocks) or ()):
                page = stored[k] if k < len(stored) else []
                for n, e in enumerate(_elements(tile)):
                    if 0 <= e < SIZE:
                        goal[e] = _at(page, n)
        case Compute():
            pages[stage.outs[0]] = _mixed([pages[b] for b in stage.ins])
        case _:
            raise AssertionError(stage.kind)


def _elements(tile: Tile) -> range:
    extent = tile.extents[0]
    assert isinstance(extent, int)
    return range(tile.offsets[0], tile.offsets[0] + extent)


def _at(page: Page, e: int) -> int | None:
    return page[e] if 0 <= e < len(page) else None


def _mixed(inputs: list[list[Page]]) -> list[Page]:
    """Pages of the first input's form, each element made of those at its place, or of all where forms differ."""
    out: list[Page] = []
    for k, page in enumerate(inputs[0]):
        new: Page = []
        for e, value in enumerate(page):
            total = None if value is None else 7 * value + 31 * k + e + 1
            for other in inputs[1:]:
                fits = [len(p) for p in other] == [len(p) for p in inputs[0]]
                parts = [other[k][e]] if fits else [v for p in other for v in p]
                total = None if total is None or None in parts else 3 * total + 5 * sum(v or 0 for v in parts)
            new.append(None if total is None else total % PRIME)
        out.append(new)
    return out


# --- drawing ------------------------------------------------------------------------------------------------------
def window(extent: int, start: int, slope: int, step: int) -> AffinePattern:
    steps = (Step(Axis.COLUMN, 0, Term(step)),) if step else ()
    return AffinePattern((extent,), (Affine(start, (Term(slope),) if slope else ()),), steps)


def tidy(extent: int) -> AffinePattern:
    """Windows that follow each other, item by item."""
    return window(extent, 0, extent, 0)


def alone(extent: int) -> AffinePattern:
    """The window at the beginning."""
    return window(extent, 0, 0, 0)


def windows(coordinates: int, extent: int | None = None) -> st.SearchStrategy[AffinePattern]:
    """Mostly tidy ones, of the whole where there is one item; some that meet, or are all the same. All of `extent`,
    if it is given."""
    sizes = st.integers(1, 3) if coordinates else st.just(SIZE) | st.integers(1, 3)
    extents = sizes if extent is None else st.just(extent)
    plain = st.builds(tidy if coordinates else alone, extents)
    free = st.builds(window, extents, st.integers(-1, 2), st.integers(0, 2 if coordinates else 0), st.integers(0, 2))
    return plain | plain | plain | free


WORKS = st.sampled_from(
    [Work(((grid().items[0]),)), *(grid(loop, kind=LoopKind.SEQUENTIAL) for loop in ((0, 3, 1), (0, 2, 1), (0, 6, 1)))]
)


@st.composite
def half(draw: st.DrawFn, name: str, source: str, goal: str, work: Work, main: AffinePattern) -> Section:
    """A section that loads `source`, computes and stores `goal`, and does the like with other tensors."""
    coordinates = len(work.items[0].coord)
    others = draw(st.lists(st.sampled_from(["w", "x", "v"]), max_size=2, unique=True))
    declared: list[Tensor] = [tensor(n, shape=(SIZE,)) for n in dict.fromkeys((source, goal, *others))]
    ids = {made.name: k for k, made in enumerate(declared)}
    extent = main.extents[0]
    assert isinstance(extent, int)
    other_end = draw(windows(coordinates, extent))
    loads, stores = (main, other_end) if name == "c" else (other_end, main)
    blocks = 2 if main.steps and draw(st.booleans()) else 1
    stages = [Stage(Load(ids[source], loads, blocks if name == "c" else 1), (), (0,))]
    buffers: list[Buffer] = [buffer("a", page=None)]
    inputs = [0]
    for other in others:
        if draw(st.booleans()):
            inputs.append(len(buffers))
            stages.append(Stage(Load(ids[other], draw(windows(coordinates))), (), (len(buffers),)))
            buffers.append(buffer(f"l_{other}", page=None))
    result = len(buffers)
    stages.append(Stage(Compute("add"), tuple(inputs), (result,)))
    buffers.append(buffer("r", page=None))
    stages.append(Stage(Store(ids[goal], stores, (1, blocks) if name == "p" else (1, 1)), (result,), ()))
    for other in others:
        if draw(st.booleans()):
            kept = len(buffers)
            stages.append(Stage(Compute("add"), (inputs[-1],), (kept,)))
            buffers.append(buffer(f"s_{other}", page=None))
            stages.append(Stage(Store(ids[other], draw(windows(coordinates))), (kept,), ()))
    return section(name, declared, buffers, stages, work=work)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Section, Section]:
    work = draw(WORKS)
    main = draw(windows(len(work.items[0].coord)))
    other = draw(st.just(main) | st.just(main) | windows(len(work.items[0].coord)))
    first, second = draw(half("p", "x", "t", work, main)), draw(half("c", "t", "y", work, other))
    phase = draw(st.sampled_from([Phase.TEMPLATE, Phase.TILED]))
    return replace(first, phase=phase), replace(second, phase=phase)


def memories(seed: int) -> Memory:
    return {name: [(seed + 17 * k + 101 * e) % PRIME for e in range(SIZE)] for k, name in enumerate("xtywv")}


def equal(left: Mapping[str, Page], right: Mapping[str, Page], name: str) -> bool:
    """Whether a tensor is the same after both; what was undefined in sequence may be anything."""
    return all(a is None or a == b for a, b in zip(left[name], right[name], strict=True))


JOINED = [0]


@settings(max_examples=EXAMPLES, deadline=None)
@given(pairs(), st.booleans())
def test_61_what_joins_means_the_same(pair: tuple[Section, Section], live: bool) -> None:
    first, second = pair
    assert faults(first) == () and faults(second) == ()
    joint = forward(first, second, "t", target=TARGET, allow=ALL, live=live)
    if not isinstance(joint, Joint):
        return
    JOINED[0] += 1
    sequence, joined = memories(3), memories(3)
    run(first, sequence)
    run(second, sequence)
    run(joint.section, joined)
    for name in ("x", "y", "w", "v", *(("t",) if live else ())):
        assert equal(sequence, joined, name), (name, sequence[name], joined[name])


def test_enough_pairs_join() -> None:
    """The property above would say nothing if almost all pairs were refused."""
    assert JOINED[0] >= EXAMPLES // 10, JOINED
