"""Instances for the planner of addresses: buffers of a random nest of loops. See `planner.py`."""

from __future__ import annotations

from random import Random

from tilewright.analysis.packing import Item

COUNTS = (200, 400, 600, 800, 1000, 1200, 1400, 1600, 1800, 2000)
SEEDS = (1, 2)
FULL = 400
"""granules of 32 bytes of the memory that is kept nearly full"""
LARGEST = 4_000
EXPONENT = 1.5


class Drawn:
    """The buffers of a random nest of loops. `room` limits how many granules are alive at one time."""

    def __init__(self, seed: int, count: int, room: int | None = None) -> None:
        self.random = Random(1000 * count + seed)
        self.room = room
        self.clock = 0
        self.found: list[list[int]] = []
        """first time, last time, granules"""
        self.body(count, 0)

    def items(self) -> list[Item]:
        return [Item(size, ((first, last),)) for first, last, size in self.found]

    def size(self) -> int:
        limit = LARGEST if self.room is None else self.room // 3
        return min(limit, int((1 if self.room is None else 4) * self.random.paretovariate(EXPONENT)))

    def body(self, count: int, depth: int) -> None:
        """The body of a loop: buffers, and loops with their own."""
        mine: list[list[int]] = []
        while count > 0:
            if depth < 4 and count > 6 and self.random.random() < 0.2:
                inside = self.random.randrange(3, max(4, count // 2 + 1))
                self.loop(inside, depth, mine)
                count -= inside
            else:
                self.clock += 1
                mine.append(self.buffer())
                count -= 1
        self.clock += 1
        for buffer in mine:
            buffer[1] = min(buffer[1], self.clock)

    def loop(self, inside: int, depth: int, outer: list[list[int]]) -> None:
        """A loop; what it reads of its surroundings lives until it ends."""
        begin = self.clock = self.clock + 1
        alive = [buffer for buffer in outer if buffer[1] >= begin]
        read = [buffer for buffer in alive if self.random.random() < (0.5 if self.room is None else 0.8)]
        if self.room is not None:
            while sum(size for _, _, size in read) > 4 * self.room // 5:
                read.pop()
            for buffer in alive:
                buffer[1] = begin
        for buffer in read:
            buffer[1] = 1 << 40
        self.body(inside, depth + 1)
        self.clock += 1
        for buffer in read:
            buffer[1] = self.clock

    def buffer(self) -> list[int]:
        size = self.size()
        life = 1 + int(self.random.expovariate(1 / (30 if self.room is None else 300)))
        if self.room is not None:
            alive = [buffer for buffer in self.found if buffer[1] >= self.clock]
            load = sum(buffer[2] for buffer in alive)
            ending = [buffer for buffer in alive if buffer[1] < 1 << 40]
            self.random.shuffle(ending)
            while load + size > self.room and ending:
                buffer = ending.pop()
                buffer[1] = max(buffer[0], self.clock - 1)
                load -= buffer[2]
        made = [self.clock, self.clock + life, size]
        self.found.append(made)
        return made


def instances() -> dict[str, list[Item]]:
    """The twenty instances by name."""
    free = {f"{count} buffers": Drawn(SEEDS[0], count).items() for count in COUNTS}
    full = {f"{count} buffers, memory full": Drawn(SEEDS[1], count, FULL).items() for count in COUNTS}
    return free | full
