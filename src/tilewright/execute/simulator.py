"""How many cycles a placed program takes on its target, without the target.

    simulate(lower(program, target), target)  ->  a `SimulationResult`

Each core has one queue in order per engine. An instruction starts when its engine is free and what it waits for has
ended; it takes what the cost model says. Work items of parallel loops go over the cores in turn, launches follow each
other, and all cores share DDR. The prices of the cost model and the list of hazards are used and nothing else, so that
a better figure or a closer list is a better timeline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tilewright.analysis.work_items import CLUSTER
from tilewright.execute.instructions import Code, Env, Prices, number_of
from tilewright.execute.schedule import Lane, schedule
from tilewright.execute.simulation import LaunchTime, Played, SimulationResult
from tilewright.execute.tally import Tally
from tilewright.execute.unfold import Unfolder
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.nodes import Block, Call, For, If, Let, Yield, result_of
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import ScalarType, TensorType
from tilewright.targets import Target


def simulate(program: Program, target: Target, arguments: Mapping[str, Any] | None = None) -> SimulationResult:
    """The timeline of `program`, whose tiles all have addresses on `target`.

    `arguments`: by the names of the entry's parameters, numbers and anything with a `shape`; of arrays only the shape
    is read, and only where the program does not state it. Raises `UnsupportedError` for more instructions than a
    simulation holds."""
    run = _Run(program, target)
    run.start(arguments or {})
    tally = Tally(target, run.played, run.prices.table)
    return SimulationResult(
        program.entry,
        target.name,
        run.now,
        tuple(run.launches),
        tally.engines(),
        tally.edges(),
        tally.critical_path(),
        tally.limits(),
        (*_model(target, run.played), *run.unfolder.assumed),
        tuple(run.played),
        tuple(run.prices.table),
    )


def _model(target: Target, played: list[Played]) -> Iterator[str]:
    """What the model takes for granted."""
    yield "prices are those of the target's file, latency included; an engine is held for all of a statement's cycles"
    yield "starting a launch, issuing statements, scalar arithmetic and control flow cost nothing"
    if target.ddr_bytes_per_cycle is None:
        yield "DDR serves every core as fast as its edges carry: the target states no bound for all of them together"
    else:
        yield f"DDR gives all cores together {target.ddr_bytes_per_cycle:g} bytes per cycle; no cache is in between"
    if any(item.code.items.place == CLUSTER for item in played):
        yield "in a cluster one core of each kind works, with engines of its own; signals between them cost nothing"
    for item in dict.fromkeys(item.code for item in played):
        if item.items.reason:
            yield f"{item.function.name} runs as one block, because {item.items.reason}"


class _Run:
    """Executes the entry as far as it can be without data, launch by launch."""

    def __init__(self, program: Program, target: Target) -> None:
        self.program = program
        self.target = target
        self.prices = Prices(target)
        self.unfolder = Unfolder(self.prices)
        self.codes: dict[str, Code] = {}
        self.known: dict[tuple[object, ...], tuple[Lane, ...]] = {}
        """launches that were simulated, by function and the values of its scalars"""
        self.now = 0.0
        self.launches: list[LaunchTime] = []
        self.played: list[Played] = []

    def start(self, arguments: Mapping[str, Any]) -> None:
        main = self.program.main
        env: Env = {}
        for param in main.params:
            given, kind = arguments.get(param.value.name), param.value.type
            if isinstance(kind, TensorType):
                shape: Any = getattr(given, "shape", ())
                for extent, actual in zip(kind.shape, shape, strict=False):
                    if isinstance(extent, Value):
                        env[extent] = int(actual)
            elif isinstance(given, int):
                env[param.value] = int(given)
        self.function(main, env)

    def function(self, function: Function, env: Env) -> None:
        if function.kind is FunctionKind.ORCHESTRATION:
            self.block(function.body, env)
        else:
            self.launch(function, env)

    # --- orchestration ---
    def block(self, block: Block, env: Env) -> None:
        for stmt in block:
            match stmt:
                case Let():
                    if not isinstance(stmt.value, Op):
                        self.set((stmt.target,), (stmt.value,), env)
                case Call():
                    self.call(stmt, env)
                case For():
                    carried = stmt.inits
                    for done, trip in enumerate(self.unfolder.trips(stmt, env)):
                        self.set(stmt.iter_args, carried, env)
                        if self.unfolder.ends(stmt, env, done):
                            break
                        env[stmt.iv] = trip
                        self.block(stmt.body, env)
                        carried = result_of(stmt.body)
                    self.set(stmt.results, carried, env)
                case If():
                    condition = number_of(stmt.condition, env)
                    if condition is None:
                        self.unfolder.assume(stmt.span.line, "whether the branch is taken is not known: it is")
                    arm = stmt.otherwise if condition == 0 else stmt.then
                    self.block(arm, env)
                    self.set(stmt.results, result_of(arm), env)
                case Yield():
                    pass
                case _:
                    for inner in stmt.blocks():
                        self.block(inner, env)

    def set(self, targets: tuple[Value, ...], values: tuple[Scalar, ...], env: Env) -> None:
        """Gives the scalars among `targets` their values, where those are known."""
        pairs = [(t, v) for t, v in zip(targets, values, strict=True) if isinstance(t.type, ScalarType)]
        for target, number in [(target, number_of(value, env)) for target, value in pairs]:
            env.pop(target, None)
            if number is not None:
                env[target] = number

    def call(self, stmt: Call, env: Env) -> None:
        callee = self.program.function(stmt.callee)
        inner: Env = {}
        for param, arg in zip(callee.params, stmt.args, strict=True):
            kind = param.value.type
            if not isinstance(kind, TensorType):
                self.set_in(inner, param.value, number_of(arg, env))
            elif isinstance(arg, Value) and isinstance(arg.type, TensorType):
                for extent, actual in zip(kind.shape, arg.type.shape, strict=True):
                    if isinstance(extent, Value):
                        self.set_in(inner, extent, number_of(actual, env))
        self.function(callee, inner)

    @staticmethod
    def set_in(env: Env, value: Value, number: int | None) -> None:
        if number is not None:
            env[value] = number

    # --- one launch ---
    def launch(self, function: Function, env: Env) -> None:
        code = self.codes.get(function.name)
        if code is None:
            code = self.codes[function.name] = Code(function, self.target)
        key = (function.name, tuple(env.items()))
        lanes = self.known.get(key)
        if lanes is None:
            lanes = self.known[key] = self.lanes(code, env)
        slowest = max(lanes, key=lambda lane: lane.cycles)
        cycles = slowest.cycles
        serial = sum(end - start for start, end in zip(slowest.starts, slowest.ends, strict=True))
        blocks = sum(len(lane.blocks) for lane in lanes)
        self.launches.append(LaunchTime(function.name, code.items.place, blocks, self.now, cycles, serial))
        self.played.append(Played(code, lanes, self.now))
        self.now += cycles

    def lanes(self, code: Code, env: Env) -> tuple[Lane, ...]:
        """The blocks of a launch, those that do the same together, with their times."""
        found: dict[tuple[object, ...], Lane] = {}
        blocks = self.unfolder.blocks(code, env)
        for block in range(blocks):
            stream = self.unfolder.stream(code, env, block, blocks)
            found.setdefault(stream.signature, Lane(stream, [])).blocks.append(block)
        lanes = tuple(found.values())
        schedule(list(lanes), self.prices.table, self.target.ddr_bytes_per_cycle)
        return lanes
