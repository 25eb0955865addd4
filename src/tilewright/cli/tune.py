"""``tilewright tune``: a search for better decisions than the model's, with what it has found so far."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from os import cpu_count
from pathlib import Path
from typing import Any

from tilewright.cli.arguments import build_arguments
from tilewright.cli.kernels import open_subject
from tilewright.cli.output import say, show_json
from tilewright.errors import CommandError
from tilewright.runtime.tune import MEASURED, SIMULATED, Progress, spelled, tune
from tilewright.targets import load_target

DASK = "dask://"
QUIET = 2.0
"""Seconds without a word, at most, while trials end."""

PATIENCE = "5s"
"""How long a Dask scheduler may take to answer."""


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """The options of the command; see its help."""

    target: str
    budget: float
    executor: str
    output: Path | None
    as_json: bool


def tune_kernel(file: str, specs: Sequence[str], options: TuneOptions) -> None:
    """Searches, and prints what was found. Raises `CommandError` for an executor that there is not, and what `tune`
    raises."""
    machine = load_target(options.target)
    subject = open_subject(file)
    arguments = build_arguments(subject, specs, 0)
    names = [parameter.name for parameter in subject.parameters]
    show = spelled(MEASURED if machine.llvm_cpu is not None else SIMULATED)

    told = -QUIET

    def progress(now: Progress) -> None:
        nonlocal told
        if now.changed or now.tried == 1 or now.seconds - told > QUIET:
            told = now.seconds
            change = now.changed or ("the model's choice" if now.tried == 1 else "")
            say(f"{now.seconds:6.1f} s {now.tried:5} tried  {show(now.best):>18}  {change}".rstrip())

    with executor_called(options.executor) as executor:
        found = tune(
            subject.program(arguments), machine, dict(zip(names, arguments, strict=False)),
            budget=options.budget, executor=executor, path=options.output, progress=progress,
        )  # fmt: skip
    if options.as_json:
        show_json({**asdict(found), "path": None if found.path is None else str(found.path)})
        return
    print(found)
    if found.path is not None:
        say(f"wrote {found.path}; commit it with the kernel")


@contextmanager
def executor_called(name: str) -> Generator[Executor | None, None, None]:
    """The executor of that name; None for processes of the search's own."""
    if name == "local":
        yield None
    elif name == "threads":
        with ThreadPoolExecutor(cpu_count()) as threads:
            yield threads
    elif name.startswith(DASK):
        with _dask(name.removeprefix(DASK)) as executor:
            yield executor
    else:
        raise CommandError(
            f"there is no executor {name!r}",
            required="local, threads, or dask://HOST:PORT",
            help="tilewright tune --help",
        )


@contextmanager
def _dask(address: str) -> Generator[Any, None, None]:
    """The workers of a Dask cluster that runs already; they must have this Tilewright."""
    try:
        from distributed import Client  # pyright: ignore[reportMissingImports, reportUnknownVariableType]
    except ImportError:
        raise CommandError("Dask is not installed", help="pip install 'dask[distributed]'") from None
    try:
        client: Any = Client(f"tcp://{address}", timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise CommandError(f"there is no Dask scheduler at {address}", found=str(error)) from None
    try:
        yield client.get_executor()
    finally:
        client.close()
