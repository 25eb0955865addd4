"""What the checker knows at one point of a text: the findings so far, and for each name its type and constant value."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.codegen.pto.scalars import arith
from tilewright.codegen.pto.syntax import Operation
from tilewright.codegen.pto.types import TileType, Type
from tilewright.errors import PTOError


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule. `clause` names it: the section of the format, the operation, and what is wrong."""

    clause: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message} ({self.clause})"


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of one value."""

    type: Type
    constant: int | float | None = None
    operation: Operation | None = None
    layout: str | None = None
    """Of a GM view: ``nd``, ``dn`` or ``nz``; None when its strides fit several or are not known."""


@dataclass(slots=True)
class Context:
    """The state of a check. `core` is the core that the surrounding function or section belongs to, if it says so."""

    arch: str
    level: int | None
    dialect: str
    findings: list[Finding] = field(default_factory=list[Finding])
    scope: dict[str, Fact] = field(default_factory=dict[str, Fact])
    core: str | None = None
    arguments: frozenset[str] = frozenset()
    acc_rows: dict[str, int | None] = field(default_factory=dict[str, int | None])
    """Per accumulator that a matmul wrote: how many rows, None when that is dynamic."""

    def report(self, clause: str, op: Operation, message: str) -> None:
        """Add a finding at `op`."""
        finding = Finding(clause, op.line, f"{op.name}: {message}")
        if finding not in self.findings:
            self.findings.append(finding)

    def require(self, holds: bool, clause: str, op: Operation, message: str) -> None:
        """Add a finding at `op` unless `holds`."""
        if not holds:
            self.report(clause, op, message)

    def constant(self, name: str) -> int | float | None:
        """The value of `name` where it is known."""
        fact = self.scope.get(name)
        return fact.constant if fact is not None else None

    def integers(self, names: tuple[str, ...]) -> tuple[int | None, ...]:
        """Known integer values, None for the others."""
        found = (self.constant(name) for name in names)
        return tuple(int(value) if value is not None else None for value in found)

    def fold(self, op: Operation) -> int | float | None:
        """The value of a scalar operation whose operands are known."""
        values = [self.constant(name) for name in op.operands]
        if not op.name.startswith("arith.") or any(value is None for value in values):
            return None
        try:
            found = arith(op, values)
        except PTOError:
            return None
        return found if isinstance(found, int | float) else None


def tiles(types: tuple[Type, ...]) -> list[TileType]:
    """The tile types among `types`."""
    return [kind for kind in types if isinstance(kind, TileType)]


def differ(a: tuple[int | None, ...], b: tuple[int | None, ...]) -> bool:
    """Whether two shapes are known to differ."""
    return len(a) != len(b) or any(x is not None and y is not None and x != y for x, y in zip(a, b, strict=True))
