"""Random programs until one goes wrong:  python tests/properties/fuzz.py 20000      (or: make fuzz N=20000)

Each program is judged on one target, in turn: the interpreter after every pass that changes it, the memory machine, the
certificate's checker, the emulated assembler text, and native code for this processor. A quarter get memories in which
they just fit; one in ten has its text read back after those passes.
Prints progress, what was drawn, and how to make each failure small; ends with an error when anything went wrong, or
when too few of the programs had what makes programs hard. `--log FILE` writes down each seed that was judged; with
`--resume FILE` as well, a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing import Pool
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from meaning import outcome  # noqa: E402
from properties.fuzz_log import Found, line_of, opened, read  # noqa: E402
from properties.judges import (  # noqa: E402
    DECLINED,
    TARGETS,
    has_masks,
    judge_certificate,
    judge_machine,
    judge_native,
    judge_passes,
    judge_pto,
)
from properties.strategies import Generated, Seeded, generate  # noqa: E402

from tilewright.compiler import lower  # noqa: E402
from tilewright.errors import TilewrightError, VerifyError  # noqa: E402
from tilewright.ir.function import Program  # noqa: E402
from tilewright.ir.nodes import For, If, Let, LoopKind, Scope  # noqa: E402
from tilewright.ir.op import Level, Op, registry  # noqa: E402
from tilewright.ir.types import TileType  # noqa: E402
from tilewright.ir.verify import verify  # noqa: E402
from tilewright.targets import Target, load_target  # noqa: E402

LEAST = {"two or more carries": 30, "branches": 20, "tails": 30, "nearly full": 15}
"""Percent of the programs that must have it, or the run has shown too little."""
QUICK = "TILEWRIGHT_FUZZ_QUICK"
"""Set in the environment: only the last program is judged, by the machine and the checker (option --quick)."""
TEXTS = 10
"""One program in so many is read back from its text after each pass."""
OPERATION = 100
"""Each operation must be in one of so many programs."""


def facts_of(program: Program) -> Iterator[str]:
    """What the program that was drawn has."""
    statements = list(program.main.walk())
    loops = [stmt for stmt in statements if isinstance(stmt, For)]
    if any(len(loop.iter_args) >= 2 for loop in loops):
        yield "two or more carries"
    if any(isinstance(stmt, If) for stmt in statements):
        yield "branches"
    if any(loop.kind is LoopKind.PIPELINE for loop in loops):
        yield "pipelines"
    if any(loop.kind is LoopKind.PARALLEL for loop in loops):
        yield "work items"
    if sum(isinstance(stmt, Scope) for stmt in statements) > 1:
        yield "several sections"


def facts_of_placed(program: Program, target: Target) -> Iterator[str]:
    """What the program became."""
    tops: dict[str, int] = {}
    for function in program.functions:
        for stmt in function.walk():
            for value in (*stmt.block_args(), *stmt.defs()):
                kind = value.type
                if not isinstance(kind, TileType) or kind.space is None:
                    continue
                if kind.valid != kind.shape:
                    yield "tails"
                if kind.memref is not None and kind.memref.addr is not None:
                    top = kind.memref.addr + (kind.memref.nbytes or 0)
                    tops[kind.space.value] = max(tops.get(kind.space.value, 0), top)
    for space in target.spaces:
        if tops.get(space.value, 0) >= 0.9 * target.capacity(space):
            yield "nearly full"


def just_enough(program: Program, target: Target) -> Target:
    """The target with memories that hold the program and hardly more."""
    sizes: dict[str, int] = {}
    placed = lower(program, target, check=False)
    for function in placed.functions:
        for stmt in function.walk():
            for value in (*stmt.block_args(), *stmt.defs()):
                kind = value.type
                if (
                    isinstance(kind, TileType)
                    and kind.space is not None
                    and kind.memref
                    and kind.memref.addr is not None
                ):
                    top = -(-(kind.memref.addr + (kind.memref.nbytes or 0)) // 512) * 512
                    sizes[kind.space.value] = max(sizes.get(kind.space.value, 0), top)
    shared: dict[str, int] = {}
    for role, size in sizes.items():
        name = next(target.memory(space).name for space in target.spaces if space.value == role)
        shared[name] = max(shared.get(name, 0), size)
    roles = {role: next(s for s in target.spaces if s.value == role) for role in sizes}
    return target.with_capacity(**{role: shared[target.memory(space).name] for role, space in roles.items()})


def level_of(seed: int) -> Level:
    """The level of a seed's program."""
    return (Level.TILE, Level.TENSOR)[seed % 2]


def size_of(seed: int) -> int:
    """Statements that the program of a seed has, about."""
    return 6 + seed % 7


def judge(seed: int) -> Found:
    """One program on one target."""
    level = level_of(seed)
    target = load_target(TARGETS[seed // 2 % len(TARGETS)])
    found = Found(seed, level.value, target.name)
    drawn: Generated | None = None
    try:
        drawn = generate(Seeded(seed), level, size_of(seed))
        verify(drawn.program)
        found.facts.update(facts_of(drawn.program))
        found.operations = {
            type(stmt.value).name
            for stmt in drawn.program.main.walk()
            if isinstance(stmt, Let) and isinstance(stmt.value, Op)
        }
        _judge(drawn, target, found)
    except VerifyError as error:
        if drawn is None or _is_sound(drawn.program):
            found.failure = f"VerifyError: {error}"
        else:
            found.facts.add("drawn wrongly")
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = str(error) if isinstance(error, TilewrightError | AssertionError) else traceback.format_exc(limit=-6)
        found.failure = f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}: {text}"
    return found


def _is_sound(program: Program) -> bool:
    """Whether what was drawn is a program at all: what the generator does wrong is no finding."""
    try:
        verify(program)
    except VerifyError:
        return False
    return True


def _judge(drawn: Generated, target: Target, found: Found) -> None:
    arguments = drawn.arguments()
    wanted = outcome(drawn.program, arguments)
    try:
        if found.seed // 8 % 4 == 0:
            target = just_enough(drawn.program, target)
        quick = bool(os.environ.get(QUICK))
        if quick:
            placed = lower(drawn.program, target)
        else:
            text = found.seed // 16 % TEXTS == 0
            placed = judge_passes(drawn.program, target, arguments, wanted, text=text)
            found.facts.update(("text read back",) if text else ())
        found.facts.update(facts_of_placed(placed, target))
        judge_machine(placed, target, arguments, wanted, found.seed)
        judge_certificate(placed, target)
        if target.pto_arch is not None and not quick and not has_masks(drawn.program):
            judge_pto(placed, target, arguments, wanted)
        found.facts.add("taken")
    except DECLINED:
        found.facts.add("declined")
    if found.seed % 4 < 2 and not os.environ.get(QUICK):
        try:
            judge_native(drawn.program, arguments, wanted)
            found.facts.add("native")
        except DECLINED:
            found.facts.add("declined by native code")


@dataclass
class Totals:
    """What came of all seeds so far."""

    done: int = 0
    facts: Counter[str] = field(default_factory=Counter[str])
    operations: Counter[str] = field(default_factory=Counter[str])
    failures: list[Found] = field(default_factory=list[Found])

    def add(self, found: Found) -> None:
        self.done += 1
        self.facts.update(found.facts)
        self.operations.update(found.operations)
        if found.failure is not None:
            self.failures.append(found)
            print(f"\n{found.level} {found.target} seed {found.seed}: {found.failure[:600]}", flush=True)


def histogram(totals: Totals) -> list[str]:
    """What was drawn, printed; returns what was too little."""
    count, facts, operations = max(1, totals.done), totals.facts, totals.operations
    print(f"\n{count:,} programs")
    for fact, number in facts.most_common():
        print(f"  {fact:<24}{number:>8,}{100 * number / count:>7.1f} %")
    rare = sorted((operations[cls.name], cls.name) for cls in dict.fromkeys(registry().values()))
    print("  rarest operations: " + ", ".join(f"{name} {number}" for number, name in rare[:8]))
    short = [
        f"{fact}: {100 * facts[fact] / count:.1f} %"
        for fact, least in LEAST.items()
        if facts[fact] < least * count / 100
    ]
    return short + [f"{name}: {number} times" for number, name in rare if number * OPERATION < count]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, help="how many programs")
    parser.add_argument("--start", type=int, default=100_000, help="the first seed")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="judge what the last pass gives, and nothing else")
    parser.add_argument("--first", action="store_true", help="stop at the first failure")
    parser.add_argument("--seconds", type=float, default=0, help="stop after so long")
    parser.add_argument("--log", type=Path, help="a file to which each seed that is judged is added, and what it gave")
    parser.add_argument("--resume", type=Path, help="such a file: what it lists is counted and not judged again")
    options = parser.parse_args()
    if options.quick:
        os.environ[QUICK] = "1"
    totals, begun = Totals(), time.monotonic()
    try:
        _run(options, totals, begun)
    except KeyboardInterrupt:
        print("\nstopped")
    short = histogram(totals)
    for what in short:
        print(f"too little: {what}")
    for failed in totals.failures:
        case = f"{failed.level} {failed.target} {failed.seed} {size_of(failed.seed)}"
        print(f"make it small: python tests/properties/shrink.py {case}")
    print(f"{len(totals.failures)} failures in {totals.done:,} programs, {time.monotonic() - begun:,.0f} s")
    return 1 if totals.failures or short else 0


def _run(options: argparse.Namespace, totals: Totals, begun: float) -> None:
    """Judges the seeds; those that the log to resume lists are counted as it says."""
    known = read(options.resume, quick=options.quick) if options.resume else {}
    seeds = range(options.start, options.start + options.count)
    for seed in seeds:
        if seed in known:
            totals.add(known[seed])
    told, new = begun, totals.done
    with ExitStack() as stack:
        log = stack.enter_context(opened(options.log)) if options.log else None
        pool = stack.enter_context(Pool(options.workers, maxtasksperchild=200))
        for found in pool.imap_unordered(judge, [seed for seed in seeds if seed not in known], chunksize=4):
            totals.add(found)
            if log is not None:
                log.write(line_of(found, quick=options.quick))
            if time.monotonic() - told > 5 or totals.done == options.count:
                told = time.monotonic()
                _progress(totals.done, options.count, (totals.done - new) / (told - begun), len(totals.failures))
            if options.first and totals.failures:
                break
            if options.seconds and time.monotonic() - begun > options.seconds:
                break


def _progress(done: int, count: int, rate: float, failures: int) -> None:
    line = f"{done:,} of {count:,} programs, {rate:.1f} a second, {failures} failures"
    print(f"\r{line}", end="", flush=True) if sys.stdout.isatty() else print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
