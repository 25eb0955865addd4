"""The packing problem by itself: sizes, times and pins in, addresses out. Nothing here knows of tiles or memories.

    time  0 1 2 3 4 5          item  size  ranges               an item with a hole does not hold its
      A   # # # . . .            A     2   [0, 2]               bytes in it: B and C may overlap
      B   # # . . # #            B     1   [0, 1] [4, 5]
      C   . . # # . .            C     1   [2, 3]               addresses A 0, B 2, C 2; peak 3 = bound

Sizes and addresses are in granules (the alignment of a memory). Time is cut into *sections*, between two of which
nothing begins and nothing ends; an item covers some slices of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

Ranges = tuple[tuple[int, int], ...]
"""sorted, disjoint, both ends included"""


@dataclass(frozen=True, slots=True)
class Item:
    """Something that needs `size` granules in a row whenever it is alive, at one address; at `pin`, if that is set."""

    size: int
    ranges: Ranges
    pin: int | None = None

    def meets(self, other: Item) -> bool:
        """Whether the two are alive at one time."""
        return any(a <= last and first <= b for a, b in self.ranges for first, last in other.ranges)


class Problem:
    """Items over sections. `slices[i]`: the sections of item `i`, as half-open slices; `load[s]`: granules alive."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = tuple(items)
        times = sorted({edge for item in items for first, last in item.ranges for edge in (first, last + 1)})
        self.slices = tuple(
            tuple((bisect_left(times, first), bisect_left(times, last + 1)) for first, last in item.ranges)
            for item in items
        )
        self.count = max(0, len(times) - 1)
        changes = [0] * (self.count + 1)
        for item, slices in zip(self.items, self.slices, strict=True):
            for begin, end in slices:
                changes[begin] += item.size
                changes[end] -= item.size
        self.load = list(accumulate(changes))[: self.count]

    @property
    def bound(self) -> int:
        """The most granules that are alive at one time, or the end of the highest pin: no packing needs less."""
        pinned = (item.pin + item.size for item in self.items if item.pin is not None)
        return max([0, *self.load, *pinned])

    def parts(self) -> list[list[int]]:
        """The items in groups of which no two are ever alive together: each is a problem of its own."""
        inside = [0] * (self.count + 1)
        for slices in self.slices:
            # Across its holes too: the item has one address, in all of its ranges.
            inside[min(slices[0][0] + 1, slices[-1][1])] += 1
            inside[slices[-1][1]] -= 1
        number = list(accumulate(int(covered == 0) for covered in accumulate(inside)))
        found: dict[int, list[int]] = {}
        for index, slices in enumerate(self.slices):
            found.setdefault(number[slices[0][0]], []).append(index)
        return list(found.values())


def peak_of(items: Sequence[Item], addresses: Iterable[int]) -> int:
    """The end of the highest item."""
    return max((address + item.size for item, address in zip(items, addresses, strict=True)), default=0)


def overlap(items: Sequence[Item], addresses: Sequence[int]) -> tuple[int, int] | None:
    """Two items that are alive together and share a granule; None when there are none."""
    events = sorted(
        (time, begins, index)
        for index, item in enumerate(items)
        for first, last in item.ranges
        for time, begins in ((first, True), (last + 1, False))
    )
    alive: list[tuple[int, int]] = []  # address and item, by address
    for _, begins, index in events:
        entry = (addresses[index], index)
        place = bisect_left(alive, entry)
        if not begins:
            del alive[place]
            continue
        # Those alive are apart, so only the nearest two can be met.
        for at, other in alive[max(0, place - 1) : place + 1]:
            if at < entry[0] + items[index].size and entry[0] < at + items[other].size:
                return other, index
        alive.insert(place, entry)
    return None
