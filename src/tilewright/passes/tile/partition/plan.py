"""What is cut, and why not: decided here, printed by `str`, applied by `rewrite`."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.ir.nodes import Let
from tilewright.ir.scalar import Scalar, Value
from tilewright.passes.tile.partition.dimensions import Dim, Dimensions, tile_of


@dataclass(frozen=True, slots=True)
class Cut:
    """One class of dimensions in blocks of `block` of its `extent` elements."""

    cls: Dim
    extent: Scalar
    block: int

    @property
    def count(self) -> int | None:
        """The number of blocks, when it is constant."""
        return -(-self.extent // self.block) if isinstance(self.extent, int) else None

    def __str__(self) -> str:
        value, axis = self.cls
        names = {1: "rows", 0: "columns"}
        which = names.get(tile_of(value).rank - axis - 1 if tile_of(value).rank > 1 else 0, f"dimension {axis}")
        return f"{which} of {value.name} [{self.extent!r}] by {self.block}"


@dataclass(frozen=True, slots=True)
class Part:
    """The statements that lead to some of a section's stores, and how they are cut: `grid` are work items, `passes`
    loops over blocks within each, outermost first, which carry what they sum. Neither: the statements stay."""

    lets: tuple[Let, ...]
    dims: Dimensions
    grid: tuple[Cut, ...] = ()
    passes: tuple[Cut, ...] = ()
    reason: str | None = None
    """why it stays although it does not fit"""

    def __str__(self) -> str:
        if self.reason is not None:
            return f"stays: {self.reason}"
        grid = ["work items: " + ", ".join(map(str, self.grid))] if self.grid else []
        return "; ".join([*grid, *(f"passes over {cut}" for cut in self.passes)]) or "fits"


@dataclass(frozen=True, slots=True)
class FunctionPlan:
    """One section. `before` are statements that stand before all parts: scalars, and rooms in DDR."""

    name: str
    parts: tuple[Part, ...] = ()
    before: tuple[Let, ...] = ()
    reason: str | None = None

    @property
    def cuts(self) -> bool:
        return any(part.grid or part.passes for part in self.parts)

    def __str__(self) -> str:
        if self.reason is not None:
            return f"{self.name}: {self.reason}"
        return "\n".join(f"{self.name}: {part}" for part in self.parts)


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """Every section of a program."""

    functions: tuple[FunctionPlan, ...] = ()

    def of(self, name: str) -> FunctionPlan | None:
        return next((plan for plan in self.functions if plan.name == name), None)

    def __str__(self) -> str:
        return "\n".join(map(str, self.functions))


@dataclass(slots=True)
class Stages:
    """When each value of straight-line code is there, if one class is done in passes over its blocks: `of[v]` is the
    number of passes that must be over first; `run[i]` the pass in which statement `i` runs, None outside of passes."""

    of: dict[Value, int] = field(default_factory=dict[Value, int])
    run: list[int | None] = field(default_factory=list[int | None])
    ends: list[bool] = field(default_factory=list[bool])
    """whether a statement is an end of its pass: a sum, or a store"""
    count: int = 0
