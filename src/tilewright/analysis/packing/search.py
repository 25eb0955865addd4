"""The exact search: whether items can be packed below a line, by trying orders of rising addresses.

The items of a best packing, taken by address, each rest on one below or on the ground; so it is enough to place items
one after another, each on top of what its times hold, never lower than the one before. A branch ends
- when at some time what is still to come does not fit between what is there and the line;
- when an item that is still to come would fit entirely below the one just placed: that one comes first;
- when the same items were placed before with the same outline.
`Exhausted` is raised when the budget of nodes is spent; then nothing is known.
"""

from __future__ import annotations

from tilewright.analysis.packing.problem import Item, Problem


class ExhaustedError(Exception):
    """The budget is spent before the search knew."""


class Search:
    """One search over the items of `problem`; `nodes` counts placements over several calls."""

    def __init__(self, problem: Problem, budget: int) -> None:
        self.items: tuple[Item, ...] = problem.items
        self.slices = problem.slices
        self.count = problem.count
        self.load = problem.load
        self.budget = budget
        self.nodes = 0

    def below(self, line: int) -> list[int] | None:
        """Addresses with a peak of at most `line`, or None when there are none. Raises `ExhaustedError`."""
        self.line = line
        self.seen: set[tuple[int, ...]] = set()
        self.addresses = [0] * len(self.items)
        self.height = [0] * self.count
        self.rest = list(self.load)
        # Items that are alike are taken in one order only: the lowest of equals first.
        self.order = sorted(range(len(self.items)), key=lambda i: (-self.items[i].size, self.items[i].ranges))
        free = tuple(self.order)
        return list(self.addresses) if self.place(free, 0) else None

    def place(self, left: tuple[int, ...], lowest: int) -> bool:
        """Places `left`, none below `lowest`."""
        if not left:
            return True
        if not self.room(lowest):
            return False
        state = self.outline(left, lowest)
        if state in self.seen:
            return False
        for address, index in self.candidates(left, lowest):
            self.nodes += 1
            if self.nodes > self.budget:
                raise ExhaustedError
            before = self.put(index, address)
            if self.place(tuple(i for i in left if i != index), address):
                return True
            self.take(index, before)
        self.seen.add(state)
        return False

    def room(self, lowest: int) -> bool:
        line, rest = self.line, self.rest
        return all(
            not more or (height if height > lowest else lowest) + more <= line
            for height, more in zip(self.height, rest, strict=True)
        )

    def outline(self, left: tuple[int, ...], lowest: int) -> tuple[int, ...]:
        """What the rest of the search depends on: the heights where something is still to come, and the floor."""
        heights = (height if more else -1 for height, more in zip(self.height, self.rest, strict=True))
        return (*left, -2, lowest, *heights)

    def resting(self, index: int) -> int | None:
        """Where an item comes to lie; None when it cannot be placed yet, or no more."""
        item = self.items[index]
        address = max(max(self.height[begin:end]) for begin, end in self.slices[index])
        if item.pin is None:
            return address
        return item.pin if address <= item.pin else None

    def candidates(self, left: tuple[int, ...], lowest: int) -> list[tuple[int, int]]:
        """The items that may come next with their addresses, lowest first."""
        pinned = [i for i in left if self.items[i].pin is not None]
        found: list[tuple[int, int]] = []
        ceiling = self.line
        alike: set[tuple[int, object]] = set()
        for index in left:
            item = self.items[index]
            address = self.resting(index)
            if address is None or (item.pin is not None and item.pin < lowest):
                return []  # a pinned item whose place is taken, or passed by
            end = address + item.size
            if item.pin is None:
                if any(_meets(self.items[p], item, address) for p in pinned):
                    continue  # it goes above the pinned one, once that is there
                ceiling = min(ceiling, end)
                if (item.size, item.ranges) in alike:
                    continue
                alike.add((item.size, item.ranges))
            if address >= lowest and end <= self.line:
                found.append((address, index))
        # What lies at the end of another that could still be placed below it leaves a gap for nothing.
        return sorted((address, index) for address, index in found if address < ceiling)

    def put(self, index: int, address: int) -> list[list[int]]:
        before: list[list[int]] = []
        size = self.items[index].size
        for begin, end in self.slices[index]:
            before.append(self.height[begin:end])
            self.height[begin:end] = [address + size] * (end - begin)
            for section in range(begin, end):
                self.rest[section] -= size
        self.addresses[index] = address
        return before

    def take(self, index: int, before: list[list[int]]) -> None:
        size = self.items[index].size
        for (begin, end), heights in zip(self.slices[index], before, strict=True):
            self.height[begin:end] = heights
            for section in range(begin, end):
                self.rest[section] += size


def _meets(pinned: Item, item: Item, address: int) -> bool:
    assert pinned.pin is not None
    apart = address + item.size <= pinned.pin or pinned.pin + pinned.size <= address
    return not apart and pinned.meets(item)
