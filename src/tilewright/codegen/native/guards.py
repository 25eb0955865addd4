"""Checks that run with the kernel, and the errors that they become.

A check that cannot be proved when compiling costs a comparison. When it fails, the function reports four numbers and
returns the check's number; the caller turns it into the error that the interpreter raises, at the user's line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tilewright.errors import CodegenError, OutOfBoundsError, Span, TilewrightError, ValidShapeError

REPORT = 4
"""Numbers that a failing check reports: axis, offset, extent, limit."""


@dataclass(frozen=True, slots=True)
class Guard:
    """One check. `kind`: ``read`` or ``write`` (an access), ``valid`` (a valid extent), ``step`` (of a loop),
    ``memory`` (the heap gave none)."""

    kind: str
    operation: str
    array: str
    span: Span

    def error(self, report: Sequence[int]) -> TilewrightError:
        """The error for what was reported."""
        axis, offset, extent, limit = report
        if self.kind == "step":
            return OutOfBoundsError("a loop's step is 0", span=self.span)
        if self.kind == "memory":
            return CodegenError("there is no memory for a tensor", span=self.span, found=f"{extent} bytes wanted")
        if self.kind == "valid":
            return ValidShapeError(
                "a valid shape does not fit its tile",
                span=self.span,
                required=f"axis {axis}: at least 0, at most {limit}",
                found=f"{extent}",
            )
        return OutOfBoundsError(
            f"{self.operation} {self.kind}s outside {self.array!r}",
            span=self.span,
            required=f"axis {axis} has {limit} elements",
            found=f"elements {offset} to {offset + extent - 1}",
            help="clamp the region, or say how much of it is valid with valid_shape",
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Guard:
        return Guard(data["kind"], data["operation"], data["array"], Span(**data["span"]))
