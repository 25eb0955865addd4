"""The least memory in which items can be packed, found by trying everything.

Nothing of the planner is used, and nothing clever is done: time goes forward, every item that comes alive is tried at
every address, and a state (who lies where, of those that are not over) is visited once.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.analysis.packing import Item

State = tuple[tuple[int, int], ...]
"""item and address of each that is not over"""


def least_peak(items: Sequence[Item]) -> int:
    """The lowest line below which all items fit, in granules."""
    line = max((item.pin + item.size for item in items if item.pin is not None), default=0)
    for time in {first for item in items for first, _ in item.ranges}:
        line = max(line, sum(item.size for item in items if any(a <= time <= b for a, b in item.ranges)))
    while not fits(items, line):
        line += 1
    return line


def fits(items: Sequence[Item], line: int) -> bool:
    """Whether there are addresses for `items` with no end above `line`."""
    order = sorted(range(len(items)), key=lambda index: items[index].ranges[0][0])
    dead: set[tuple[int, State]] = set()

    def place(position: int, state: State) -> bool:
        if position == len(order):
            return True
        index = order[position]
        item = items[index]
        # An item in a hole is not over: it keeps its address, and who comes alive then may overlap it.
        held = tuple((other, at) for other, at in state if items[other].ranges[-1][1] >= item.ranges[0][0])
        if (position, held) in dead:
            return False
        taken = 0
        for other, at in held:
            if items[other].meets(item):
                taken |= ((1 << items[other].size) - 1) << at
        for address in range(line - item.size + 1) if item.pin is None else [item.pin]:
            if taken & ((1 << item.size) - 1) << address:
                continue
            if place(position + 1, tuple(sorted((*held, (index, address))))):
                return True
        dead.add((position, held))
        return False

    return place(0, ())
