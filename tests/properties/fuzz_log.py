"""What random programs gave, one line of JSON for each, so that a run that was stopped can go on:

    {"seed": 100000, "quick": false, "level": "tile", "target": "ascend910b", "facts": ["taken"],
     "operations": ["load", "store"], "failure": null}

A line that was cut off while it was written is as if it were not there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path


@dataclass
class Found:
    """What came of one seed."""

    seed: int
    level: str
    target: str
    facts: set[str] = field(default_factory=set[str])
    operations: set[str] = field(default_factory=set[str])
    failure: str | None = None


def line_of(found: Found, *, quick: bool) -> str:
    """The line of a seed. `quick`: only its last program was judged."""
    sets = {"facts": sorted(found.facts), "operations": sorted(found.operations)}
    return json.dumps({"seed": found.seed, "quick": quick, **vars(found), **sets}) + "\n"


def opened(path: Path) -> TextIOWrapper:
    """The log, to be written on at its end; after each line it is on the disk."""
    file = path.open("a+b")
    if file.tell():
        file.seek(-1, 2)
        if file.read() != b"\n":
            file.write(b"\n")
    return TextIOWrapper(file, encoding="utf-8", line_buffering=True)


def read(path: Path, *, quick: bool) -> dict[int, Found]:
    """What the log says of each seed. One that was judged quickly counts only where `quick` is wanted."""
    known: dict[int, Found] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        try:
            if quick or not entry["quick"]:
                facts, operations = set[str](entry["facts"]), set[str](entry["operations"])
                found = Found(entry["seed"], entry["level"], entry["target"], facts, operations, entry["failure"])
                known[found.seed] = found
        except (KeyError, TypeError):
            what = "no line of a log of fuzz.py; give the file that --log wrote"
            raise SystemExit(f"{path}, line {number}: {what}") from None
    return known
