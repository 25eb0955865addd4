"""What expansion decided."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.analysis.hints import PerfHint


@dataclass(frozen=True, slots=True)
class ExpansionPlan:
    """The hints: one for each operation that became a loop over single elements."""

    hints: tuple[PerfHint, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.hints)) or "no operation is done element by element"
