"""The plan: which products are cut, how, and where the parts of their results go."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.analysis.hints import PerfHint
from tilewright.analysis.tile_chooser import L0Tile, Problem
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import Let, Stmt
from tilewright.ir.scalar import Value
from tilewright.passes.tile.tile_matmul.forms import Node, Product
from tilewright.passes.tile.tile_matmul.levels import Choice
from tilewright.passes.tile.tile_matmul.operands import Bring
from tilewright.passes.tile.tile_matmul.slices import Slices

HINTS = {
    "PH-AT-003": "element types of less than a byte are not cut",
    "PH-AT-005": "the machine has no configuration for this product",
    "PH-AT-006": "the sum cannot be computed part by part",
    "PH-AT-008": "no room for two buffers of a moving operand: loads wait for multiplications",
    "PH-AT-009": "the accumulator cannot leave for the big memory in this element type",
    "PH-AT-010": "a rounding cannot be done on the way out of the accumulator",
    "PH-AT-011": "a part of the bias cannot be loaded by itself",
}
"""What each hint says in general; `PerfHint.message` says it of one product."""


@dataclass(frozen=True, slots=True, eq=False)
class ProductPlan:
    """How one product is computed: its tile of [m, n] in steps of `k`."""

    product: Product
    problem: Problem
    tile: L0Tile
    choice: Choice

    @property
    def steps(self) -> int:
        return -(-self.problem.k // self.tile.k)

    @property
    def is_cut(self) -> bool:
        """Whether the product changes even when no grid is laid over its result."""
        return self.steps > 1

    def bring(self, field: str) -> Bring:
        form = self.product.form
        return self.choice.lhs if field == form.lhs else self.choice.rhs if field == form.rhs else Bring.WHOLE


@dataclass(frozen=True, slots=True, eq=False)
class Sink:
    """Where the parts of a result go: `value` (the sum, or what is computed of it element by element) is stored at
    once by `store`, or collected: in a temporary tensor (`space` None), or in a tile in `space`."""

    value: Value
    at: Stmt
    store: Let | None = None
    space: MemorySpace | None = None
    after: tuple[Value, Let] | None = None
    """what is computed of the collected sum, and its store: done part by part too"""

    def __str__(self) -> str:
        if self.store is not None:
            return f"stored to {self.store.target.name}"
        onward = "" if self.after is None else f", then stored to {self.after[1].target.name} part by part"
        return f"collected in {'DDR' if self.space is None else self.space.value}{onward}"


@dataclass(frozen=True, slots=True, eq=False)
class SumPlan:
    """A sum of products over which a grid is laid: each tile of [m, n] of the result is completed, then goes out."""

    root: Value
    node: Node
    m: int
    n: int
    rows_outside: bool
    products: dict[Stmt, ProductPlan]
    sink: Sink
    slices: Slices


@dataclass(slots=True, eq=False)
class FunctionTiles:
    """What is decided for one function."""

    name: str
    sums: list[SumPlan] = field(default_factory=list[SumPlan])
    products: dict[Stmt, ProductPlan] = field(default_factory=dict[Stmt, ProductPlan])
    """products that are cut along K where they stand"""
    chosen: list[ProductPlan] = field(default_factory=list[ProductPlan])
    """every product that was looked at"""
    hints: list[PerfHint] = field(default_factory=list[PerfHint])

    def __str__(self) -> str:
        lines = [self.name]
        for plan in self.chosen:
            choice = plan.choice
            held = f"left operand {choice.lhs.value}, right operand {choice.rhs.value}"
            made = plan.product.stmt.target
            where = f" (line {made.span.line})" if made.span.line else ""
            lines.append(f"  {made.name}{where}")
            lines += [f"    {line}" for line in plan.tile.describe(plan.problem).split("\n")]
            lines.append(f"    brought    {held}")
        for total in self.sums:
            order = "rows outside" if total.rows_outside else "columns outside"
            lines.append(f"  {total.root.name}: tiles of {total.m} x {total.n}, {order}, {total.sink}")
        return "\n".join(lines + [f"  {hint}" for hint in self.hints])


@dataclass(slots=True, eq=False)
class TilePlan:
    """What `tile_matmul` does to a program. Prints as what `explain --tiles` shows."""

    functions: dict[str, FunctionTiles] = field(default_factory=dict[str, FunctionTiles])

    @property
    def hints(self) -> tuple[PerfHint, ...]:
        return tuple(hint for tiles in self.functions.values() for hint in tiles.hints)

    def __str__(self) -> str:
        return "\n".join(str(tiles) for tiles in self.functions.values() if tiles.chosen or tiles.hints)
