"""Engine split: one function for each phase of work on one kind of core, and workspaces that their caller owns.

Before (910B):  with matrix and vector cores apart, one function holds both
                    ws = pl.tensor.create([64, 128], pl.FP32)
                    ws_1 = pl.tile.store(acc, [0, 0], ws)          # matrix core
                    x = pl.tile.load(ws_1, [0, 0], [64, 128])      # vector core
                    out_1 = pl.tile.store(pl.tile.relu(x), [0, 0], out)
After:          f_cube_0(a, b, ws) stores into ws; f_vector_1(ws, out) loads from it; the caller creates ws and calls
                one after the other

A phase is everything that one kind of core can do before it needs what another kind has yet to store. It is cut out as
what its stores depend on: on-chip values never cross, so a tile that two phases need is loaded, or computed, in both.
A loop over several phases becomes one loop in each; a workspace made inside it then has a slot for each trip. Where
the machine moves tiles between its kinds of core on the chip (950), and where it has one kind of core, functions stay
whole, and only their workspaces are handed to the caller.

Refuses: phases that depend on each other from one trip of a loop to the next (`UnsupportedError`); a workspace in a
loop whose number of trips the caller cannot know."""

from __future__ import annotations

from tilewright.analysis.cores import CORE, cores_of, crosses_on_chip
from tilewright.errors import UnsupportedError
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.storage import output_positions
from tilewright.passes.tile.split_engines.callers import Pieces, replace_calls
from tilewright.passes.tile.split_engines.phases import Phase, cut, plan_phases
from tilewright.passes.tile.split_engines.workspaces import plan_workspaces
from tilewright.targets import Target


def split_engines(program: Program, target: Target) -> Program:
    """Requires placed tiles and legal moves. Ensures that a function with the attribute ``core`` runs on that kind of
    core alone, and that no tile function creates a tensor."""
    apart = target.has_separate_cores and not crosses_on_chip(target)
    pieces: dict[str, Pieces] = {}
    for function in program.functions:
        if function.kind is FunctionKind.INCORE:
            made = _split(function, target, apart)
            if made is not None:
                pieces[function.name] = made
    return replace_calls(program, pieces) if pieces else program


def _split(function: Function, target: Target, apart: bool) -> Pieces | None:
    """The pieces of one function; None when it stays as it is."""
    cores = cores_of(function, target)
    if apart and len(cores) > 1:
        phases = plan_phases(function, target)
        _refuse_results(function)
    else:
        phases = [Phase(next(iter(cores)) if len(cores) == 1 and len(target.cores) > 1 else None, None)]
    plan = plan_workspaces(function, crossing=len(phases) > 1)
    if len(phases) == 1 and not plan and phases[0].core == function.attr(CORE):
        return None
    return Pieces(function, tuple(plan.values()), tuple(cut(function, phase, phases, plan) for phase in phases))


def _refuse_results(function: Function) -> None:
    """A scalar result would have to come back from one of several launches."""
    if any(position is None for position in output_positions(function)):
        raise UnsupportedError(
            f"{function.name} returns a scalar and needs several kinds of core",
            span=function.span,
            help="write the scalar into an output tensor",
        )
