"""The memory machine: a placed program, run at its planned addresses, on engines that wait only for its hazards.

Where the interpreter says what a program means, this says whether its addresses, layouts and synchronisation keep
that meaning. Each core has one array of bytes per memory, poisoned; every access is checked against the history of the
bytes that it touches (`memory`) and against the order of events (`clocks`). A program that is right gives the
interpreter's numbers to the bit; one that is wrong is told by a `MemoryFault` that names both accesses.

    TW404: 'x' is read after something else was put where it lies in UB
      required: byte 0 as it was left by line 9: x = tile.load (MTE2)
      found:    line 11: z = tile.add (VECTOR) finds there what was left by line 10: y = tile.load (MTE2)
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tilewright.analysis.cores import CORE, core_of
from tilewright.analysis.legality import check_legal
from tilewright.errors import MemoryFault
from tilewright.execute.instructions import Code, number_of
from tilewright.execute.interpreter import Data, Environment, Interpreter
from tilewright.execute.memory.block import Block
from tilewright.execute.memory.clocks import Ledger, Shadow
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.nodes import For, Let, LoopKind
from tilewright.ir.scalar import Value
from tilewright.ir.types import TensorType
from tilewright.ir.verify import verify
from tilewright.targets import Target


def run_placed(
    program: Program,
    target: Target,
    args: Sequence[Any],
    *,
    seed: int = 0,
    entry: str | None = None,
    check: bool = True,
) -> tuple[Any, ...]:
    """Run a placed program on NumPy arrays and numbers; returns what the entry returns.

    Output parameters are arrays that are written in place. `seed` chooses how many cores share the work items, in
    which order those run, and how late each engine is. `check` verifies the program first, and that the target has
    what it asks for. Raises `MemoryFault`, and what the interpreter raises."""
    if check:
        verify(program)
        check_legal(program, target)
    return MemoryMachine(program, target, seed).run(program.function(entry or program.entry), args)


class MemoryMachine(Interpreter):
    """Executes functions of one placed program; those of tiles on the machine's memories."""

    def __init__(self, program: Program, target: Target, seed: int = 0) -> None:
        super().__init__(program)
        self.target = target
        self.rng = random.Random(seed)
        self.codes: dict[Function, Code] = {}

    def call(self, function: Function, args: Sequence[Any]) -> tuple[Any, ...]:
        if function.kind is not FunctionKind.INCORE:
            return super().call(function, args)
        if function not in self.codes:
            _check_core(function, self.target)
            self.codes[function] = Code(function, self.target)
        return self.launch(self.codes[function], _bound(function, args))

    def launch(self, code: Code, env: Environment) -> tuple[Any, ...]:
        """One launch: every block on a core with fresh memories, in any order, all of them over one DDR."""
        blocks = self.blocks(code, env)
        ledger = Ledger()
        shadows = _shadows(code.function, env, ledger)
        order = list(range(blocks))
        self.rng.shuffle(order)
        results: dict[int, tuple[Any, ...]] = {}
        plain = Interpreter(self.program)
        for number in order:
            block = Block(plain, code, ledger, shadows, (number, blocks), self.rng)
            results[number] = block.run(dict(env))
        return results[0]

    def blocks(self, code: Code, env: Environment) -> int:
        """How many cores share the launch: one for each item as far as there are cores, or fewer."""
        numbers = {value: given for value, given in env.items() if isinstance(given, int)}
        most = 0
        for loop in code.items.loops:
            start, stop, step = (number_of(bound, numbers) for bound in (loop.start, loop.stop, loop.step))
            if start is not None and stop is not None and step:
                most = max(most, len(range(start, stop, step)))
            else:
                most = max(most, 3)  # how many there are is known inside; any number of cores must do
        most = max(1, min(most, code.items.cores))
        return self.rng.choice((most, most, self.rng.randint(1, most)))

    def loop(self, stmt: For, env: Environment) -> tuple[Any, ...]:
        """Parallel loops of launches run their trips in any order."""
        if stmt.kind is not LoopKind.PARALLEL:
            return super().loop(stmt, env)
        start, stop, step = (int(self.scalar(bound, env)) for bound in (stmt.start, stmt.stop, stmt.step))
        trips = list(range(start, stop, step))
        self.rng.shuffle(trips)
        carried = tuple(self.scalar(init, env) for init in stmt.inits)
        for trip in trips:
            env[stmt.iv] = trip
            self._bind(stmt.iter_args, carried, env)
            carried = self.block(stmt.body, env)
        return carried


def _bound(function: Function, args: Sequence[Any]) -> Environment:
    """The parameters of `function`, and the run-time extents in their types, by value."""
    env: Environment = {}
    for param, arg in zip(function.params, args, strict=True):
        env[param.value] = arg
        shape = param.value.type.shape if isinstance(param.value.type, TensorType) else ()
        for extent, actual in zip(shape, arg.array.shape if shape else (), strict=True):
            if isinstance(extent, Value):
                env.setdefault(extent, actual)
    return env


def _check_core(function: Function, target: Target) -> None:
    """Raises `MemoryFault` when a statement needs another kind of core than the function says it runs on."""
    stated = function.attr(CORE)
    for stmt in function.walk():
        needed = core_of(stmt, target) if isinstance(stmt, Let) else None
        if stated is not None and needed not in (None, stated):
            raise MemoryFault(
                f"{function.name!r} runs on a core of another kind than its statements need",
                span=stmt.span,
                required=f"a {needed} core, which has the memories and engines of this statement",
                found=f'attrs={{"core": "{stated}"}}',
            )


def _shadows(function: Function, env: Environment, ledger: Ledger) -> dict[int, Shadow]:
    """A history for each tensor that the launch writes; the others cannot be raced for."""
    written: dict[int, Shadow] = {}
    for param in function.params:
        value: Value = param.value
        data = env[value]
        if isinstance(data, Data) and param.is_output:
            written[id(data.array)] = Shadow(f"DDR ({value.name})", data.array.shape, ledger)
    return written
