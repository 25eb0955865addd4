"""Which operation has a result for which element types, on which backend: the table of the interface, what is refused,
and the section of docs/ops.md that says so."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from op_cases import CASES, Case, base_name

from tilewright.ir.dtypes import BY_NAME, DType
from tilewright.ir.op import Level

HERE = Path(__file__).parent
BACKENDS = ("native", "ascend910b", "ascend950")
MARK = "## Coverage"


@dataclass(frozen=True)
class Cell:
    """One operation and element type: the cases that try it, at the levels at which the interface has it."""

    name: str
    dtype: DType
    runs: tuple[tuple[str, Case, Level], ...]


@cache
def table() -> dict[str, Any]:
    return tomllib.loads((HERE / "table.toml").read_text())


@cache
def refusals() -> tuple[dict[str, Any], ...]:
    return tuple(tomllib.loads((HERE.parent / "unsupported.toml").read_text())["entry"])


def names(level: Level) -> dict[str, tuple[DType, ...]]:
    """The operations of a level with their element types."""
    found: dict[str, tuple[DType, ...]] = {}
    for group, listed in table()[level.value].items():
        kinds = tuple(BY_NAME[name] for name in table()["dtypes"][group])
        found.update(dict.fromkeys(listed, kinds))
    return found


def cases_of(name: str, level: Level, dtype: DType) -> Iterator[tuple[str, Case, Level]]:
    """The cases of the operations that do what `name` asks."""
    for spelled in table()["stands_for"].get(name, [name]):
        for key, case in CASES.items():
            if base_name(key) == spelled and level in case.levels and dtype in case.dtypes:
                yield key, case, level


@cache
def cells() -> tuple[Cell, ...]:
    """Every cell of the table, in its order."""
    found: dict[tuple[str, DType], list[tuple[str, Case, Level]]] = {}
    for level in (Level.TENSOR, Level.TILE):
        for name, dtypes in names(level).items():
            for dtype in dtypes:
                found.setdefault((name, dtype), []).extend(cases_of(name, level, dtype))
    return tuple(Cell(name, dtype, tuple(runs)) for (name, dtype), runs in found.items())


def refusal(name: str, dtype: DType, backend: str) -> dict[str, Any] | None:
    """The entry that says that a backend has no result."""
    for entry in refusals():
        if (
            (name in entry["ops"] or entry["ops"] == ["all"])
            and dtype.name in entry["dtypes"]
            and backend in entry["backends"]
        ):
            return entry
    return None


def section() -> str:
    """The coverage as a table: a number stands for a clause below it."""
    clauses = list(dict.fromkeys(entry["clause"] for entry in refusals()))
    lines = [
        f"{MARK}\n",
        "Each operation, element type and backend is run by the tests against NumPy, with tails; `all` stands for all",
        "element types of the row. Where a type is left out, the number names the rule that forbids it.\n",
        "| operation | element types | native | 910B | 950 |",
        "| --- | --- | --- | --- | --- |",
    ]
    rows: dict[str, list[DType]] = {}
    for cell in cells():
        rows.setdefault(cell.name, []).append(cell.dtype)
    for name, dtypes in sorted(rows.items()):
        shown = ", ".join(dtype.name for dtype in dtypes)
        lines.append(f"| `{name}` | {shown} | " + " | ".join(_cell(name, dtypes, b, clauses) for b in BACKENDS) + " |")
    lines += ["", *(f"{number}. {clause}" for number, clause in enumerate(clauses, 1))]
    return "\n".join(lines) + "\n"


def _cell(name: str, dtypes: list[DType], backend: str, clauses: list[str]) -> str:
    lacking: dict[int, list[str]] = {}
    for dtype in dtypes:
        entry = refusal(name, dtype, backend)
        if entry is not None:
            lacking.setdefault(clauses.index(entry["clause"]) + 1, []).append(dtype.name)
    if not lacking:
        return "all"
    return "; ".join(f"not {', '.join(kinds)} ({number})" for number, kinds in lacking.items())
