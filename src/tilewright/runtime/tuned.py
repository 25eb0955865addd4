"""Results of tuning: a file beside the kernel's own, read whenever the kernel is compiled.

`kernel.py` has `kernel.tune.json`. It is text in a fixed order, made to be committed: one entry for each program (a
kernel for some shapes and element types) and machine, with the decisions, what they brought, and how that was found
out. An entry is known by a hash of the program as it was read, so that it is passed over once the kernel says something
else. A file is written whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from tilewright.errors import CommandError
from tilewright.ir.function import Program
from tilewright.ir.types import TensorType
from tilewright.targets import Target
from tilewright.targets.decisions import Value
from tilewright.text import print_program

SUFFIX = ".tune.json"
FORMAT = 1
HELP = "delete the file, or run `tilewright tune` again"


@dataclass(frozen=True, slots=True)
class Entry:
    """What was found for one program on one machine. Costs are cycles where simulated, seconds where measured."""

    kernel: str
    target: str
    arguments: str
    """for people: what the program takes"""
    program: str
    """hash of the program as it was read"""
    by: str
    """``simulated cycles`` or ``measured seconds``"""
    default: float
    tuned: float
    decisions: Mapping[str, Value]


def sidecar(program: Program) -> Path | None:
    """The file of results for a program; None where the program comes from no file."""
    source = program.main.span.file
    if not source or source.startswith("<") or not os.path.isfile(source):
        return None
    return Path(source).with_suffix(SUFFIX)


def tuned_target(program: Program, target: Target) -> Target:
    """`target` with what tuning found for `program` on it; `target` itself where nothing was found, or decisions are
    in it already. Raises `CommandError` for a file of results that is none."""
    path = sidecar(program)
    if path is None or target.decisions.matter:
        return target
    try:
        status = path.stat()
    except OSError:
        return target
    wanted = [entry for entry in _entries(path, status.st_mtime_ns, status.st_size) if entry.target == target.name]
    if not wanted:
        return target
    key = program_key(program)
    found = next((entry for entry in wanted if entry.program == key), None)
    return target if found is None else target.with_decisions(found.decisions)


def program_key(program: Program) -> str:
    """What a program is known by: a hash of its text."""
    return hashlib.sha256(print_program(program).encode()).hexdigest()[:32]


def arguments_of(program: Program) -> str:
    """``a: bf16[1024,1024], b: ...``"""
    texts: list[str] = []
    for param in program.main.params:
        kind = param.value.type
        shape = f"[{','.join(map(str, kind.shape))}]" if isinstance(kind, TensorType) else ""
        dtype = getattr(kind, "dtype", None)
        texts.append(f"{param.value.name}: {dtype.short if dtype is not None else kind}{shape}")
    return ", ".join(texts)


# --- the file -----------------------------------------------------------------------------------------------------
def read_entries(path: Path) -> list[Entry]:
    """All entries of a file; none where there is no file. Raises `CommandError` for what is no file of results."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read", found=str(error), help=HELP) from None
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path} is no JSON", found=str(error), help=HELP) from None
    if not isinstance(data, dict) or cast("dict[str, Any]", data).get("format") != FORMAT:
        raise CommandError(f"{path} has no results of this version", required=f'"format": {FORMAT}', help=HELP)
    listed: Any = cast("dict[str, Any]", data).get("entries")
    if not isinstance(listed, list):
        raise CommandError(f"{path} has no list of entries", help=HELP)
    return [_entry(path, item) for item in cast("list[Any]", listed)]


@lru_cache(maxsize=64)
def _entries(path: Path, modified: int, size: int) -> list[Entry]:
    """The entries of a file that has not changed since."""
    return read_entries(path)


def _entry(path: Path, item: Any) -> Entry:
    given: dict[str, Any] = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
    texts = [given.get(name) for name in ("kernel", "target", "arguments", "program", "by")]
    costs = [given.get(name) for name in ("default", "tuned")]
    decisions: Any = given.get("decisions")
    right = (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(cost, int | float) and not isinstance(cost, bool) for cost in costs)
        and isinstance(decisions, dict)
    )
    made = {name: _value(value) for name, value in cast("dict[str, Any]", decisions).items()} if right else {}
    if not right or None in made.values():
        raise CommandError(f"{path} has an entry that is none", found=json.dumps(item)[:200], help=HELP)
    return Entry(
        kernel=given["kernel"], target=given["target"], arguments=given["arguments"], program=given["program"],
        by=given["by"], default=given["default"], tuned=given["tuned"], decisions=cast("dict[str, Value]", made),
    )  # fmt: skip


def _value(value: Any) -> Value | None:
    """A decision as it is compared: lists as tuples; None for what is no decision."""
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return tuple(items) if all(isinstance(item, int | float | str) for item in items) else None
    return value if isinstance(value, int | float | str) else None


def write_entry(path: Path, entry: Entry) -> None:
    """Puts an entry into the file, in the place of an older one for the same program and machine. Raises `CommandError`
    where it cannot be written, or is no file of results."""
    _store(path, [*_others(path, entry.program, entry.target), entry])


def remove_entry(path: Path, program: str, target: str) -> None:
    """Takes an entry out of the file, if it is there; the file goes with its last one."""
    kept = _others(path, program, target)
    if kept:
        _store(path, kept)
    else:
        path.unlink(missing_ok=True)


def _others(path: Path, program: str, target: str) -> list[Entry]:
    return [entry for entry in read_entries(path) if (entry.program, entry.target) != (program, target)]


def _store(path: Path, entries: list[Entry]) -> None:
    """Writes the file, whole or not at all."""
    order = sorted(entries, key=lambda each: (each.kernel, each.target, each.arguments, each.program))
    text = json.dumps({"format": FORMAT, "entries": [asdict(entry) for entry in order]}, indent=2) + "\n"
    temporary = ""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        raise CommandError(f"cannot write {path}", found=error.strerror or str(error)) from None
