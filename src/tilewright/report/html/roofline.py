"""The roofline of a simulation: how many operations per cycle a program reaches, and what it could reach at most.

For each engine that computes: its operations over the bytes that the program moves through DDR, against operations per
cycle. A multiply-add counts as two operations, an element of a vector operation as one. The roofs are the limits of the
simulation, so that the distance of a point from its roof is what `cycles ÷ limit` says where that roof is the limit.
"""

from __future__ import annotations

from typing import Any

from tilewright.execute.simulation import SimulationResult
from tilewright.targets import Target
from tilewright.targets.parts import DDR


def roofline(result: SimulationResult, target: Target) -> dict[str, Any] | None:
    """Points and roofs, or None where nothing is computed or nothing crosses DDR."""
    ddr_bytes = sum(use.nbytes for use in result.edges if DDR in (use.src, use.dst))
    limits = {limit.name: limit.cycles for limit in result.limits}
    ddr = {name: cycles for name, cycles in limits.items() if name.startswith(DDR) or name.endswith(f"-> {DDR}")}
    done = {engine: count for engine, count in operations(result).items() if limits.get(f"compute on {engine}")}
    if not ddr_bytes or not ddr or not done or not result.cycles:
        return None
    slowest = max(ddr, key=lambda name: ddr[name])
    return {
        "bandwidth": ddr_bytes / ddr[slowest],
        "bandwidth_name": slowest,
        "bytes": ddr_bytes,
        "points": [
            {
                "engine": engine,
                "operations": count,
                "intensity": count / ddr_bytes,
                "reached": count / result.cycles,
                "peak": count / limits[f"compute on {engine}"],
            }
            for engine, count in sorted(done.items(), key=lambda entry: list(target.engines).index(entry[0]))
        ],
    }


def operations(result: SimulationResult) -> dict[str, float]:
    """Operations by engine, all cores together."""
    found: dict[str, float] = {}
    for item in result.played:
        for lane in item.lanes:
            for step, number in zip(lane.stream.steps, lane.stream.prices, strict=True):
                count = result.prices[number].operations
                if count:
                    engine = item.code.listed[step].hardware
                    found[engine] = found.get(engine, 0.0) + count * len(lane.blocks)
    return found
