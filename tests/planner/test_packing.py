"""The packing problem alone: equal to brute force, close to the bound on large instances, and what is said is so."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from random import Random
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import pytest
from planner.brute_force import fits, least_peak

from tilewright.analysis.packing import Item, Packing, Problem, overlap, pack, peak_of
from tilewright.analysis.packing.clique import heaviest_clique

BENCH = Path(__file__).resolve().parents[2] / "bench" / "planner_instances.py"


def instances() -> dict[str, list[Item]]:
    """The twenty instances of the benchmark."""
    spec = importlib.util.spec_from_file_location("planner_instances", BENCH)
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.instances()


def drawn(random: Random, *, most: int = 12) -> list[Item]:
    """Up to `most` items; one in five has a hole, one set in five a pin."""
    span, life = random.choice((6, 10, 14)), random.choice((3, 6))
    made: list[Item] = []
    for _ in range(random.randrange(2, most + 1)):
        first = random.randrange(span)
        ranges = [(first, first + random.randrange(life))]
        if random.random() < 0.2:
            again = ranges[0][1] + random.randrange(2, 4)
            ranges.append((again, again + random.randrange(3)))
        made.append(Item(random.choice((1, 1, 2, 2, 3, 4)), tuple(ranges)))
    if random.random() < 0.2:
        place = random.randrange(len(made))
        made[place] = Item(made[place].size, made[place].ranges, random.randrange(6))
    return made


def checked(items: list[Item], packing: Packing) -> None:
    """What is reported is so: nothing overlaps, pins are kept, the peak is the peak."""
    assert overlap(items, packing.addresses) is None
    assert packing.peak == peak_of(items, packing.addresses)
    assert all(item.pin in (None, at) and at >= 0 for item, at in zip(items, packing.addresses, strict=True))
    assert Problem(items).bound <= packing.bound <= packing.peak


def small(seed: int) -> list[Item]:
    """A set that brute force can do in a moment: at most 14 granules are alive at one time."""
    random = Random(seed)
    while Problem(items := drawn(random)).bound > 14:
        pass
    return items


@pytest.mark.parametrize("block", range(10))
def test_equal_to_brute_force(block: int) -> None:
    """300 random instances of up to 12 items: the peak is the least there is, and is known to be."""
    for seed in range(30 * block, 30 * block + 30):
        items = small(seed)
        packing = pack(items)
        checked(items, packing)
        assert packing.optimal, f"seed {seed}: {packing}"
        assert packing.peak == least_peak(items), f"seed {seed}: {packing}"


def test_brute_force_is_right_where_the_answer_is_known() -> None:
    """Two that meet lie side by side; one with a hole makes room in it; a pin is a floor."""
    two = [Item(2, ((0, 3),)), Item(3, ((3, 5),))]
    assert least_peak(two) == 5 and not fits(two, 4)
    assert least_peak([Item(2, ((0, 1), (6, 7))), Item(3, ((3, 5),))]) == 3
    assert least_peak([Item(2, ((0, 3),), 4), Item(5, ((3, 5),))]) == 11


def test_a_pin_in_the_way_is_gone_around() -> None:
    items = [Item(2, ((0, 9),), 3), Item(3, ((1, 4),)), Item(4, ((2, 6),)), Item(1, ((5, 9),))]
    packing = pack(items)
    checked(items, packing)
    assert packing.peak == least_peak(items) == 9 and packing.optimal


def test_without_a_budget_the_standard_orders_are_all_there_is_and_the_gap_is_told() -> None:
    """Of 400 sets those that need more than orders are still packed, and called not optimal."""
    left = [items for items in map(small, range(400)) if not pack(items, budget=0).optimal]
    assert left
    for items in left:
        packing = pack(items, budget=0)
        checked(items, packing)
        assert packing.gap > 0 and packing.placements <= 1
        assert pack(items).peak <= packing.peak


def test_the_same_items_are_packed_the_same_way() -> None:
    items = instances()["1800 buffers, memory full"]
    one, two = (pack(items, budget=5_000) for _ in range(2))
    assert one.addresses == two.addresses and 0 < one.placements <= 5_000


def test_a_capacity_is_reached_first() -> None:
    """Sets that the sweep leaves above the line are brought below it."""
    for seed in range(60):
        items = small(seed)
        least = pack(items).peak
        assert pack(items, capacity=least).peak == least
        below = pack(items, capacity=least - 1)
        assert below.peak > least - 1
        checked(items, below)


def test_freed_room_is_divided() -> None:
    """Where one lay, several smaller ones come to lie; and one larger one where several lay."""
    items = [Item(8, ((0, 1),)), *(Item(2, ((2 + i, 9),)) for i in range(4)), Item(8, ((10, 12),))]
    packing = pack(items)
    assert packing.peak == 8 and sorted(packing.addresses[1:5]) == [0, 2, 4, 6]


def test_generated_instances() -> None:
    """Twenty of 200 to 2,000 buffers: the median gap is at most 3 %, each in under 2 s."""
    gaps: list[float] = []
    for name, items in instances().items():
        assert 200 <= len(items) <= 2_000
        begin = process_time()
        packing = pack(items)
        seconds = process_time() - begin
        checked(items, packing)
        assert seconds < 2, f"{name}: {seconds:.2f} s"
        gaps.append(packing.gap)
    assert len(gaps) == 20 and median(gaps) <= 0.03 and max(gaps) <= 0.06


def test_ten_thousand_items() -> None:
    """Each alive for a few statements: the sweep does it, and a refusal needs no search either."""
    items = [Item(1 + i % 7, ((2 * i, 2 * i + 1 + i % 9),)) for i in range(10_000)]
    begin = process_time()
    packing = pack(items)
    assert packing.peak <= 2 * packing.bound
    assert pack(items, capacity=packing.bound - 1).placements == 0
    assert process_time() - begin < 4
    checked(items, packing)


def test_nothing_to_pack() -> None:
    assert pack([]) == Packing([], 0, 0, 0)


def test_a_set_of_thousands_that_meet_pairwise() -> None:
    """Deeper than calls may nest."""
    sizes = [1 + index % 7 for index in range(1500)]
    assert heaviest_clique(sizes, np.ones((1500, 1500), bool)) == sum(sizes)
