"""Where commands write: rich on a terminal, plain text in a pipe, JSON where a program asked for it, files at once."""

from __future__ import annotations

import errno
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tilewright.errors import CommandError, TilewrightError


def is_terminal() -> bool:
    """Whether a person sees what is written to standard output."""
    return sys.stdout.isatty()


def show(report: Any) -> None:
    """A report (an explanation, a table): drawn on a terminal, as plain text in a pipe."""
    if not is_terminal():
        print(str(report).rstrip("\n"))
        return
    from rich.console import Console

    from tilewright.report.tables import Table

    console = Console()
    if isinstance(report, Table):
        from tilewright.report.terminal import table

        console.print(table(report, console.width))
    else:
        console.print(report, highlight=False, markup=False)


def show_code(text: str, language: str = "python") -> None:
    """Program text: coloured on a terminal."""
    if not is_terminal():
        print(text.rstrip("\n"))
        return
    from rich.console import Console
    from rich.syntax import Syntax

    Console().print(Syntax(text.rstrip("\n"), language, theme="ansi_dark", word_wrap=True, background_color="default"))


def show_json(data: Any) -> None:
    """Data for a program."""
    print(json.dumps(data, indent=2))


def say(text: str) -> None:
    """A line for the person at the terminal, out of the way of what is written to standard output."""
    print(text, file=sys.stderr)


def show_error(error: TilewrightError) -> None:
    """An error on standard error; the first line and the carets are set off on a terminal."""
    text = str(error)
    if not sys.stderr.isatty():
        print(text, file=sys.stderr)
        return
    from rich.console import Console
    from rich.text import Text

    first, _, rest = text.partition("\n")
    drawn = Text(first, style="bold red")
    if rest:
        drawn.append("\n" + rest, style="default not bold")
        drawn.highlight_regex(r"(?m)^\s*\| (?P<carets>\s*\^+)$", "bold red")
        drawn.highlight_regex(r"(?m)^ +help: ", "bold green")
    Console(stderr=True).print(drawn, soft_wrap=True)


def write_files(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Writes every file or none: each is written whole beside its place, then all are renamed into place. The folder
    is made. Returns the paths. Raises `CommandError` when something cannot be written, when a name leads out of the
    folder, and when the folder is a symbolic link, behind which may be somebody else's files."""
    for name in files:
        if name in ("", ".", "..") or Path(name).name != name or "\0" in name:
            raise CommandError(f"{name!r} is no name of a file in {folder}", required="a name without a path")
    if folder.is_symlink():
        where = os.path.realpath(folder)
        raise CommandError(f"{folder} is a symbolic link", found=f"it leads to {where}", help=f"name {where} itself")
    staged: list[tuple[str, Path]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in files:
            if (folder / name).is_dir():
                raise IsADirectoryError(errno.EISDIR, f"{name} is a folder")
        for name, text in files.items():
            descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".", suffix=".tmp")
            staged.append((temporary, folder / name))
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(temporary, 0o644)
        for temporary, path in staged:
            os.replace(temporary, path)
    except OSError as error:
        for temporary, _ in staged:
            with suppress(OSError):
                os.unlink(temporary)
        raise CommandError(
            f"cannot write to {folder}", found=error.strerror or str(error), help="name another folder with -o"
        ) from None
    return [path for _, path in staged]


def write_array(path: Path, array: Any) -> None:
    """An array as a .npy file, whole or not at all. Element types that NumPy has no name for are stored as float32."""
    import numpy as np

    if array.dtype.kind == "V":
        array = array.astype(np.float32)
    temporary = ""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
        with os.fdopen(descriptor, "wb") as file:
            np.save(file, array)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        raise CommandError(f"cannot write {path}", found=error.strerror or str(error)) from None
