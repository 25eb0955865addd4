"""Matmul tiling: every product is cut until it fits the matrix engine's memories, in the cheapest way.

Before (910B):  x = pl.tile.load(a, [0, 0], [320, 64])                                               # BF16
                y = pl.tile.load(b, [0, 0], [64, 256])
                c = pl.tile.matmul(x, y)                          # 327,680 bytes of FP32; Acc has 131,072
                out_1 = pl.tile.store(c, [0, 0], out)
After:          for j, (o,) in pl.range(0, 256, 128, init_values=(out,)):
                    y_right = pl.tile.extract(y, 0, j, [64, 128], target_memory=pl.Mem.Right, ...)
                    for i, (o_1,) in pl.pipeline(0, 224, 112, stage=2, init_values=(o,)):
                        x_left = pl.tile.extract(x, i, 0, [112, 64], target_memory=pl.Mem.Left, ...)
                        c = pl.tile.matmul(x_left, y_right)
                        out_1 = pl.tile.store(c, [i, j], o_1)
                        ...                                       # and the last 96 rows

`analysis.tile_chooser` picks the tile; this pass applies it:
  - K does not fit: steps along K, the first a product, the others adding to the one accumulator.
  - The result does not fit: a grid of tiles, each complete over K before it goes out. It goes straight to DDR where
    the result is only stored (rounded or worked on element by element on the way, as far as the machine can); else it
    is collected in a temporary tensor that its readers load from.
  - A sum over a loop of the user's, however it starts: the grid goes around the loop, loads are narrowed to the tile,
    and the whole accumulator never exists. A first trip that starts the sum stands in front of the loop.
  - Operands too large for the big memory are loaded in panels or block by block.

Steps:  `forms` reads how a sum is built up, `decide` plans (with `sinks`: where results go, `levels`: what is loaded
when, `slices`: what a copied loop needs), `rewrite` applies the plan (with `elements`, `products`, `operands`).

Left as it is, with a hint in the plan: a sum that something else reads or owns. Tiles that the user placed in Left or
Right are left alone. A result that fits and is read on chip is not laid out as a grid, since it would have to be
collected first.

Refuses: a product of which not even one box fits, and a tile in Left or Right that does not fit (`CapacityError`); a
product that adds to a tile which nothing has written (`AccumulatorError`)."""

from __future__ import annotations

from tilewright.analysis.hints import PerfHint
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.passes.tile.tile_matmul.decide import decide
from tilewright.passes.tile.tile_matmul.plan import HINTS, FunctionTiles, ProductPlan, SumPlan, TilePlan
from tilewright.passes.tile.tile_matmul.rewrite import apply
from tilewright.targets import Target

__all__ = ["HINTS", "FunctionTiles", "PerfHint", "ProductPlan", "SumPlan", "TilePlan", "plan_tiles", "tile_matmul"]


def tile_matmul(program: Program, target: Target) -> Program:
    """Requires flattened tiles without spaces of their own. Ensures that each product's tile fits."""

    def function(function: Function) -> Function:
        if function.kind is not FunctionKind.INCORE:
            return function
        return apply(function, decide(function, target), target)

    return program.map(function)


def plan_tiles(program: Program, target: Target) -> TilePlan:
    """What `tile_matmul` would do, and its hints."""
    incore = [f for f in program.functions if f.kind is FunctionKind.INCORE]
    return TilePlan({function.name: decide(function, target) for function in incore})
