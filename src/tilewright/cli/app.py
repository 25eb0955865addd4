"""The commands and their options. What each does stands in a module of its own, imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

FILE_HELP = "A Python file with kernels, or program text; FILE:kernel names one of several; - reads text from stdin."
ARGS_HELP = "One for each parameter: 64x128:f32, input.npy, 3, 0.5, true, or name=VALUE. None: the file's arguments()."
TARGET_HELP = "A target by name (see `tilewright targets`), or a .toml file."

File = Annotated[str, typer.Argument(metavar="FILE[:KERNEL]", help=FILE_HELP, show_default=False)]
Arguments = Annotated[list[str] | None, typer.Argument(metavar="[ARGS]...", help=ARGS_HELP, show_default=False)]
TargetName = Annotated[str, typer.Option("--target", "-t", help=TARGET_HELP)]
Seed = Annotated[int, typer.Option(help="Seed of the random inputs.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@app.callback(invoke_without_command=True)
def tilewright(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Compile kernels for machines whose fast memories are managed by software.

    \b
    tilewright run kernel.py 64x128:f32 64x128:f32     run a kernel on random inputs
    tilewright explain kernel.py -t ascend910b         where each tile lives, and why
    tilewright simulate kernel.py -t ascend910b        its cycles, and what it waits for
    tilewright report kernel.py -t ascend910b          all of it on one page to look at
    tilewright tune kernel.py -t ascend910b            search for faster tiles, and keep them
    tilewright compile kernel.py --emit pto -o out     text for the Ascend assembler
    tilewright doctor                                  what this machine has
    """
    if version:
        from tilewright import __version__

        print(f"tilewright {__version__}")
        raise typer.Exit


@app.command()
def run(
    file: File,
    args: Arguments = None,
    check: Annotated[bool, typer.Option("--check", help="Compare every output with the interpreter's.")] = False,
    on: Annotated[
        str, typer.Option(metavar="native|interpreter|emulator", help="What runs it; the emulator executes PTO text.")
    ] = "native",
    target: TargetName = "ascend910b",
    out: Annotated[Path | None, typer.Option(metavar="FILE.npy", help="Store the first output.")] = None,
    seed: Seed = 0,
    repeat: Annotated[int, typer.Option(min=0, help="Run so many times more, and print the median time.")] = 0,
    tolerance: Annotated[
        float | None, typer.Option(help="For --check: the relative difference allowed; by default 2^-16 for f32.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a kernel on this machine.

    Inputs are small random integers unless files are given, so that sums are exact and results can be compared.

    \b
    tilewright run examples/softmax.py                       on the file's own arguments
    tilewright run kernel.py 64x128:f32 64x128:f32 --check   and compare with the interpreter
    tilewright run kernel.py:add a.npy b.npy 64x64:f32 --out sum.npy
    tilewright run kernel.py --on emulator -t ascend950      execute its PTO text
    """
    from tilewright.cli.run import RunOptions, run_kernel

    run_kernel(file, args or [], RunOptions(check, on, target, out, seed, repeat, tolerance, as_json))


@app.command()
def compile(
    file: File,
    args: Arguments = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", help="A target by name, or a .toml file; by default host, and ascend910b for PTO."
        ),
    ] = None,
    emit: Annotated[str, typer.Option(metavar="pto|llvm|tiles|tensor", help="What to write.")] = "tiles",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Where to write; else it is printed.")
    ] = None,
    level: Annotated[int, typer.Option(help="PTO: 3, addresses are ours; 2, the assembler's.")] = 3,
    sync: Annotated[str, typer.Option(metavar="auto|explicit", help="PTO: who orders the pipes of a core.")] = "auto",
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Write the certificate of the placed program, too.")
    ] = None,
) -> None:
    """Compile a kernel and write what comes out.

    `pto` is text for the Ascend assembler with a manifest of launches, `llvm` the code for this CPU, `tiles` the placed
    tile program, `tensor` the program as it was read. Files are written whole or not at all.

    \b
    tilewright compile examples/matmul.py --emit pto -t ascend910b -o build
    tilewright compile kernel.py 64x128:bf16 128x64:bf16 64x64:f32 --emit llvm
    tilewright compile kernel.py --emit tiles -t my_chip.toml
    """
    from tilewright.cli.compile import compile_kernel

    compile_kernel(file, args or [], target, emit, output, level, sync, certificate)


@app.command()
def explain(
    file: File,
    args: Arguments = None,
    target: TargetName = "host",
    tiles: Annotated[
        bool, typer.Option("--tiles", help="How matrix products are cut instead: the tile, its cycles, the runner-up.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Where each tile lives, what moves, what it costs, and why.

    \b
    tilewright explain examples/chained_matmul.py -t ascend910b
    tilewright explain examples/chained_matmul.py -t ascend910b --tiles
    tilewright explain kernel.py 64x128:f32 64x128:f32 -t ascend950 --json
    """
    from tilewright import report
    from tilewright.cli.arguments import build_arguments
    from tilewright.cli.kernels import open_subject
    from tilewright.cli.output import show, show_json
    from tilewright.runtime.tuned import tuned_target
    from tilewright.targets import load_target

    subject = open_subject(file)
    program = subject.program(build_arguments(subject, args or [], 0))
    machine = tuned_target(program, load_target(target))
    say_how = report.explain_tiles if tiles else report.explain
    found = say_how(program, machine, subject.forward)
    if as_json:
        show_json(found.to_json())
    else:
        show(found)


@app.command()
def simulate(
    file: File,
    args: Arguments = None,
    target: TargetName = "ascend910b",
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Write the timeline, for ui.perfetto.dev.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write the page of `tilewright report` as well.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """How many cycles a kernel takes, what it waits for, and how far that is from what the machine could do.

    The cycles are those of a model, made of the target's figures; the machine itself is not needed.

    \b
    tilewright simulate examples/softmax.py -t ascend910b
    tilewright simulate kernel.py 1024x1024:bf16 1024x1024:bf16 1024x1024:f32 --trace timeline.json
    tilewright simulate kernel.py -t my_chip.toml --json
    """
    from tilewright.cli.simulate import simulate_kernel

    simulate_kernel(file, args or [], target, as_json, trace, html)


@app.command()
def report(
    file: File,
    args: Arguments = None,
    target: TargetName = "ascend910b",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE.html", help="By default the kernel's name.")
    ] = None,
) -> None:
    """One page to look at: timeline, memory maps, roofline, the program between passes, and reasons.

    It is one file that needs no network, for any browser.

    \b
    tilewright report examples/softmax.py -t ascend910b -o softmax.html
    tilewright report kernel.py:add 1024x1024:f32 1024x1024:f32 1024x1024:f32 -t my_chip.toml
    """
    from tilewright.cli.report import report_kernel

    report_kernel(file, args or [], target, output)


@app.command()
def tune(
    file: File,
    args: Arguments = None,
    target: TargetName = "ascend910b",
    budget: Annotated[float, typer.Option(metavar="SECONDS", help="How long to search.")] = 20.0,
    executor: Annotated[
        str, typer.Option(metavar="local|threads|dask://HOST:PORT", help="Where candidates are tried.")
    ] = "local",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="By default KERNEL.tune.json beside the file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Search for faster tiles, blocks and pipeline depths than the model chooses, and keep what is found.

    Candidates are simulated; for this machine they are compiled and measured. The result is a file beside the kernel's,
    which every later compile reads and which can be committed. It is written after each improvement.

    \b
    tilewright tune kernel.py:matmul 1024x1024:bf16 1024x1024:bf16 1024x1024:f32 -t ascend910b
    tilewright tune examples/softmax.py -t host --budget 60
    tilewright tune kernel.py -t ascend950 --executor dask://localhost:8786
    """
    from tilewright.cli.tune import TuneOptions, tune_kernel

    tune_kernel(file, args or [], TuneOptions(target, budget, executor, output, as_json))


@app.command()
def opt(
    file: File,
    args: Arguments = None,
    passes: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="These alone, in this order; by default the whole pipeline.")
    ] = None,
    after: Annotated[str | None, typer.Option(metavar="PASS", help="Stop the pipeline after this pass.")] = None,
    print_after: Annotated[
        str | None, typer.Option(metavar="PASS|all", help="Print the program after this pass, or after each.")
    ] = None,
    target: TargetName = "host",
    timing: Annotated[bool, typer.Option("--time", help="Print the time of each pass on standard error.")] = False,
    list_passes: Annotated[bool, typer.Option("--list", help="List the passes, in order, after the program.")] = False,
) -> None:
    """Run passes over a program and print what they make.

    What is printed is program text, which this command reads again.

    \b
    tilewright opt examples/matmul.py -t ascend910b                    the placed program
    tilewright opt examples/matmul.py -t ascend910b --print-after all  after every pass
    tilewright opt program.pl --passes infer_spaces,legalize_moves -t ascend910b
    tilewright opt examples/matmul.py --after flatten_tiles | tilewright opt - --passes infer_spaces
    """
    from tilewright.cli.opt import OptOptions, run_opt

    run_opt(file, args or [], OptOptions(passes, after, print_after, target, timing, list_passes))


@app.command()
def check(
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help="Text of a placed program.", show_default=False)],
    certificate: Annotated[
        Path | None, typer.Argument(metavar="[CERTIFICATE]", help="Its certificate, JSON.", show_default=False)
    ] = None,
    target: TargetName = "ascend910b",
    as_json: AsJson = False,
) -> None:
    """Check a placed program and its certificate, trusting neither.

    Spaces, layouts, edges, sizes, addresses, live ranges, bounds and the order of engines are derived from the program
    alone. Exit code 0: accepted, with what it assumes of its arguments; 1: rejected, with the facts that fail.

    \b
    tilewright compile kernel.py -t ascend910b -o build --certificate build/kernel.cert.json
    tilewright check build/kernel.tiles.py build/kernel.cert.json -t ascend910b
    """
    from tilewright.cli.check import check_program

    raise typer.Exit(check_program(program, certificate, target, as_json))


@app.command()
def validate(
    file: File,
    args: Arguments = None,
    target: TargetName = "ascend910b",
    inputs: Annotated[int, typer.Option(min=1, help="Sets of inputs to try.")] = 2,
    seed: Seed = 0,
) -> None:
    """Run the program after every pass, and compare with what was written.

    Each stage runs in the interpreter on generated inputs; the placed program runs at its addresses in the memory
    machine, and is checked with its certificate. The first pass that changes a result is named, with value and index.

    \b
    tilewright validate examples/softmax.py -t ascend910b
    tilewright validate kernel.py:layer 64x128:f32 128x64:f32 64x64:f32 -t my_chip.toml
    """
    from tilewright.cli.validate import validate_kernel

    validate_kernel(file, args or [], target, inputs, seed)


@app.command()
def targets(
    name: Annotated[str | None, typer.Argument(help="A target by name, or a .toml file.", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """List the machines that kernels can be compiled for, or show one.

    \b
    tilewright targets                 their names
    tilewright targets ascend910b      its memories, the edges between them, its engines
    tilewright targets my_chip.toml    checks a file of your own, too
    """
    from tilewright.cli.targets import list_targets, show_target

    if name is None:
        list_targets(as_json)
    else:
        show_target(name, as_json)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """What this machine and this installation have, what is missing, and how to get it.

    Exit code 1 when kernels cannot be compiled or run here.

    \b
    tilewright doctor
    tilewright doctor --json
    """
    from tilewright.cli.doctor import examine

    raise typer.Exit(examine(as_json))
