"""Performance hints: what costs cycles, or stayed as it was written, and why. A hint never replaces an error.

A pass that has something to say offers a function `plan_*` that decides without rewriting; its plan carries `hints`,
which `explain` prints. Codes are stable: ``PH-AT-…`` about tiles of products, ``PH-EX-…`` about
what is done element by element, ``PH-MR-…`` about memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.errors import Span


@dataclass(frozen=True, slots=True)
class PerfHint:
    """One hint, about the statement at `span`."""

    code: str
    message: str
    span: Span

    def __str__(self) -> str:
        line = f" (line {self.span.line})" if self.span.line else ""
        return f"{self.code}{line}: {self.message}"
