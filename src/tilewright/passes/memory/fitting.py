"""Whether a function can be given addresses, asked by passes that decide how much to keep in memory at a time.

The answer comes from the planner itself: what is promised here is what is kept later.
"""

from __future__ import annotations

from tilewright.errors import AccumulatorError, CapacityError, TilewrightError
from tilewright.ir.function import Function, Program
from tilewright.passes.memory.assign_buffers import assign_buffers
from tilewright.passes.memory.place_buffers import place_buffers
from tilewright.passes.tile.materialize_scratch import materialize_scratch
from tilewright.targets import Target


def misfit(function: Function, target: Target) -> TilewrightError | None:
    """Why the tiles of `function`, scratch included, cannot be placed; None when they can."""
    program = Program((function,), function.name)
    try:
        # What engines wait for changes where buffers lie, never whether they fit.
        place_buffers(assign_buffers(materialize_scratch(program, target), target), target, engines=False)
    except (CapacityError, AccumulatorError) as error:
        return error
    return None
