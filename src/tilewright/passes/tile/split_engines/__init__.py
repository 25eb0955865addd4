"""Engine split: one function for each launch, and workspaces that their caller owns.

Before:  a function whose second loop needs all that the first one stored
             for i in pl.parallel(8):  ...  ws_1 = pl.tile.store(x, [i * 16, 0], ws)
             for j in pl.parallel(4):  ...  y = pl.tile.load(ws_1, [0, j * 32], [128, 32])
After:   f_0(a, ws) stores into ws; f_1(ws, out) loads from it; the caller creates ws and calls one after the other

The items of a parallel loop run on cores that meet only where a launch ends. So a launch is everything that can be done
before work needs what all items of another loop store. It is cut out as what its stores depend on: on-chip values
never cross, so a tile that two launches need is loaded, or computed, in both. Matrix and vector work of one item stay
in one function; the backend gives each kind of core its part, and orders what passes between them.

A function that one kind of core can run gets the attribute ``core``, and no tile function creates a tensor: what the
conversion or a move through DDR made becomes a parameter, with a part for each item that runs at the same time.
"""

from __future__ import annotations

from tilewright.analysis.cores import CORE
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.prune import prune
from tilewright.ir.scalar import Value
from tilewright.ir.storage import output_positions
from tilewright.passes.tile.split_engines.callers import Pieces, replace_calls
from tilewright.passes.tile.split_engines.phases import ALL, Phase, Piece, cut, plan_phases, whole
from tilewright.passes.tile.split_engines.workspaces import Workspace, plan_workspaces
from tilewright.targets import Target


def split_engines(program: Program, target: Target) -> Program:
    """Requires placed tiles and legal moves. Ensures that a function with the attribute ``core`` runs on that kind of
    core alone, that no tile function creates a tensor, and that no loop over work items needs what another one in its
    function stores."""
    pieces: dict[str, Pieces] = {}
    for function in program.functions:
        if function.kind is FunctionKind.INCORE:
            made = _split(function, target)
            if made is not None:
                pieces[function.name] = made
    return replace_calls(program, pieces) if pieces else program


def _split(given: Function, target: Target) -> Pieces | None:
    """The pieces of one function; None when it stays as it is."""
    # What nothing uses may lie anywhere: it must not decide which kinds of core are needed, nor keep a workspace.
    function = prune(given)
    # A scalar result comes back from one launch.
    whole_only = any(position is None for position in output_positions(function))
    phases = [ALL] if whole_only else plan_phases(function)
    plan = plan_workspaces(function, target)
    if plan or len(phases) > 1:
        return Pieces(function, tuple(plan.values()), _cut_all(function, phases, plan, target))
    piece = whole(function, target)
    if function is given and piece.function.attr(CORE) == function.attr(CORE):
        return None
    return Pieces(function, (), (piece,))


def _cut_all(
    function: Function, phases: list[Phase], plan: dict[Value, Workspace], target: Target
) -> tuple[Piece, ...]:
    """The launches in order, each knowing what those before it have written."""
    written: set[Value] = set()
    made: list[Piece] = []
    for number, phase in enumerate(phases):
        name = function.name if phase is ALL else f"{function.name}_{number}"
        made.append(cut(function, phase, plan, written, name, target))
        written |= phase.roots(plan)
    return tuple(made)
