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


Where phases depend on each other from one trip of a loop to the next, the caller launches the trips one by one.

Refuses (`UnsupportedError`): such a loop inside a sequential loop, or carrying what DDR cannot hold; a workspace in a
loop whose number of trips the caller cannot know; a scalar result from several launches."""

from __future__ import annotations

from tilewright.analysis.cores import CORE, cores_of, crosses_on_chip
from tilewright.errors import UnsupportedError
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.prune import prune
from tilewright.ir.scalar import Value
from tilewright.ir.storage import output_positions
from tilewright.passes.tile.split_engines.callers import Pieces, Trips, replace_calls
from tilewright.passes.tile.split_engines.phases import Phase, Piece, cut, whole
from tilewright.passes.tile.split_engines.trips import Repeat, Step, plan_steps
from tilewright.passes.tile.split_engines.workspaces import Workspace, plan_workspaces
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
    given = function
    # What nothing uses may lie anywhere: it must not decide which kinds of core are needed, nor keep a workspace.
    function = prune(given)
    cores = cores_of(function, target)
    if apart and len(cores) > 1:
        _refuse_results(function)
        steps = plan_steps(function, target)
        plan = _workspaces(steps)
        return Pieces(function, tuple(plan.values()), _Cutter(function.name, plan).steps(steps))
    phase = Phase(next(iter(cores)) if len(cores) == 1 and len(target.cores) > 1 else None, None)
    plan = plan_workspaces(function, crossing=False)
    if plan:
        return Pieces(function, tuple(plan.values()), (cut(function, phase, plan, set(), function.name),))
    if function is given and phase.core == function.attr(CORE):
        return None
    return Pieces(function, (), (whole(function, phase),))


def _workspaces(steps: tuple[Step, ...]) -> dict[Value, Workspace]:
    """The workspaces, each with the parts that the launch which stores to it gives it."""
    found: dict[Value, Workspace] = {}
    for step in steps:
        if isinstance(step, Repeat):
            found |= _workspaces(step.steps)
            continue
        planned = plan_workspaces(step.function, crossing=True)
        found |= {made: space for made, space in planned.items() if made in step.phase.written and made not in found}
    return found


class _Cutter:
    """Cuts the launches out, one after another; knows what has been written by the time that each starts."""

    def __init__(self, name: str, plan: dict[Value, Workspace]) -> None:
        self.name = name
        self.plan = plan
        self.written: set[Value] = set()
        self.count = 0

    def steps(self, steps: tuple[Step, ...]) -> tuple[Piece | Trips, ...]:
        return tuple(self.step(step) for step in steps)

    def step(self, step: Step) -> Piece | Trips:
        if isinstance(step, Repeat):
            # In every trip but the first, all that the loop writes has been written.
            self.written |= self.all_written(step.steps)
            return Trips(step.trip, step.loop, self.steps(step.steps))
        name = f"{self.name}_{step.phase.core}_{self.count}"
        self.count += 1
        piece = cut(step.function, step.phase, self.plan, self.written, name)
        self.written |= step.phase.roots(self.plan)
        return piece

    def all_written(self, steps: tuple[Step, ...]) -> set[Value]:
        found: set[Value] = set()
        for step in steps:
            found |= self.all_written(step.steps) if isinstance(step, Repeat) else step.phase.roots(self.plan)
        return found


def _refuse_results(function: Function) -> None:
    """A scalar result would have to come back from one of several launches."""
    if any(position is None for position in output_positions(function)):
        raise UnsupportedError(
            f"{function.name} returns a scalar and needs several kinds of core",
            span=function.span,
            help="write the scalar into an output tensor",
        )
