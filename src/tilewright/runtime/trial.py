"""One trial of tuning: a program with some decisions, compiled, and what that costs. Runs in any process.

A trial is given as text and numbers, so that it can be sent to another process or another machine. What comes back says
which questions the passes asked on the way: those are what can be decided differently next.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Any

from tilewright.compiler import lower
from tilewright.errors import TilewrightError
from tilewright.execute.simulator import simulate
from tilewright.frontend import parse
from tilewright.ir.function import Program
from tilewright.runtime.build import compile_for
from tilewright.runtime.options import Options
from tilewright.targets import Target, load_target
from tilewright.targets.decisions import Value

REPEATS = 7
"""Runs of which the fastest counts, at least."""

LEAST = 0.1
"""Seconds for which a kernel is run again and again."""


@dataclass(frozen=True, slots=True)
class Shape:
    """An array of which only the shape matters."""

    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """`text`: the program. `target`: a name or a path, as `load_target` takes it. `arguments`: by name, arrays to run
    on, or what has a shape where it is simulated. `forward`: as for `lower`."""

    text: str
    target: str
    arguments: Mapping[str, Any]
    decisions: tuple[tuple[str, Value], ...]
    measured: bool
    forward: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """Cycles or seconds; infinite where the decisions do not work, with the reason. `asked`: the questions, each with
    the ways there are, the model's choice first."""

    cost: float
    asked: Mapping[str, tuple[Value, ...]]
    reason: str = ""


def run_trial(trial: Trial) -> Outcome:
    """Compiles and simulates, or measures."""
    asked: dict[str, tuple[Value, ...]] = {}
    try:
        program, target = _parsed(trial.text), load_target(trial.target).with_decisions(dict(trial.decisions), asked)
        if trial.measured:
            return Outcome(_seconds(program, target, trial), asked)
        placed = lower(program, target, check=False, forward=trial.forward)
        return Outcome(simulate(placed, target, trial.arguments).cycles, asked)
    except TilewrightError as error:
        return Outcome(inf, asked, str(error).partition("\n")[0])


@lru_cache(maxsize=4)
def _parsed(text: str) -> Program:
    return parse(text, "<tuning>")


def _seconds(program: Program, target: Target, trial: Trial) -> float:
    """The fastest of several runs on this machine, native code, one thread."""
    kernel = compile_for(program, target, Options(cache=False, forward=trial.forward))
    values = [trial.arguments[param.value.name] for param in program.main.params]
    kernel(*values)
    found: list[float] = []
    began = time.perf_counter()
    while len(found) < REPEATS or time.perf_counter() - began < LEAST:
        started = time.perf_counter()
        kernel(*values)
        found.append(time.perf_counter() - started)
    return min(found)
