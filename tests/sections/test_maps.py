"""Access patterns: listed and as integer maps, which must say the same (S9)."""

from __future__ import annotations

import os

from hypothesis import given, settings
from hypothesis import strategies as st
from sections.cases import ROWS, grid, rows, stepping_rows

from tilewright.sections.maps import disjoint, same_map
from tilewright.sections.patterns import Affine, AffinePattern, Axis, Coord, OpaquePattern, Step, Term, Tile, whole
from tilewright.sections.section import Item, Load, Store, Work
from tilewright.sections.tiles import FEW, apart, same_tiles

EXAMPLES = 60 * int(os.environ.get("TILEWRIGHT_PROPERTIES", "1"))

SMALL = st.integers(-2, 3)
TERMS = st.builds(Term, SMALL, st.integers(0, 1), st.integers(1, 3), st.integers(0, 3))
PATTERNS = st.builds(
    AffinePattern,
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(*[st.builds(Affine, SMALL, st.lists(TERMS, max_size=2).map(tuple))] * 2),
    st.lists(st.builds(Step, st.sampled_from(Axis), st.integers(0, 1), TERMS), max_size=2).map(tuple),
)


def loop(start: int, trips: int, step: int) -> tuple[int, int, int]:
    return start, start + trips * step, step


LOOPS = st.builds(loop, st.integers(-2, 2), st.integers(1, 4), st.integers(1, 3))
WORKS = st.tuples(LOOPS, LOOPS).map(lambda loops: grid(*loops))
BLOCKS = st.tuples(st.integers(1, 2), st.integers(1, 2))


def enumerated(pattern: AffinePattern, blocks: tuple[int, int], work: Work) -> list[tuple[Coord, Tile]]:
    listed = ((item.coord, pattern.tiles_at(item.coord, blocks) or ()) for item in work.items)
    return [((*coord, n), tile) for coord, tiles in listed for n, tile in enumerate(tiles)]


@settings(max_examples=EXAMPLES, deadline=None)
@given(PATTERNS, PATTERNS, BLOCKS, WORKS)
def test_s9_maps_agree_with_lists(
    left: AffinePattern, right: AffinePattern, blocks: tuple[int, int], work: Work
) -> None:
    listed, other = enumerated(left, blocks, work), enumerated(right, blocks, work)
    assert same_map(left, blocks, right, blocks, work) == (listed == other)
    assert same_map(left, blocks, left, blocks, work)
    assert disjoint(left, blocks, work) == apart(listed)
    unlooped = Work(work.items)
    assert same_map(left, blocks, right, blocks, unlooped) == (listed == other)
    assert disjoint(left, blocks, unlooped) == apart(listed)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.tuples(SMALL, SMALL), st.tuples(st.integers(1, 3), st.integers(1, 3)))))
def test_tiles_of_two_owners_are_apart(boxes: list[tuple[int, tuple[int, int], tuple[int, int]]]) -> None:
    tiles: list[tuple[Coord, Tile]] = [((owner,), Tile(offsets, extents)) for owner, offsets, extents in boxes]
    owned: dict[tuple[int, int], set[int]] = {}
    for owner, (y, x), (height, width) in boxes:
        for cell in ((y + dy, x + dx) for dy in range(height) for dx in range(width)):
            owned.setdefault(cell, set()).add(owner)
    assert apart(tiles) == all(len(owners) == 1 for owners in owned.values())


def test_s9_two_spellings_of_one_map() -> None:
    """Blocks of a matrix, by row and column of the item, or by its number divided."""
    work = grid((0, 12, 1))
    by_number = AffinePattern((8, 8), (Affine(0, (Term(8, 0, 4),)), Affine(0, (Term(8, 0, 1, 4),))))
    flat = AffinePattern((8, 8), (Affine(0, (Term(8, 0, 4),)), Affine(0, (Term(8), Term(-32, 0, 4)))))
    transposed = AffinePattern((8, 8), (Affine(0, (Term(8, 0, 1, 3),)), Affine(0, (Term(8, 0, 3),))))
    assert same_map(by_number, (1, 1), flat, (1, 1), work)
    assert not same_map(by_number, (1, 1), transposed, (1, 1), work)
    assert disjoint(by_number, (1, 1), work) and disjoint(transposed, (1, 1), work)


def test_s9_order_counts() -> None:
    """The same set of tiles, in another order."""
    forth = AffinePattern((4,), (Affine(),), (Step(Axis.COLUMN, 0, Term(4)),))
    back = AffinePattern((4,), (Affine(12),), (Step(Axis.COLUMN, 0, Term(-4)),))
    one = Work((Item(()),))
    assert not same_map(forth, (1, 4), back, (1, 4), one)
    assert {tile for _, tile in enumerated(forth, (1, 4), one)} == {tile for _, tile in enumerated(back, (1, 4), one)}


def test_s9_a_million_items_are_not_enumerated() -> None:
    million = grid((0, 16, 16))
    loops = (million.grid[0].__class__(0, 16_000_000, 16, million.grid[0].kind),)
    # The items themselves would be a million records; the map needs their loops alone.
    work = Work((Item((0,)),), grid=loops)
    assert same_map(rows(), (1, 1), stepping_rows(), (1, 1), work)
    assert disjoint(rows(), (1, 1), work) and not disjoint(rows(17), (1, 1), work)


def test_s9_many_items_and_few_give_one_answer() -> None:
    for work in (ROWS, grid((0, 16 * (FEW + 1), 16))):
        places = ("first", "second")
        assert same_tiles(Store(0, rows()), Load(0, stepping_rows()), work, "t", places) is None
        other = same_tiles(Store(0, rows()), Load(0, rows(8)), work, "t", places)
        twice = same_tiles(Store(0, rows(17)), Load(0, rows(17)), work, "t", places)
        unknown = same_tiles(Store(0, rows()), Load(0, OpaquePattern("indices")), work, "t", places)
        assert [refusal and refusal.rule for refusal in (other, twice, unknown)] == ["30", "28", "29"]


def test_extents_with_names() -> None:
    """They are equal by name, and tiles may meet along them."""
    named, wide = whole("n", 8), AffinePattern(("n", 8), (Affine(), Affine(0, (Term(8),))))
    assert named.tiles_at(()) == whole("n", 8).tiles_at(()) != whole("m", 8).tiles_at(())
    work = grid((0, 4, 1))
    assert disjoint(wide, (1, 1), work) and apart(enumerated(wide, (1, 1), work))
    down = AffinePattern(("n", 8), (Affine(0, (Term(8),)), Affine()))
    assert not disjoint(down, (1, 1), work) and not apart(enumerated(down, (1, 1), work))
