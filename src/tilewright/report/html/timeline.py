"""The timeline of a simulation for the page: compact, because there may be tens of thousands of statements.

Cores that do the same in every launch are one row of the page. Statements are arrays of numbers beside each other; a
number of a statement leads to what is said about it once.
"""

from __future__ import annotations

from typing import Any

from tilewright.execute.instructions import Instruction
from tilewright.execute.schedule import Lane
from tilewright.execute.simulation import Played, SimulationResult
from tilewright.execute.tally import critical
from tilewright.report.render import short_path
from tilewright.targets import Target

MOST_SLICES = 40_000
"""Statements that the page draws, all rows together."""

Row = tuple[str, tuple[int, ...]]
"""A kind of core, and those of its cores that do the same in every launch."""


def timeline(result: SimulationResult, target: Target) -> dict[str, Any]:
    """Launches, engines, statements, and for each row of cores what runs when. Cycles, to a hundredth."""
    drawing, order = _Drawing(result), list(target.engines)
    rows = [drawing.row(row) for row in rows_of(result.played)]
    total = sum(len(lane.blocks) * len(lane.stream.steps) for item in result.played for lane in item.lanes)
    return {
        "cycles": result.cycles,
        "engines": sorted(drawing.engines, key=lambda name: (order.index(drawing.engines[name]), name)),
        "launches": [
            {
                "name": launch.function,
                "core": launch.core,
                "blocks": launch.blocks,
                "start": launch.start,
                "cycles": launch.cycles,
            }
            for launch in result.launches
        ],
        "statements": drawing.statements,
        "rows": rows,
        "executions": total,
        "left_out": drawing.left_out,
    }


def rows_of(played: tuple[Played, ...]) -> list[Row]:
    """The rows: cores are apart where one launch has them do different things."""
    alike: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for number, item in enumerate(played):
        for index, lane in enumerate(item.lanes):
            for block in lane.blocks:
                alike.setdefault((item.code.items.place, block), []).append((number, index))
    rows: dict[tuple[str, tuple[tuple[int, int], ...]], list[int]] = {}
    for (place, block), lanes in sorted(alike.items()):
        rows.setdefault((place, tuple(lanes)), []).append(block)
    return [(place, tuple(blocks)) for (place, _), blocks in rows.items()]


class _Drawing:
    def __init__(self, result: SimulationResult) -> None:
        self.result = result
        self.statements: list[dict[str, Any]] = []
        self.numbers: dict[Instruction, int] = {}
        self.engines: dict[str, str] = {}
        """the target's engine of each queue"""
        self.room = MOST_SLICES
        self.left_out = 0
        self.critical = {id(item): critical(item) for item in result.played}

    def row(self, row: Row) -> dict[str, Any]:
        """One row of cores: statement, start, end, the entry that let it start, and whether it is critical."""
        place, blocks = row
        columns: dict[str, list[Any]] = {name: [] for name in ("what", "start", "end", "cause", "critical", "slowed")}
        for item in self.result.played:
            if item.code.items.place != place:
                continue
            lane = next((lane for lane in item.lanes if blocks[0] in lane.blocks), None)
            if lane is not None:
                self._lane(item, lane, columns)
        return {"core": _named(place, blocks), "cores": len(blocks), **columns}

    def _lane(self, item: Played, lane: Lane, columns: dict[str, list[Any]]) -> None:
        slowest, chain = self.critical[id(item)]
        marked = set(chain) if lane is slowest else set[int]()
        at: dict[int, int] = {}
        for entry, step in enumerate(lane.stream.steps):
            start, end = lane.starts[entry], lane.ends[entry]
            if end <= start:
                continue
            if self.room <= 0:
                self.left_out += 1
                continue
            self.room -= 1
            at[entry] = len(columns["what"])
            price = self.result.prices[lane.stream.prices[entry]]
            columns["what"].append(self._statement(item, item.code.listed[step], price.edge, price.nbytes))
            columns["start"].append(_rounded(item.start + start))
            columns["end"].append(_rounded(item.start + end))
            columns["cause"].append(at.get(lane.causes[entry], -1))
            columns["critical"].append(int(entry in marked))
            columns["slowed"].append(_rounded(max(0.0, end - start - price.cycles)))

    def _statement(self, item: Played, instruction: Instruction, edge: tuple[str, str] | None, nbytes: int) -> int:
        number = self.numbers.get(instruction)
        if number is None:
            number = self.numbers[instruction] = len(self.statements)
            self.engines[instruction.engine] = instruction.hardware
            span = instruction.stmt.span
            self.statements.append(
                {
                    "op": instruction.op.qualified_name.removeprefix("tile."),
                    "engine": instruction.engine,
                    "function": item.code.function.name,
                    "file": short_path(span.file),
                    "line": span.line,
                    "makes": instruction.stmt.target.name,
                    "edge": list(edge) if edge else None,
                    "bytes": nbytes,
                    "waits": {
                        item.code.listed[before].engine: instruction.kinds_of(before)
                        for before in dict.fromkeys(wait.before for wait in instruction.waits)
                    },
                }
            )
        return number


def _named(place: str, blocks: tuple[int, ...]) -> str:
    what = place if place in ("core", "cluster") else f"{place} core"
    if len(blocks) == 1:
        return f"{what} {blocks[0]}"
    runs: list[list[int]] = []
    for block in blocks:
        if runs and block == runs[-1][-1] + 1:
            runs[-1][1:] = [block]
        else:
            runs.append([block])
    numbers = ", ".join("–".join(map(str, run)) for run in runs)
    return f"{what}s {numbers}"


def _rounded(cycles: float) -> float | int:
    near = round(cycles, 2)
    return int(near) if near == int(near) else near
