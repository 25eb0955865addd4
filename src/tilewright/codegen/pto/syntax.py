"""The records that reading PTO text gives: modules, functions, regions and operations, each with its line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tilewright.codegen.pto.types import Type
from tilewright.errors import Span

Attribute = str | int | float | bool | tuple[int, ...]
"""A `#pto<kind value>` attribute is kept as its value alone: ``"ROUND"``, ``"lt"``, ``"atomic_add"``."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. `operands` are the values inside `ins(…)`, `outs` those inside `outs(…)`; `named` holds groups
    that have a word of their own (``shape``, ``offsets``, ``valid_row``, …)."""

    name: str
    span: Span
    results: tuple[str, ...] = ()
    result_types: tuple[Type, ...] = ()
    operands: tuple[str, ...] = ()
    operand_types: tuple[Type, ...] = ()
    outs: tuple[str, ...] = ()
    out_types: tuple[Type, ...] = ()
    named: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    regions: tuple[Region, ...] = ()

    @property
    def line(self) -> int:
        return self.span.line


@dataclass(frozen=True, slots=True)
class Region:
    """A list of operations, with the names that it binds on entry."""

    arguments: tuple[tuple[str, Type], ...]
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """A `func.func`."""

    name: str
    span: Span
    arguments: tuple[tuple[str, Type], ...]
    results: tuple[Type, ...]
    attributes: dict[str, Attribute]
    body: Region

    @property
    def kind(self) -> str | None:
        """``cube``, ``vector``, or None when the function names no kernel kind."""
        kind = self.attributes.get("pto.kernel_kind")
        return kind if isinstance(kind, str) else None


@dataclass(frozen=True, slots=True)
class Module:
    """A whole text. `arch` is the module's `pto.target_arch`, when it has one."""

    name: str
    attributes: dict[str, Attribute]
    functions: tuple[Function, ...]

    @property
    def arch(self) -> str | None:
        arch = self.attributes.get("pto.target_arch")
        return arch if isinstance(arch, str) else None


def walk(region: Region) -> Iterator[Operation]:
    """Every operation of `region`, nested ones after the one that holds them."""
    for operation in region.operations:
        yield operation
        for inner in operation.regions:
            yield from walk(inner)
