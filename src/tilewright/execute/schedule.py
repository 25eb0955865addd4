"""When each instruction runs: engines in order, beside each other, and one DDR for all cores.

An instruction starts when its engine has done what came before and what it waits for has ended. A transfer over DDR
waits out its latency, then its bytes flow. While all that flows together asks for more than DDR gives, everything
slows down in the same proportion.

Cores that execute the same stream from the same moment on stay in step, so that one of them stands for all (a `Lane`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf

from tilewright.execute.instructions import Price
from tilewright.execute.unfold import Stream


@dataclass(slots=True)
class Lane:
    """The blocks that execute one stream, and when it does what. Cycles from the start of the launch."""

    stream: Stream
    blocks: list[int]
    starts: list[float] = field(default_factory=list[float])
    ends: list[float] = field(default_factory=list[float])
    causes: list[int] = field(default_factory=list[int])
    """the entry whose end let it start; -1: none"""

    @property
    def cycles(self) -> float:
        return max(self.ends, default=0.0)

    @property
    def last(self) -> int:
        """The entry that ends last; -1 where there is none."""
        return max(range(len(self.ends)), key=self.ends.__getitem__, default=-1)


def schedule(lanes: list[Lane], prices: list[Price], ddr: float | None) -> None:
    """Fills in the times of all lanes, which start together. `ddr`: bytes per cycle for all cores; None: no bound."""
    if ddr is not None and sum(len(lane.blocks) * _appetite(lane.stream, prices) for lane in lanes) <= ddr:
        ddr = None
    _Clock(lanes, prices, ddr).run()


def _appetite(stream: Stream, prices: list[Price]) -> float:
    """The most that one block can ask of DDR in a cycle: every engine its fastest transfer."""
    engine: dict[int, int] = {}
    most: dict[int, float] = {}
    for entry, (previous, number) in enumerate(zip(stream.previous, stream.prices, strict=True)):
        queue = engine[entry] = engine[previous] if previous >= 0 else entry
        most[queue] = max(most.get(queue, 0.0), prices[number].rate)
    return sum(most.values())


class _Clock:
    """All lanes in one sequence of events. Entries of all lanes are numbered through."""

    def __init__(self, lanes: list[Lane], prices: list[Price], ddr: float | None) -> None:
        self.lanes = lanes
        self.table = prices
        self.ddr = ddr
        self.price: list[int] = []
        self.weight: list[int] = []
        self.missing: list[int] = []
        self.followers: list[list[int]] = []
        for lane in lanes:
            self._add(lane)
        count = len(self.price)
        self.starts = [0.0] * count
        self.ends = [0.0] * count
        self.causes = [-1] * count
        self.events: list[tuple[float, int]] = []
        """ends of instructions by time; ~entry: its bytes begin to flow"""
        self.flowing: list[tuple[float, int]] = []
        """transfers by the moment, on a clock that slows down with DDR, at which they end"""
        self.demand = 0.0
        """bytes per cycle that all that flows asks for"""

    def _add(self, lane: Lane) -> None:
        base, weight = len(self.price), len(lane.blocks)
        stream = lane.stream
        self.price += stream.prices
        self.weight += [weight] * len(stream.prices)
        self.followers += [[] for _ in stream.prices]
        for entry, (previous, waits) in enumerate(zip(stream.previous, stream.waits, strict=True)):
            before = {*waits, previous} if previous >= 0 else set(waits)
            self.missing.append(len(before))
            for other in before:
                self.followers[base + other].append(base + entry)

    def run(self) -> None:
        for entry, missing in enumerate(self.missing):
            if not missing:
                self._start(entry, 0.0)
        self._loop()
        base = 0
        for lane in self.lanes:
            stop = base + len(lane.stream.steps)
            lane.starts, lane.ends = self.starts[base:stop], self.ends[base:stop]
            lane.causes = [cause if cause < 0 else cause - base for cause in self.causes[base:stop]]
            base = stop

    def _loop(self) -> None:
        events, flowing = self.events, self.flowing
        now = slow = 0.0
        while events or flowing:
            speed = 1.0 if self.ddr is None or self.demand <= self.ddr else self.ddr / self.demand
            arrives = now + (flowing[0][0] - slow) / speed if flowing else inf
            if events and events[0][0] <= arrives:
                time, entry = heappop(events)
                slow, now = (slow + (time - now) * speed) if flowing else 0.0, time
                if entry < 0:
                    self._flow(~entry, slow)
                    continue
            else:
                slow, entry = heappop(flowing)
                now = arrives
                self.demand -= self.weight[entry] * self.table[self.price[entry]].rate
                if not flowing:
                    self.demand = 0.0
            self._end(entry, now)

    def _flow(self, entry: int, slow: float) -> None:
        """The bytes of a transfer begin to flow."""
        price = self.table[self.price[entry]]
        self.demand += self.weight[entry] * price.rate
        heappush(self.flowing, (slow + price.cycles - price.latency, entry))

    def _start(self, entry: int, now: float) -> None:
        price = self.table[self.price[entry]]
        self.starts[entry] = now
        if self.ddr is not None and price.rate:
            heappush(self.events, (now + price.latency, ~entry))
        else:
            heappush(self.events, (now + price.cycles, entry))

    def _end(self, entry: int, now: float) -> None:
        self.ends[entry] = now
        for follower in self.followers[entry]:
            self.missing[follower] -= 1
            if not self.missing[follower]:
                self.causes[follower] = entry
                self._start(follower, now)
