"""Tuning: other decisions than the model's are tried, and what is cheaper is kept in a file that later compiles read.

Passes ask where they have several ways (`tilewright.targets.decisions`), and say them in the order of their model. The
search starts from what the model chose (and from an earlier result, where there is one) and changes one decision at a
time: first the second best of each question, then the third best. Whatever is cheaper becomes the new start. It ends
when nothing near is cheaper, or the time is up. A result is written as soon as it is found.

Trials run on any `concurrent.futures.Executor`. For a machine that is not there they are simulated; for this CPU they
are measured, one at a time, since two at once would disturb each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from math import inf, isfinite
from multiprocessing import get_context
from os import cpu_count
from pathlib import Path
from typing import Any

from tilewright.errors import ArgumentError, UnsupportedError
from tilewright.ir.function import Program
from tilewright.runtime.trial import Outcome, Shape, Trial, run_trial
from tilewright.runtime.tuned import Entry, arguments_of, program_key, read_entries, remove_entry, sidecar, write_entry
from tilewright.targets import Target, load_target, target_names
from tilewright.targets.decisions import Value
from tilewright.text import print_program

BUDGET = 20.0
"""Seconds that a search takes at most, unless told otherwise; what is running when they are over is waited for."""

NOISE = 0.97
"""A measured time must be below so much of the best one to count as better (assumed). Simulated cycles are exact."""

SIMULATED, MEASURED = "simulated cycles", "measured seconds"

Key = tuple[tuple[str, Value], ...]
"""Decisions in the order of their questions."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a search has found so far."""

    seconds: float
    tried: int
    default: float
    best: float
    changed: str
    """the decision that made it better just now; empty where nothing did"""


@dataclass(frozen=True, slots=True)
class Tuned:
    """The end of a search. Costs are cycles or seconds, as `by` says; `tuned` is never above `default`."""

    kernel: str
    target: str
    by: str
    default: float
    tuned: float
    decisions: Mapping[str, Value]
    tried: int
    seconds: float
    complete: bool
    """whether nothing near the best was left to try"""
    path: Path | None
    """the file that says so; None where nothing was better than the model, or nowhere is there a place for it"""

    def __str__(self) -> str:
        show = spelled(self.by)
        head = f"{self.kernel} on {self.target}: {show(self.default)} -> {show(self.tuned)}"
        share = f", {1 - self.tuned / self.default:.1%} less" if self.default else ""
        end = "nothing near it is better" if self.complete else "the time was up"
        lines = [head + share, f"  {self.tried} tried in {self.seconds:.1f} s; {end}"]
        lines += [f"  {question}: {value_text(value)}" for question, value in sorted(self.decisions.items())]
        if not self.decisions:
            lines.append("  the model's choice stands")
        return "\n".join(lines)


def tune(
    program: Program,
    target: str | Target,
    arguments: Mapping[str, Any],
    *,
    budget: float = BUDGET,
    executor: Executor | None = None,
    path: Path | None = None,
    forward: bool = True,
    progress: Callable[[Progress], None] | None = None,
) -> Tuned:
    """Searches for cheaper decisions for `program` on `target`, `budget` seconds long.

    `arguments`: by the names of the entry's parameters; arrays to run on where the target is this CPU, else anything
    with a shape. `executor`: where trials run; processes of this machine by default. `path`: the file for the result,
    by default beside the kernel's. Raises what the passes raise for the program as it is, `ArgumentError` for a missing
    argument or no time, and `UnsupportedError` for a CPU that is not this one."""
    machine = load_target(target)
    if budget <= 0:
        raise ArgumentError("a search needs time", required="more than 0 seconds", found=f"{budget:g}")
    measured = machine.llvm_cpu is not None
    if measured and load_target("host").name != machine.name:
        raise UnsupportedError(
            f"{machine.name} is not this machine", required="a run on it",
            help=f"tune for {load_target('host').name}, or on a machine of that kind",
        )  # fmt: skip
    given = _given(program, arguments, measured)
    known = machine.name in target_names() and load_target(machine.name).path == machine.path
    base = Trial(print_program(program), machine.name if known else machine.path, given, (), measured, forward)
    place = path or sidecar(program)
    search = _Search(program, machine, base, budget, place, progress)
    if executor is not None:
        return search.run(executor, 1 if measured else _workers(executor))
    count = 1 if measured else max(1, min(8, cpu_count() or 1))
    own = ProcessPoolExecutor(count, mp_context=get_context("spawn"))
    try:
        return search.run(own, count)
    finally:
        own.shutdown(wait=False, cancel_futures=True)


def _given(program: Program, arguments: Mapping[str, Any], measured: bool) -> dict[str, Any]:
    names = [param.value.name for param in program.main.params]
    missing = [name for name in names if name not in arguments]
    if missing and measured:
        raise ArgumentError(f"a run needs a value for {', '.join(missing)}", required=", ".join(names))
    values = {name: arguments[name] for name in names if name in arguments}
    if measured:
        return values
    return {n: Shape(tuple(v.shape)) if hasattr(v, "shape") else v for n, v in values.items()}


def _workers(executor: Executor) -> int:
    """How many trials an executor is given at once."""
    count = getattr(executor, "_max_workers", None)
    return count if isinstance(count, int) and count > 0 else max(2, cpu_count() or 2)


@dataclass(slots=True)
class _Best:
    """The cheapest so far, and what can be changed about it."""

    key: Key
    outcome: Outcome
    turn: int = 0
    """when it was begun"""
    steps: Iterator[tuple[str, Key]] = field(default_factory=lambda: iter(()))


class _Search:
    def __init__(
        self, program: Program, target: Target, base: Trial, budget: float, path: Path | None,
        progress: Callable[[Progress], None] | None,
    ) -> None:  # fmt: skip
        self.program, self.target, self.base = program, target, base
        self.budget, self.path, self.progress = budget, path, progress
        self.key = program_key(program)
        self.seen: set[Key] = set()
        self.tried = 0
        self.started = time.monotonic()
        self.default = inf

    @property
    def by(self) -> str:
        return MEASURED if self.base.measured else SIMULATED

    def run(self, executor: Executor, workers: int) -> Tuned:
        self.started = time.monotonic()
        first = self.submit(executor, ()).result()
        if not isfinite(first.cost):
            raise UnsupportedError(f"{self.program.entry} cannot be tuned: {first.reason}")
        self.default = first.cost
        best = self.better(_Best((), first), "")
        earlier = self.earlier()
        if earlier:
            outcome = self.submit(executor, earlier).result()
            if outcome.cost < self.default:
                best = self.better(_Best(earlier, outcome), "the earlier result")
        best, complete = self.climb(executor, workers, best)
        if self.base.measured and best.key:
            best = self.confirmed(executor, best, first)
        return self.end(best, complete)

    def confirmed(self, executor: Executor, best: _Best, first: Outcome) -> _Best:
        """Of many measurements the fastest is fast by luck, too: the best and the model's choice are measured anew, one
        after the other, and only what is better then stays."""
        found = [self.submit(executor, key).result().cost for key in (best.key, (), best.key, ())]
        tuned, self.default = min(found[::2]), min(found[1::2])
        if tuned < self.default:
            return self.better(_Best(best.key, Outcome(tuned, best.outcome.asked)), "measured again")
        return _Best((), Outcome(self.default, first.asked))

    def climb(self, executor: Executor, workers: int, best: _Best) -> tuple[_Best, bool]:
        """Steps from the best until none is left or the time is up."""
        running: dict[Future[Outcome], tuple[str, Key, int]] = {}
        complete = False
        while True:
            while len(running) < workers and not self.is_over():
                step = next(best.steps, None)
                if step is None:
                    break
                running[self.submit(executor, step[1])] = (*step, self.tried)
            if not running:
                complete = not self.is_over()
                break
            # What was found stays, should the processes die (a machine without memory kills them).
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                changed, key, turn = running.pop(future)
                try:
                    outcome = future.result()
                except BrokenExecutor:
                    return best, False
                limit = best.outcome.cost * (NOISE if self.base.measured else 1.0)
                # Of equals the one that was begun first, whichever process is done first.
                if outcome.cost < limit or (outcome.cost == limit and turn < best.turn):
                    best = self.better(_Best(key, outcome, turn), changed)
                else:
                    self.tell(best, "")
        return best, complete

    def is_over(self) -> bool:
        return time.monotonic() - self.started > self.budget

    def submit(self, executor: Executor, key: Key) -> Future[Outcome]:
        self.seen.add(key)
        self.tried += 1
        trial = Trial(self.base.text, self.base.target, self.base.arguments, key, self.base.measured, self.base.forward)
        return executor.submit(run_trial, trial)

    def better(self, best: _Best, changed: str) -> _Best:
        """Writes down a new best, and lists what can be changed about it."""
        best.steps = self.steps(best)
        if best.outcome.cost < self.default and self.path is not None:
            write_entry(self.path, self.entry(best))
        self.tell(best, changed)
        return best

    def tell(self, best: _Best, changed: str) -> None:
        if self.progress is not None:
            seconds = time.monotonic() - self.started
            self.progress(Progress(seconds, self.tried, self.default, best.outcome.cost, changed))

    def steps(self, best: _Best) -> Iterator[tuple[str, Key]]:
        """What is one decision away and was not tried: the next best of each question in turn."""
        asked, made = best.outcome.asked, dict(best.key)
        for rank in range(max((len(options) for options in asked.values()), default=0)):
            for question, options in asked.items():
                if rank >= len(options) or made.get(question, options[0]) == options[rank]:
                    continue
                key = _key({**made, question: options[rank]}, asked)
                if key not in self.seen:
                    yield f"{question}: {value_text(options[rank])}", key

    def earlier(self) -> Key:
        """What an earlier search wrote down for this program."""
        entries = [] if self.path is None else read_entries(self.path)
        found = next((e for e in entries if (e.program, e.target) == (self.key, self.target.name)), None)
        return () if found is None else tuple(sorted(found.decisions.items()))

    def entry(self, best: _Best) -> Entry:
        return Entry(
            self.program.entry, self.target.name, arguments_of(self.program), self.key, self.by,
            self.default, best.outcome.cost, dict(_key(dict(best.key), best.outcome.asked)),
        )  # fmt: skip

    def end(self, best: _Best, complete: bool) -> Tuned:
        improved = best.outcome.cost < self.default
        if self.path is not None and not improved:
            remove_entry(self.path, self.key, self.target.name)
        return Tuned(
            self.program.entry, self.target.name, self.by, self.default, best.outcome.cost,
            dict(_key(dict(best.key), best.outcome.asked)) if improved else {},
            self.tried, time.monotonic() - self.started, complete, self.path if improved else None,
        )  # fmt: skip


def _key(made: Mapping[str, Value], asked: Mapping[str, tuple[Value, ...]]) -> Key:
    """The decisions that make a difference: those asked for, other than the model's."""
    return tuple(sorted((q, v) for q, v in made.items() if q in asked and asked[q][0] != v))


def value_text(value: Value) -> str:
    """A decision for people: ``128 x 256 x 64, A, 2``."""
    if not isinstance(value, tuple):
        return str(value)
    numbers = [str(item) for item in value[:3]]
    return ", ".join([" x ".join(numbers), *map(str, value[3:])])


def spelled(by: str) -> Callable[[float], str]:
    """How a cost is written."""
    return (lambda cost: f"{cost * 1e6:,.1f} us") if by == MEASURED else (lambda cost: f"{cost:,.0f} cycles")
