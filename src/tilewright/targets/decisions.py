"""Decisions that were made for the compiler, and the questions that it asked.

Where a pass has several ways that all work and a model says which is best, it asks here first. The answer comes with
the target, since it is true of one machine, and counts into the key of compiled code. Nobody has to have decided: then
the model's order stands. A decision that is not among the ways any more is passed over, so that an old one
can make a program slower and never wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeVar

Value = int | float | str | tuple[int | float | str, ...]
"""What can be decided, as JSON has it; lists are tuples."""

T = TypeVar("T", bound=Value)

MOST_OPTIONS = 64
"""Ways that are noted of one question, the model's best first."""


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """`made`: by question. `asked`, where somebody listens: by question the ways there are, the model's first."""

    made: Mapping[str, Value] = field(default_factory=lambda: MappingProxyType[str, Value]({}))
    asked: dict[str, tuple[Value, ...]] | None = None

    @property
    def matter(self) -> bool:
        """False where nobody decided and nobody listens, so that the other ways need not be worked out."""
        return bool(self.made) or self.asked is not None

    def first(self, question: str, options: Sequence[T]) -> list[T]:
        """The options with the decided one in front."""
        found = list(options)
        if self.asked is not None:
            self.asked.setdefault(question, tuple(found[:MOST_OPTIONS]))
        decided = self.made.get(question)
        if decided in found:
            found.sort(key=lambda option: option != decided)
        return found

    def __str__(self) -> str:
        """The decisions as one line of JSON, always in the same order."""
        return json.dumps(dict(sorted(self.made.items())), sort_keys=True)
