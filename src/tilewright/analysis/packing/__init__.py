"""Packing: addresses for items that are alive at known times, as low as can be found, and how good that is.

    pack([Item(2, ((0, 2),)), Item(1, ((0, 1), (4, 5))), Item(1, ((2, 3),))]).addresses  ->  [0, 2, 2]

Three means, each only where the one before has left a gap to the bytes that are alive together: a sweep over time
(n log n), first fit in other orders, and within `budget` placements the improvement of the best order and, for parts of
at most `SEARCHED` items, a search that ends with a proof. What is reported is proved: `bound` is what no packing can be
below, and a packing is *optimal* when its peak is the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.analysis.packing.clique import heaviest_clique
from tilewright.analysis.packing.first_fit import DENSE, Addresses, Orders, sweep
from tilewright.analysis.packing.problem import Item, Problem, Ranges, overlap, peak_of
from tilewright.analysis.packing.search import ExhaustedError, Search

__all__ = ["BUDGET", "SEARCHED", "Item", "Packing", "Problem", "Ranges", "overlap", "pack", "peak_of"]

BUDGET = 20_000
"""Placements that one call of `pack` may spend beyond the sweep and the standard orders: half a second."""

SEARCHED = 40
"""Items that the exact search takes at most, of those whose lives hang together."""


@dataclass(slots=True)
class Packing:
    """An address for each item, the end of the highest, and the end below which no packing stays."""

    addresses: Addresses
    peak: int
    bound: int
    placements: int
    """beyond the sweep"""

    @property
    def optimal(self) -> bool:
        return self.peak == self.bound

    @property
    def gap(self) -> float:
        """How far the peak is above the bound, as a share of it: no better packing gains more."""
        return self.peak / self.bound - 1 if self.bound else 0.0


def pack(items: Sequence[Item], capacity: int | None = None, budget: int = BUDGET) -> Packing:
    """The lowest packing found; deterministic. Items that are pinned are where they are pinned: two of them that
    overlap stay so (`overlap` finds them). A `capacity` only says what to reach first: whether the packing stays
    within is for the caller to see. Nothing is tried when the bound is above it."""
    problem = Problem(items)
    addresses = sweep(problem)
    found = Packing(addresses, peak_of(items, addresses), problem.bound, 0)
    if found.optimal or (capacity is not None and found.bound > capacity):
        return found
    purse = _Purse(budget)
    for part in problem.parts():
        own = [items[index] for index in part]
        packed = _Part(own, [found.addresses[index] for index in part], found.bound, purse)
        if packed.peak > found.bound:
            packed.solve(capacity)
            found.bound = max(found.bound, packed.bound)
            for index, address in zip(part, packed.addresses, strict=True):
                found.addresses[index] = address
    found.peak, found.placements = peak_of(items, found.addresses), purse.spent
    return found


@dataclass(slots=True)
class _Purse:
    """The budget of one call, shared by all parts; standard orders are free of charge, and counted."""

    budget: int
    spent: int = 0

    @property
    def left(self) -> int:
        return self.budget - self.spent


@dataclass(slots=True)
class _Part:
    """Items whose lives hang together, with the best addresses so far; `goal` is all that is worth reaching."""

    items: list[Item]
    addresses: Addresses
    goal: int
    purse: _Purse
    bound: int = 0
    order: list[int] = field(default_factory=list[int])

    @property
    def peak(self) -> int:
        return peak_of(self.items, self.addresses)

    def solve(self, capacity: int | None) -> None:
        problem = Problem(self.items)
        self.bound = problem.bound
        orders = self.tried(problem)
        if orders is not None and self.peak > self.goal and any(len(item.ranges) > 1 for item in self.items):
            self.bound = max(self.bound, heaviest_clique([item.size for item in self.items], orders.conflicts))
            self.goal = max(self.goal, self.bound)
        steps = [self.goal] if capacity is None or self.peak <= capacity else [capacity, self.goal]
        for goal in steps:
            if len(self.items) <= SEARCHED and self.peak > goal:
                self.searched(problem, goal)
            if orders is not None and self.peak > max(goal, self.bound):
                orders.placements = 0
                self.keep(orders.improve(self.order, self.addresses, max(goal, self.bound), self.purse.left))
                self.purse.spent += orders.placements

    def keep(self, addresses: Addresses) -> bool:
        if peak_of(self.items, addresses) >= self.peak:
            return False
        self.addresses = addresses
        return True

    def tried(self, problem: Problem) -> Orders | None:
        """First fit in the standard orders; None for what is too large to try."""
        if len(self.items) > DENSE:
            return None
        orders = Orders(problem)
        self.order = sorted(range(len(self.items)), key=lambda index: self.addresses[index])
        for order in orders.standard():
            if self.keep(orders.place(order)):
                self.order = order
            if self.peak <= self.goal:
                break
        return orders

    def searched(self, problem: Problem, line: int) -> None:
        """Halves what lies between the peak and what is proved, from `line` on, until the two meet or the budget for
        searching, half of what is left, is spent."""
        search = Search(problem, self.purse.left // 2)
        floor = max(self.bound, min(line, self.goal))
        try:
            while floor < self.peak:
                addresses = search.below(line)
                if addresses is None:
                    self.bound = floor = line + 1
                else:
                    self.addresses = addresses
                line = (floor + self.peak - 1) // 2
        except ExhaustedError:
            pass
        self.purse.spent += search.nodes
