"""Makes a failing random program small:  python tests/properties/shrink.py tile ascend910b 137

The level, a target of `judges.TARGETS` (`scratchpad` for the example chip) or `native`, the seed, and the size if it is
not 10. `fuzz.py` draws even seeds as tile programs and odd ones as tensor programs, and prints the line to run. Choices
are deleted and lowered while the failure stays the same kind of failure; the smallest program found is
printed.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from meaning import outcome
from properties.fuzz import level_of, size_of
from properties.judges import (
    DECLINED,
    SCRATCHPAD,
    has_masks,
    judge_certificate,
    judge_machine,
    judge_native,
    judge_passes,
    judge_pto,
)
from properties.strategies import Generated, Seeded, generate

from tilewright.ir.op import Level
from tilewright.targets import load_target

SECONDS = 60


class Replayed:
    """Choices from a list, 0 when it is used up; `made` is what was asked for, within its bounds."""

    def __init__(self, given: list[int]) -> None:
        self.given = given
        self.made: list[int] = []

    def below(self, bound: int) -> int:
        position = len(self.made)
        self.made.append(min(self.given[position] if position < len(self.given) else 0, bound - 1))
        return self.made[-1]


class Recorded(Seeded):
    """Choices from a seed, remembered."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.made: list[int] = []

    def below(self, bound: int) -> int:
        self.made.append(super().below(bound))
        return self.made[-1]


def failure(drawn: Generated, name: str) -> str | None:
    """What goes wrong, without names and numbers; None when nothing does."""
    try:
        arguments = drawn.arguments()
        wanted = outcome(drawn.program, arguments)
        if name == "native":
            judge_native(drawn.program, arguments, wanted)
            return None
        target = load_target(name)
        placed = judge_passes(drawn.program, target, arguments, wanted)
        judge_machine(placed, target, arguments, wanted)
        judge_certificate(placed, target)
        if target.pto_arch is not None and not has_masks(drawn.program):
            judge_pto(placed, target, arguments, wanted)
    except DECLINED:
        return None
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what shall be kept
        return type(error).__name__ + re.sub(r"'.*?'|\d+", "#", str(error).partition("\n")[0])[:80]
    return None


def smaller(choices: list[int]) -> Iterator[list[int]]:
    """Lists of choices that are shorter or lower."""
    for width in (16, 8, 4, 2, 1):
        for start in range(len(choices)):
            yield choices[:start] + choices[start + width :]
    for position, choice in enumerate(choices):
        if choice:
            yield [*choices[:position], 0, *choices[position + 1 :]]
            yield [*choices[:position], choice - 1, *choices[position + 1 :]]


def shrink(level: Level, name: str, seed: int, size: int = 10) -> Generated | None:
    """The smallest program found that fails as the one of `seed` does; None when that does not fail."""
    recorded = Recorded(seed)
    best, choices = generate(recorded, level, size), recorded.made
    wanted, end, improved = failure(best, name), time.monotonic() + SECONDS, True
    while wanted is not None and improved:
        improved = False
        for steps in (*range(size), size):
            for candidate in smaller(choices) if steps == size else [choices]:
                replayed = Replayed(candidate)
                drawn = generate(replayed, level, steps)
                if len(repr(drawn)) < len(repr(best)) and failure(drawn, name) == wanted:
                    best, choices, size, improved = drawn, replayed.made, steps, True
                    break
                if time.monotonic() > end:
                    return best
    return best if wanted is not None else None


def main(level: str, name: str, seed: str, size: str = "10") -> None:
    name = SCRATCHPAD if name == "scratchpad" else name
    found = shrink(Level(level), name, int(seed), int(size))
    if found is None:
        print("\n".join(["nothing is wrong", *elsewhere(Level(level), int(seed), int(size))]))
    else:
        print(f"{found!r}\n# {failure(found, name)}")


def elsewhere(level: Level, seed: int, size: int) -> list[str]:
    """What `fuzz.py` drew for the seed, where that is another program."""
    if (level_of(seed), size_of(seed)) == (level, size):
        return []
    return [
        f"fuzz.py draws seed {seed} at the {level_of(seed).value} level with size {size_of(seed)}, not this program"
    ]


if __name__ == "__main__":
    main(*sys.argv[1:])
