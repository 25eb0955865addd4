"""Packing by orders: items are taken one after another, each to the lowest gap that it fits.

An order decides everything. The sweep takes items as they come alive and needs n log n; the other orders keep all
placed items in view, so they are quadratic, with small constants. Where the best order leaves the peak above what must
be alive together, the items above that line are moved forward in it, and the order is tried again: what is hard to
place is placed early.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from random import Random

import numpy as np

from tilewright.analysis.packing.problem import Problem, peak_of

Addresses = list[int]

DENSE = 4_000
"""Items up to which orders other than the sweep are tried: their table of pairs takes 16 MB."""


def sweep(problem: Problem) -> Addresses:
    """Places items in the order in which they come alive, the largest of equals first."""
    items = problem.items
    addresses = [0] * len(items)
    pinned = [index for index, item in enumerate(items) if item.pin is not None]
    for index in pinned:
        addresses[index] = items[index].pin or 0
    rough = {index for index, item in enumerate(items) if len(item.ranges) > 1}
    active: list[tuple[int, int, int, int]] = []  # address, end, last time, item; by address
    for index in sorted(range(len(items)), key=lambda i: (items[i].ranges[0][0], -items[i].size)):
        item = items[index]
        if item.pin is not None:
            continue
        now = item.ranges[0][0]
        active = [other for other in active if other[2] >= now]
        exact = index in rough
        taken = [o for o in active if not (exact or o[3] in rough) or items[o[3]].meets(item)] if rough else active
        fixed = [p for p in pinned if items[p].meets(item)]
        if fixed:
            taken = sorted([*taken, *((addresses[p], addresses[p] + items[p].size, 0, p) for p in fixed)])
        address = 0
        for begin, end, _, _ in taken:
            if address + item.size <= begin:
                break
            address = max(address, end)
        addresses[index] = address
        insort(active, (address, address + item.size, item.ranges[-1][1], index))
    return addresses


class Orders:
    """First fit in any order; counts its placements."""

    def __init__(self, problem: Problem) -> None:
        self.items = problem.items
        self.sizes = np.array([item.size for item in self.items], np.int64)
        self.placements = 0
        self.conflicts = conflicts_of(problem)
        self.pinned = [index for index, item in enumerate(self.items) if item.pin is not None]

    def place(self, order: Sequence[int]) -> Addresses:
        """The addresses that come of `order`; pinned items are there from the start."""
        addresses = np.zeros(len(self.items), np.int64)
        placed = np.zeros(len(self.items), np.bool_)
        for index in self.pinned:
            addresses[index], placed[index] = self.items[index].pin or 0, True
        for index in order:
            if self.items[index].pin is None:
                addresses[index] = self.lowest_gap(index, addresses, np.nonzero(self.conflicts[index] & placed)[0])
                placed[index] = True
        self.placements += len(order)
        return [int(address) for address in addresses]

    def lowest_gap(self, index: int, addresses: np.ndarray, taken: np.ndarray) -> int:
        """The lowest address at which the item meets none of `taken`."""
        if not len(taken):
            return 0
        begins = addresses[taken]
        by_address = np.argsort(begins, kind="stable")
        begins, ends = begins[by_address], np.maximum.accumulate((begins + self.sizes[taken])[by_address])
        floors = np.concatenate(([0], ends[:-1]))
        gaps = np.nonzero(begins - floors >= self.sizes[index])[0]
        return int(floors[gaps[0]] if len(gaps) else ends[-1])

    def standard(self) -> Iterator[list[int]]:
        """Largest first; longest first; most bytes times time first; as they come alive, and as they die."""
        first = [item.ranges[0][0] for item in self.items]
        last = [item.ranges[-1][1] for item in self.items]
        alive = [sum(b - a + 1 for a, b in item.ranges) for item in self.items]
        size = [item.size for item in self.items]
        everything = range(len(self.items))
        yield sorted(everything, key=lambda i: (-size[i], -alive[i], first[i]))
        yield sorted(everything, key=lambda i: (-alive[i], -size[i], first[i]))
        yield sorted(everything, key=lambda i: (-alive[i] * size[i], first[i]))
        yield sorted(everything, key=lambda i: (first[i], -last[i], -size[i]))
        yield sorted(everything, key=lambda i: (-last[i], first[i], -size[i]))

    def best(self, goal: int) -> tuple[Addresses, list[int]]:
        """What the best of the standard orders gives, and that order; the first that reaches `goal` will do."""
        tried: list[tuple[int, Addresses, list[int]]] = []
        for order in self.standard():
            addresses = self.place(order)
            tried.append((peak_of(self.items, addresses), addresses, order))
            if tried[-1][0] <= goal:
                break
        _, addresses, order = min(tried, key=lambda found: found[0])
        return addresses, order

    def improve(self, order: Sequence[int], addresses: Addresses, goal: int, budget: int) -> Addresses:
        """Orders made from `order` until the peak is `goal`, or `budget` placements are spent: what lies above the
        best peak so far goes forward. Deterministic."""
        random = Random(len(order))
        best, base = addresses, list(order)
        current = base
        limit = self.placements + budget
        reached = peak_of(self.items, best)
        trial, stale = best, 0
        while reached > goal and self.placements + len(order) <= limit:
            high = {i for i, a in enumerate(trial) if a + self.items[i].size >= reached}
            current = _forward(current, high, random)
            trial = self.place(current)
            peak = peak_of(self.items, trial)
            if peak < reached:
                best, reached, stale, base = trial, peak, 0, current
            elif (stale := stale + 1) % 12 == 0:
                current, trial = base, best
        return best


def conflicts_of(problem: Problem) -> np.ndarray:
    """Which pairs are alive together, as a table of truth values; its diagonal is False."""
    items = problem.items
    first = np.array([item.ranges[0][0] for item in items])
    last = np.array([item.ranges[-1][1] for item in items])
    table = (first[:, None] <= last[None, :]) & (first[None, :] <= last[:, None])
    np.fill_diagonal(table, val=False)
    for index, item in enumerate(items):
        if len(item.ranges) > 1:
            for other in np.nonzero(table[index])[0]:
                table[index, other] = table[other, index] = item.meets(items[other])
    return table


def _forward(order: Sequence[int], high: set[int], random: Random) -> list[int]:
    """`order` with every item of `high` moved some way to the front."""
    rank = {item: float(place) for place, item in enumerate(order)}
    for item in high:
        rank[item] = rank[item] * random.random() - 0.5
    return sorted(order, key=rank.__getitem__)
