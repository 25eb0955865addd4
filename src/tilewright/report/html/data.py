"""What the page shows, as one value that becomes JSON.

Everything is read off what other parts say: the explanation, the plan of the tiles, the simulation, the programs after
each pass. Nothing is worked out here but sums.
"""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tilewright.compiler import PASSES, lower
from tilewright.errors import UnsupportedError
from tilewright.execute.simulation import SimulationResult
from tilewright.execute.simulator import simulate
from tilewright.ir.function import Program
from tilewright.report.explain import explain
from tilewright.report.html.roofline import roofline
from tilewright.report.html.timeline import timeline
from tilewright.report.model import Explanation
from tilewright.report.render import short_path
from tilewright.report.tiles import explain_tiles
from tilewright.targets import Target

MOST_TEXT = 600_000
"""Characters of one program's text that the page takes with it."""

MOST_LINES = 400
"""Lines of a source file around a kernel."""


def page_data(
    program: Program, target: Target, arguments: Mapping[str, Any] | None = None, forward: bool = True
) -> dict[str, Any]:
    """Everything on the page about `program` on `target`. `arguments`: as for `simulate`; `forward`: as for `lower`.
    Raises what the passes raise. A program too long to be simulated gets a page without cycles, which says so."""
    texts: dict[str, str] = {}
    final = lower(program, target, forward=forward, observe=lambda name, after, _: texts.__setitem__(name, str(after)))
    found = explain(program, target, forward)
    tiles = explain_tiles(program, target, forward)
    page: dict[str, Any] = {
        "program": program.entry,
        "target": target.name,
        "description": target.description,
        "ddr": {"in": found.ddr_in, "out": found.ddr_out},
        "functions": [_function(function) for function in found.to_json()["functions"]],
        "workspaces": [asdict(space) for space in found.workspaces],
        "stages": _stages(texts),
        "tiles": [asdict(function) for function in tiles.functions],
        "choices": list(found.choices),
        "hints": list(found.hints),
        "notes": list(found.notes),
        "hands": [asdict(row) for row in found.hands],
        "files": _files(found),
    }
    try:
        result = simulate(final, target, arguments)
    except UnsupportedError as error:
        return page | {"cycles": None, "unknown": str(error)}
    return page | {
        "cycles": _cycles(result),
        "timeline": timeline(result, target),
        "roofline": roofline(result, target),
    }


def _cycles(result: SimulationResult) -> dict[str, Any]:
    """The simulation without its timeline; files by the names that the page knows them by."""
    found = result.to_json()
    for step in found["critical_path"]:
        step["file"] = short_path(step["file"])
    return found


def _function(function: dict[str, Any]) -> dict[str, Any]:
    function["file"] = short_path(function["file"])
    for tile in function["tiles"]:
        tile["file"] = short_path(tile["file"])
    return function


def _stages(texts: dict[str, str]) -> list[dict[str, Any]]:
    """The program after each pass, in order. One that changed nothing refers to the one before it."""
    rows: list[dict[str, Any]] = []
    for name, text in texts.items():
        same = bool(rows) and texts[rows[-1]["name"]] == text
        row: dict[str, Any] = {"name": name, "changed": not same}
        if not same:
            row["text"] = _cut(text)
        rows.append(row)
    assert all(row["name"] == "frontend" or row["name"] in PASSES for row in rows)
    return rows


def _cut(text: str) -> str:
    if len(text) <= MOST_TEXT:
        return text
    kept = text[:MOST_TEXT].rpartition("\n")[0]
    left = text.count("\n") - kept.count("\n")
    return f"{kept}\n# ... {left:,} more lines: `tilewright opt --print-after` has them all\n"


def _files(found: Explanation) -> dict[str, dict[str, Any]]:
    """The lines of source that kernels were written on, by file, with some around them."""
    wanted: dict[str, set[int]] = {}
    for function in found.functions:
        for file, line in [(function.file, function.line), *((tile.file, tile.line) for tile in function.tiles)]:
            if line:
                wanted.setdefault(file, set()).add(line)
    files: dict[str, dict[str, Any]] = {}
    for file, lines in wanted.items():
        text = linecache.getlines(file)
        first, last = _head(text, min(lines)), min(len(text), max(lines) + 2)
        shown = [line.rstrip("\n") for line in text[first - 1 : min(last, first - 1 + MOST_LINES)]]
        if shown:
            files[short_path(file)] = {"first": first, "lines": shown}
    return files


def _head(text: list[str], line: int) -> int:
    """Where the function around `line` begins, its decorators included; a few lines above where there is none."""
    start = next((at for at in range(line, 0, -1) if text[at - 1 : at] and text[at - 1].lstrip().startswith("def ")), 0)
    if not start:
        return max(1, line - 3)
    while start > 1 and text[start - 2].lstrip().startswith("@"):
        start -= 1
    return start
