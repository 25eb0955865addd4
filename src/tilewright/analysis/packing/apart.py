"""Packing with wishes: pairs that had better not share bytes, although they are never alive together.

First all wishes are taken for demands; where that does not stay within the capacity, each item goes to the lowest of
the addresses at which it breaks the fewest wishes, in several orders, and then the items that break some are moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from tilewright.analysis.packing.clique import heaviest_clique
from tilewright.analysis.packing.first_fit import Addresses, Orders
from tilewright.analysis.packing.problem import Item, Problem, peak_of

MOST = 2_000
"""Items up to which wishes are heard: there is a table of their pairs."""

FEW = 100
"""Items up to which all standard orders are tried where wishes have to be broken."""

ROUNDS = 3
"""How often items that break wishes are moved."""


@dataclass(frozen=True, slots=True)
class Apart:
    """Addresses, how many reuses they have against a wish, and a proved bound: of the peak of packings without any
    where `reuses` is 0; 0 where that was not looked for."""

    addresses: Addresses
    reuses: int
    bound: int


def pack_apart(items: Sequence[Item], wishes: np.ndarray, base: Addresses, capacity: int, budget: int) -> Apart:
    """Addresses within `capacity` that break as few `wishes` (a symmetric table) as were found, and of those the ones
    with the lowest peak. `base` is a packing that stays within; it comes back when nothing breaks fewer."""
    problem = Problem(items)
    strict = Orders(problem)
    hard = strict.conflicts
    wishes = wishes & ~hard
    if not broken(items, wishes, base):
        return Apart(base, 0, 0)
    strict.conflicts = hard | wishes
    bound = max(problem.bound, heaviest_clique([item.size for item in items], strict.conflicts))
    if bound <= capacity:
        best, order = strict.best(bound)
        best = strict.improve(order, best, bound, budget)
        if peak_of(items, best) <= capacity and not broken(items, wishes, best):
            return Apart(best, 0, bound)
    best = _Lenient(items, hard, wishes, capacity).best(base, strict)
    return Apart(best, reuses(items, wishes, best), 0)


def broken(items: Sequence[Item], wishes: np.ndarray, addresses: Addresses) -> int:
    """How many pairs share bytes against a wish."""
    return int(np.count_nonzero(np.triu(wishes & _sharing(items, addresses))))


def reuses(items: Sequence[Item], wishes: np.ndarray, addresses: Addresses) -> int:
    """How many of those pairs follow one another: none that lies in the same bytes comes alive in between, which would
    have waited, and be waited for, instead."""
    sharing = _sharing(items, addresses)
    found = 0
    for one, two in np.argwhere(np.triu(sharing & wishes)):
        low, high = sorted((int(one), int(two)), key=lambda index: items[index].ranges[0][0])
        since, until = items[low].ranges[0][0], items[high].ranges[0][0]
        between: list[int] = np.nonzero(sharing[low] & sharing[high])[0].tolist()
        found += not any(since < items[other].ranges[0][0] < until for other in between)
    return found


def _sharing(items: Sequence[Item], addresses: Addresses) -> np.ndarray:
    begins = np.array(addresses)
    ends = begins + np.array([item.size for item in items])
    table = (begins[:, None] < ends[None, :]) & (begins[None, :] < ends[:, None])
    np.fill_diagonal(table, val=False)
    return table


class _Lenient:
    """Items at the address that breaks the fewest wishes, within the capacity."""

    def __init__(self, items: Sequence[Item], hard: np.ndarray, wishes: np.ndarray, capacity: int) -> None:
        self.items = items
        self.hard = hard
        self.wishes = wishes
        self.capacity = capacity
        self.sizes = np.array([item.size for item in items], np.int64)

    def best(self, base: Addresses, orders: Orders) -> Addresses:
        """The best of `base` and of some orders, with its items moved where that breaks fewer wishes. Fewer orders of
        many items, since each asks every item about every other."""
        few = max(1, 5 * FEW // max(FEW, len(self.items)))
        placed = [self.placed(order) for order in islice(orders.standard(), few)]
        candidates = [base, *(found for found in placed if found is not None)]
        best = min(candidates, key=self.price)
        return min(best, self.moved(best), key=self.price)

    def price(self, addresses: Addresses) -> tuple[int, int]:
        return broken(self.items, self.wishes, addresses), peak_of(self.items, addresses)

    def placed(self, order: Sequence[int]) -> Addresses | None:
        addresses = np.zeros(len(self.items), np.int64)
        there = np.zeros(len(self.items), np.bool_)
        for index, item in enumerate(self.items):
            if item.pin is not None:
                addresses[index], there[index] = item.pin, True
        for index in order:
            if there[index]:
                continue
            found = self.choice(index, addresses, there)
            if found is None:
                return None
            addresses[index], there[index] = found, True
        return [int(address) for address in addresses]

    def moved(self, addresses: Addresses) -> Addresses:
        current = np.array(addresses)
        there = np.ones(len(self.items), np.bool_)
        for _ in range(ROUNDS):
            before = current.copy()
            pairs = self.wishes & _sharing(self.items, [int(address) for address in current])
            loose: list[int] = np.nonzero(pairs.any(axis=1))[0].tolist()
            for index in loose:
                if self.items[index].pin is None:
                    there[index] = False
                    found = self.choice(index, current, there)
                    current[index] = current[index] if found is None else found
                    there[index] = True
            if (before == current).all():
                break
        return [int(address) for address in current]

    def choice(self, index: int, addresses: np.ndarray, there: np.ndarray) -> int | None:
        """The lowest of the addresses at which the item breaks the fewest wishes; None when it fits nowhere."""
        size = self.sizes[index]
        near = np.nonzero((self.hard[index] | self.wishes[index]) & there)[0]
        begins, ends = addresses[near], addresses[near] + self.sizes[near]
        options = np.unique(np.concatenate(([0], ends)))
        options = options[options + size <= self.capacity]
        meets = (options[:, None] < ends[None, :]) & (begins[None, :] < options[:, None] + size)
        clashes = (meets & self.hard[index, near][None, :]).any(axis=1)
        costs = (meets & self.wishes[index, near][None, :]).sum(axis=1)
        options, costs = options[~clashes], costs[~clashes]
        return int(options[np.argmin(costs)]) if len(options) else None
