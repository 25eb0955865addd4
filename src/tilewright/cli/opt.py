"""``tilewright opt``: passes over a program, and the program between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from tilewright.cli.arguments import build_arguments
from tilewright.cli.kernels import loops_in, open_subject, read_spec
from tilewright.cli.output import say, show_code
from tilewright.compiler import LOOP_PASSES, PASSES, lower, run_loop_passes, run_passes
from tilewright.errors import CommandError
from tilewright.ir.function import Program
from tilewright.ir.loop_level import LoopFunction
from tilewright.runtime.tuned import tuned_target
from tilewright.targets import load_target


@dataclass(frozen=True, slots=True)
class OptOptions:
    """The options of the command; see its help."""

    passes: str | None
    after: str | None
    print_after: str | None
    target: str
    timing: bool
    list_passes: bool


def run_opt(file: str, specs: Sequence[str], options: OptOptions) -> None:
    """Runs the passes and prints. Raises `OperandError` for a pass that there is not, and what the passes raise."""
    text = read_spec(file)
    loops = loops_in(file, text)
    if loops is not None:
        _run_on_loops(loops, options)
        return
    target = load_target(options.target)
    if options.passes is not None and options.after is not None:
        raise CommandError("--passes and --after exclude each other", help="name the passes, or where to stop")
    subject = open_subject(file, text)
    program = subject.program(build_arguments(subject, specs, 0))
    target = tuned_target(program, target)
    wanted = options.print_after
    if wanted not in (None, "all", "frontend", *PASSES):
        lower(program, target, after=wanted)  # says which passes there are
    printed: list[str] = []

    def observe(name: str, after: Program, seconds: float) -> None:
        if wanted in (name, "all"):
            printed.append(name)
            print(f"# after {name}")
            show_code(str(after))
        if options.timing:
            say(f"{name:<24}{seconds * 1e3:>9.2f} ms")

    if options.passes is None:
        program = lower(program, target, after=options.after, forward=subject.forward, observe=observe)
    else:
        for name in [item.strip() for item in options.passes.split(",") if item.strip()]:
            started = perf_counter()
            program = run_passes(program, target, [name])
            observe(name, program, perf_counter() - started)
    if wanted is None:
        show_code(str(program))
    elif not printed:
        raise CommandError(f"{wanted} did not run", found=options.passes or f"--after {options.after}")
    if options.list_passes:
        say("passes: " + ", ".join(PASSES))


def _run_on_loops(function: LoopFunction, options: OptOptions) -> None:
    """The passes of the loop level: the named ones, in the order given; without names, the function as it was read."""
    if options.after is not None:
        raise CommandError("--after is for kernels: loops have no pipeline", help="name the passes with --passes")
    names = [item.strip() for item in (options.passes or "").split(",") if item.strip()]
    wanted, printed = options.print_after, list[str]()

    def observe(name: str, after: LoopFunction, seconds: float) -> None:
        if wanted in (name, "all"):
            printed.append(name)
            print(f"# after {name}")
            show_code(str(after))
        if options.timing:
            say(f"{name:<24}{seconds * 1e3:>9.2f} ms")

    function = run_loop_passes(function, names, observe)
    if wanted is None:
        show_code(str(function))
    elif not printed:
        raise CommandError(f"{wanted} did not run", found=options.passes or "no passes")
    if options.list_passes:
        say("passes: " + ", ".join(LOOP_PASSES))
