"""A simulation as tables of plain text."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tilewright.execute.simulation import EngineUse, SimulationResult

MOST_LAUNCHES = 12
"""Launches that are listed one by one."""


def text(found: SimulationResult) -> str:
    """The whole result, the answer first."""
    parts = [_answer(found), _launches(found), _engines(found), _edges(found), _path(found), _limits(found)]
    parts.append("\n".join(["The model", *(f"  {line}" for line in found.assumptions)]))
    return "\n\n".join(part for part in parts if part)


def _answer(found: SimulationResult) -> str:
    lines = [f"{found.program} on {found.target}: {_cycles(found.cycles)} cycles"]
    if found.limits:
        lines.append(f"  {found.ratio:.2f} x the limit of {_cycles(found.limit)} cycles, bound by {found.bound_by}")
    busiest = max(found.engines, key=lambda use: use.busiest, default=None)
    if busiest is not None:
        share = busiest.busiest / found.cycles if found.cycles else 0.0
        lines.append(f"  busiest engine: {busiest.engine} ({busiest.core}), {_percent(share)} of the time on one core")
        if busiest.machine > busiest.cores:
            lines.append(f"  work for {busiest.cores} of {busiest.machine} {_plural(busiest.core)}")
    return "\n".join(lines)


def _launches(found: SimulationResult) -> str:
    rows = [
        (launch.function, launch.core, str(launch.blocks), _cycles(launch.start), _cycles(launch.cycles))
        for launch in found.launches[:MOST_LAUNCHES]
    ]
    left = len(found.launches) - len(rows)
    if left > 0:
        rest = sum(launch.cycles for launch in found.launches[MOST_LAUNCHES:])
        rows.append((f"{left} more", "", "", "", _cycles(rest)))
    return _table("Launches", ("function", "core", "blocks>", "start>", "cycles>"), rows)


def _engines(found: SimulationResult) -> str:
    rows = [
        (
            f"{use.engine} ({use.core})", str(use.cores), _percent(use.share), _cycles(use.busiest),
            f"{use.instructions:,}", _cycles(use.slowed / use.cores) if use.slowed else "", _waits(use),
        )
        for use in found.engines
    ]  # fmt: skip
    head = ("engine", "cores>", "busy>", "busiest>", "instructions>", "slowed by DDR>", "rest of the time")
    return _table("Engines (on average over the cores that have work; busiest: cycles on one core)", head, rows)


def _waits(use: EngineUse) -> str:
    """What fills the time in which the engine does nothing, the longest first."""
    whole = use.busy + sum(use.stalls.values()) + use.idle
    waits = [(cycles / whole, f"waits for {engine}") for engine, cycles in use.stalls.items()]
    waits.append((use.idle / whole if whole else 0.0, "nothing to do"))
    return ", ".join(f"{_percent(share)} {what}" for share, what in sorted(waits, reverse=True) if share >= 0.005)


def _edges(found: SimulationResult) -> str:
    rows = [(f"{use.src} -> {use.dst}", f"{use.transfers:,}", f"{use.nbytes:,}") for use in found.edges]
    return _table("Edges", ("from -> to", "transfers>", "bytes>"), rows)


def _path(found: SimulationResult) -> str:
    rows = [
        (
            f"{_near(step.file)}:{step.line}" if step.line else "", step.operation, step.engine, f"{step.times:,}",
            _cycles(step.cycles), _percent(step.cycles / found.cycles if found.cycles else 0.0),
        )
        for step in found.critical_path
    ]  # fmt: skip
    head = ("line", "operation", "engine", "times>", "cycles>", "of all>")
    return _table("Critical path (each statement was started by the end of the one before)", head, rows)


def _limits(found: SimulationResult) -> str:
    rows = [(limit.name, _cycles(limit.cycles)) for limit in found.limits]
    return _table("Limits (this part of the machine at its full rate, on every core)", ("", "cycles>"), rows)


def _plural(core: str) -> str:
    return {"core": "cores", "cluster": "clusters"}.get(core, f"{core} cores")


def _near(path: str) -> str:
    near = os.path.relpath(path) if os.path.isabs(path) else path
    return min(near, path, key=len)


def _cycles(count: float) -> str:
    return f"{count:,.0f}"


def _percent(share: float) -> str:
    return "<1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns; those whose title ends in ``>`` at their last digit, empty ones left out."""
    kept = [i for i in range(len(head)) if any(row[i] for row in rows)]
    if not kept:
        return ""
    titles = [head[i].rstrip(">") for i in kept]
    widths = [max(len(name), *(len(row[i]) for row in rows)) for i, name in zip(kept, titles, strict=True)]
    right = [head[i].endswith(">") for i in kept]

    def line(cells: Sequence[str]) -> str:
        padded = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True))
        return ("  " + "  ".join(padded)).rstrip()

    return "\n".join([title, line(titles), *(line([row[i] for i in kept]) for row in rows)])
