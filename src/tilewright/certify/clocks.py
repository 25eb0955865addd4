"""What each engine has waited for, and what lies in which bytes: the state that the check of order walks with.

Engines run in order, so that one number says how much of another engine's work is known to be done (a vector clock).
What is learnt from a statement that may not have run (in an arm of a branch, in a loop of unknown trips) says
something only of what ran with it: such knowledge is kept with the moment from which on it counts.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from tilewright.certify.facts import Unit
from tilewright.certify.regions import Box
from tilewright.ir.nodes import Let

Clock = dict[Unit, int]
"""engine -> up to which moment its work is known to be done"""

REMEMBERED = 32
"""How many pieces of conditional knowledge an engine keeps: enough for the branches near by."""


@dataclass(frozen=True, slots=True)
class Conditional:
    """What is done on other engines by `clock`, of what began after `since`."""

    since: int
    clock: tuple[tuple[Unit, int], ...]

    def covers(self, engine: Unit, moment: int) -> bool:
        return moment > self.since and any(name == engine and moment <= done for name, done in self.clock)


@dataclass(slots=True)
class Knowledge:
    """What one engine has waited for."""

    clock: Clock = field(default_factory=dict[Unit, int])
    extra: tuple[Conditional, ...] = ()

    def copy(self) -> Knowledge:
        return Knowledge(dict(self.clock), self.extra)

    def covers(self, engine: Unit, moment: int) -> bool:
        """Whether what `engine` began at `moment` is done, if it ran."""
        return self.clock.get(engine, 0) >= moment or any(item.covers(engine, moment) for item in self.extra)

    def learn(self, other: Knowledge) -> None:
        """All that `other` knows."""
        for engine, moment in other.clock.items():
            if self.clock.get(engine, 0) < moment:
                self.clock[engine] = moment
        self.keep(other.extra)

    def learn_since(self, other: Knowledge, since: int) -> None:
        """What `other` knows of work that began after `since`."""
        news = tuple((e, m) for e, m in other.clock.items() if m > since and m > self.clock.get(e, 0))
        self.keep(
            (*(item for item in other.extra if item.since >= since), *((Conditional(since, news),) if news else ()))
        )

    def keep(self, items: tuple[Conditional, ...]) -> None:
        """Conditional knowledge, as far as it says more than what is known without condition."""
        if items and items != self.extra:
            useful = [item for item in dict.fromkeys((*self.extra, *items)) if self._adds(item)]
            self.extra = tuple(useful[-REMEMBERED:])

    def _adds(self, item: Conditional) -> bool:
        return any(self.clock.get(engine, 0) < moment for engine, moment in item.clock)

    @staticmethod
    def joined(a: Knowledge, b: Knowledge, since: tuple[int, int]) -> Knowledge:
        """What is known when one of two ways was taken; `since`: the moments from which on each was walked."""
        engines = a.clock.keys() | b.clock.keys()
        out = Knowledge({engine: min(a.clock.get(engine, 0), b.clock.get(engine, 0)) for engine in engines})
        out.extra = tuple(item for item in a.extra if item in b.extra)
        out.learn_since(a, since[0])
        out.learn_since(b, since[1])
        return out


@dataclass(frozen=True, slots=True)
class Entry:
    """An access that later ones may have to wait for."""

    moment: int
    stmt: Let
    engine: Unit
    writes: bool
    box: Box | None = None
    """of a DDR tensor"""


Entries = tuple[Entry, ...]


class Bytes:
    """The latest accesses to each byte of one memory, in stretches that were always touched together."""

    def __init__(self, starts: list[int] | None = None, entries: list[Entries] | None = None) -> None:
        self.starts = starts or [0]
        self.entries = entries or [()]

    def copy(self) -> Bytes:
        return Bytes(list(self.starts), list(self.entries))

    def _cut(self, at: int) -> int:
        """The index of the stretch that begins at `at`, which is made if there is none."""
        index = bisect_right(self.starts, at) - 1
        if self.starts[index] != at:
            index += 1
            self.starts.insert(index, at)
            self.entries.insert(index, self.entries[index - 1])
        return index

    def touch(self, low: int, high: int, entry: Entry) -> list[Entry]:
        """Notes an access to [low, high); returns the earlier ones there that it must be ordered after."""
        first, last = self._cut(low), self._cut(high)
        earlier = {
            old: None
            for index in range(first, last)
            for old in self.entries[index]
            if old.engine != entry.engine and (old.writes or entry.writes)
        }
        if entry.writes:
            self.starts[first:last] = [low]
            self.entries[first:last] = [(entry,)]
        else:
            for index in range(first, last):
                kept = (old for old in self.entries[index] if old.writes or old.engine != entry.engine)
                self.entries[index] = (*kept, entry)
        return list(earlier)

    @staticmethod
    def joined(a: Bytes, b: Bytes) -> Bytes:
        """What may lie there when one of two ways was taken."""
        if a.starts == b.starts and all(x is y for x, y in zip(a.entries, b.entries, strict=True)):
            return a
        starts = sorted({*a.starts, *b.starts})
        entries: list[Entries] = []
        for start in starts:
            one, two = (side.entries[bisect_right(side.starts, start) - 1] for side in (a, b))
            entries.append(one if one is two else tuple(dict.fromkeys((*one, *two))))
        return Bytes(starts, entries)


Key = tuple[Unit, bool, Box]
"""An engine, whether it writes, and where: of such accesses the latest stands for those before it."""


class Boxes:
    """The latest accesses to one tensor in DDR. One key has several entries where several ways lead here."""

    def __init__(self, entries: dict[Key, Entries] | None = None) -> None:
        self.entries = entries if entries is not None else {}

    def copy(self) -> Boxes:
        return Boxes(dict(self.entries))

    def earlier(self, entry: Entry) -> list[Entry]:
        """Those of other engines, one of the two writing."""
        return [
            old
            for (engine, writes, _), found in self.entries.items()
            if engine != entry.engine and (writes or entry.writes)
            for old in found
        ]

    def note(self, entry: Entry) -> None:
        """An access, after which those of its key need not be waited for any more."""
        assert entry.box is not None
        self.entries[entry.engine, entry.writes, entry.box] = (entry,)

    def add(self, found: Entries) -> None:
        """Accesses that may have been made, beside those that are known."""
        for entry in found:
            assert entry.box is not None
            key = (entry.engine, entry.writes, entry.box)
            self.entries[key] = tuple(dict.fromkeys((*self.entries.get(key, ()), entry)))

    def all(self) -> Entries:
        return tuple(entry for found in self.entries.values() for entry in found)

    @staticmethod
    def joined(a: Boxes, b: Boxes) -> Boxes:
        if a.entries == b.entries:
            return a
        out = a.copy()
        for key, found in b.entries.items():
            if a.entries.get(key) != found:
                out.add(found)
        return out
