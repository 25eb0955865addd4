"""Matmul tiling: every product is cut until it fits the matrix engine's memories, in the cheapest way."""

from __future__ import annotations

from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.passes.tile.tile_matmul.decide import decide
from tilewright.passes.tile.tile_matmul.plan import HINTS, FunctionTiles, PerfHint, ProductPlan, SumPlan, TilePlan
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
