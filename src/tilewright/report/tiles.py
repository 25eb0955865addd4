"""Why each product of a program is cut as it is, on a target.

    explain_tiles(program, "ascend910b")  ->  a `TilesReport`

It is the plan of `tile_matmul` for the program that this pass gets, so what is shown is what is done: the tile that was
chosen, its cycles split into load, multiply and drain, the largest of them, and the best tile of other extents. A
product inside a loop is shown once, with the sizes of one trip.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from tilewright.analysis.footprint import footprint
from tilewright.analysis.tile_chooser import L0Tile, Problem
from tilewright.compiler import UNPLACED, lower
from tilewright.ir.function import Program
from tilewright.ir.layout import MemorySpace
from tilewright.ir.types import TileType
from tilewright.passes.tile.tile_matmul import FunctionTiles, ProductPlan, plan_tiles
from tilewright.report.render import short_path
from tilewright.targets import Target, load_target


@dataclass(frozen=True, slots=True)
class TilePoint:
    """One point of the search. Cycles are modelled, of the whole product; one core."""

    m: int
    n: int
    k: int
    held: str
    """what stays in place: ``A``, ``B`` or ``output``"""
    accumulators: int
    fallback: bool
    """moving operands have one buffer each, so loads wait for multiplications"""
    load: float
    multiply: float
    drain: float
    wall: float
    """after loads, multiplications and drains have overlapped"""
    limit: str
    """the largest of the three terms"""


@dataclass(frozen=True, slots=True)
class ProductTiles:
    """One product: its sizes, what was chosen for it, and what came second."""

    name: str
    file: str
    line: int
    m: int
    n: int
    k: int
    dtype: str
    acc_dtype: str
    bias: bool
    grid: tuple[int, int, int]
    """how many tiles cover m, n and k"""
    lhs: str
    """how the left operand reaches the engine: ``whole`` on chip, by ``panel``, or by ``block``"""
    rhs: str
    result_bytes: int
    """of the whole result in the accumulator memory: boxes and padding counted, never made where it does not fit"""
    acc_capacity: int
    chosen: TilePoint
    runner_up: TilePoint | None
    """None where there is one tile only"""


@dataclass(frozen=True, slots=True)
class FunctionProducts:
    """The products of one function, in its order, and what the plan says of them."""

    name: str
    products: tuple[ProductTiles, ...]
    hints: tuple[str, ...]
    text: str
    """the same for people"""


@dataclass(frozen=True, slots=True)
class TilesReport:
    """The tiles of a program on a target. `str()` is for people, `to_json()` for programs."""

    program: str
    target: str
    functions: tuple[FunctionProducts, ...]

    def to_json(self) -> dict[str, Any]:
        """Everything as dictionaries, lists, texts and numbers."""
        return asdict(self)

    def __str__(self) -> str:
        found = [function.text for function in self.functions if function.text]
        return (
            "\n\n".join([f"Tiles of {self.program} on {self.target}", *(found or ["it has no matrix product"])]) + "\n"
        )

    def __rich__(self) -> Any:
        from rich.text import Text

        return Text(str(self))


def explain_tiles(program: Program, target: str | Target, forward: bool = True) -> TilesReport:
    """Says how each product of `program` is cut for `target`; `forward` as for `lower`. Raises what the
    passes and the chooser raise."""
    machine = load_target(target)
    plan = plan_tiles(lower(program, machine, after=UNPLACED, forward=forward), machine)
    functions = tuple(_function(tiles, machine) for tiles in plan.functions.values())
    return TilesReport(program.entry, machine.name, functions)


def _function(tiles: FunctionTiles, target: Target) -> FunctionProducts:
    products = tuple(_product(plan, target) for plan in tiles.chosen)
    hints = tuple(map(str, tiles.hints))
    return FunctionProducts(tiles.name, products, hints, _text(tiles, products))


def _text(tiles: FunctionTiles, products: tuple[ProductTiles, ...]) -> str:
    if not products and not tiles.hints:
        return ""
    files = ", ".join(dict.fromkeys(short_path(product.file) for product in products if product.file))
    first, _, rest = str(tiles).partition("\n")
    lines = [f"== {first}, from {files}" if files else f"== {first}", rest]
    results = {f"  {p.name}, whole: {p.result_bytes:,} bytes physical, Acc holds {p.acc_capacity:,}" for p in products}
    return "\n".join([*lines, *sorted(results)])


def _product(plan: ProductPlan, target: Target) -> ProductTiles:
    problem, made = plan.problem, plan.product.stmt.target
    second = plan.tile.runner_up
    whole = footprint(TileType((problem.m, problem.n), problem.acc_dtype, MemorySpace.ACC), target)
    return ProductTiles(
        made.name, made.span.file, made.span.line,
        problem.m, problem.n, problem.k, _operands(problem), str(problem.acc_dtype), problem.bias,
        plan.tile.grid(problem), plan.choice.lhs.value, plan.choice.rhs.value,
        whole, target.capacity(MemorySpace.ACC),
        _point(plan.tile), None if second is None else _point(second),
    )  # fmt: skip


def _operands(problem: Problem) -> str:
    return str(problem.dtype) if problem.rhs == problem.dtype else f"{problem.dtype} x {problem.rhs}"


def _point(tile: L0Tile) -> TilePoint:
    cycles = tile.cycles
    return TilePoint(
        tile.m, tile.n, tile.k, tile.stationary.value, tile.accumulators, tile.fallback,
        cycles.load, cycles.multiply, cycles.drain, cycles.wall, tile.limit,
    )  # fmt: skip
