"""What a timeline adds up to: use of engines and edges, the critical path, and the limits of the machine."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tilewright.execute.instructions import Instruction, Price
from tilewright.execute.schedule import Lane
from tilewright.execute.simulation import EdgeUse, EngineUse, Limit, PathStep, Played
from tilewright.targets import Target
from tilewright.targets.parts import DDR

ROUNDING = 1e-6
"""Cycles that adding and subtracting times may be off by."""


@dataclass(slots=True)
class _Use:
    """One engine of one kind of core, while it is counted."""

    instructions: int = 0
    busy: float = 0.0
    slowed: float = 0.0
    stalls: dict[str, float] = field(default_factory=dict[str, float])
    idle: float = 0.0
    on_core: dict[int, float] = field(default_factory=dict[int, float])


class Tally:
    """Counts over all launches of one simulation."""

    def __init__(self, target: Target, played: list[Played], prices: list[Price]) -> None:
        self.target = target
        self.played = played
        self.prices = prices
        self.uses: dict[tuple[str, str], _Use] = {}
        self.cores: dict[str, int] = {}
        """blocks at most, by kind of core"""
        self.machine = {item.code.items.place: item.code.items.cores for item in played}
        self.counts: Counter[int] = Counter()
        """executions on all cores, by number of the price"""
        self.full: dict[str, float] = {}
        """cycles of computing at the full rate, all cores together, by the target's engine"""
        self.hardware: dict[str, str] = {}
        """the target's engine of each queue"""
        for item in played:
            core = item.code.items.place
            self.cores[core] = max(self.cores.get(core, 0), sum(len(lane.blocks) for lane in item.lanes))
        for item in played:
            for lane in item.lanes:
                self._lane(item, lane)

    @property
    def cycles(self) -> float:
        return sum(_cycles(item) for item in self.played)

    def _lane(self, item: Played, lane: Lane) -> None:
        core, weight, stream = item.code.items.place, len(lane.blocks), lane.stream
        listed = item.code.listed
        seen: dict[str, float] = {}
        entries = zip(stream.steps, stream.prices, lane.starts, lane.ends, lane.causes, strict=True)
        for step, number, start, end, cause in entries:
            engine, hardware, price = listed[step].engine, listed[step].hardware, self.prices[number]
            self.hardware[engine] = hardware
            use = self.uses.setdefault((core, engine), _Use())
            use.instructions += weight
            use.busy += (end - start) * weight
            if end - start - price.cycles > ROUNDING:
                use.slowed += (end - start - price.cycles) * weight
            waited = start - seen.get(engine, 0.0)
            if waited > ROUNDING:
                blame = listed[stream.steps[cause]].engine
                use.stalls[blame] = use.stalls.get(blame, 0.0) + waited * weight
            seen[engine] = end
            self.counts[number] += weight
            if price.edge is None:
                self.full[hardware] = self.full.get(hardware, 0.0) + price.full * weight
            for block in lane.blocks:
                use.on_core[block] = use.on_core.get(block, 0.0) + end - start

    # --- results ---
    def engines(self) -> tuple[EngineUse, ...]:
        order = list(self.target.engines)
        found: list[EngineUse] = []
        for (core, engine), use in self.uses.items():
            if not use.busy:
                continue
            cores = self.cores[core]
            idle = self.cycles * cores - use.busy - sum(use.stalls.values())
            busiest = max(use.on_core.values())
            found.append(
                EngineUse(
                    engine, core, cores, self.machine[core], use.instructions,
                    use.busy, use.slowed, busiest, use.stalls, max(0.0, idle),
                )
            )  # fmt: skip
        return tuple(sorted(found, key=lambda use: (use.core, order.index(self.hardware[use.engine]), use.engine)))

    def edges(self) -> tuple[EdgeUse, ...]:
        found: dict[tuple[str, str], list[int]] = {}
        for number, count in self.counts.items():
            price = self.prices[number]
            if price.edge is not None:
                entry = found.setdefault(price.edge, [0, 0])
                entry[0] += count
                entry[1] += count * price.nbytes
        order = [(edge.src, edge.dst) for edge in self.target.edges]
        return tuple(EdgeUse(*edge, *found[edge]) for edge in sorted(found, key=order.index))

    def limits(self) -> tuple[Limit, ...]:
        """The largest first; parts that have nothing to do are left out."""
        found = [
            Limit(f"compute on {engine}", cycles / self._count(self.target.engines[engine].cores))
            for engine, cycles in self.full.items()
        ]
        full: dict[tuple[str, str], float] = {}
        ddr = 0
        for number, count in self.counts.items():
            price = self.prices[number]
            if price.edge is not None:
                full[price.edge] = full.get(price.edge, 0.0) + price.full * count
                ddr += price.nbytes * count * (DDR in price.edge)
        for edge in self.target.edges:
            if (edge.src, edge.dst) in full:
                cores = self._count((edge.core,) if edge.core is not None else self.target.engines[edge.engine].cores)
                found.append(Limit(f"{edge.src} -> {edge.dst}", full[edge.src, edge.dst] / cores))
        if self.target.ddr_bytes_per_cycle is not None:
            found.append(Limit("DDR, all cores", ddr / self.target.ddr_bytes_per_cycle))
        return tuple(sorted((limit for limit in found if limit.cycles > 0), key=lambda limit: -limit.cycles))

    def _count(self, kinds: tuple[str, ...]) -> int:
        """How many cores of these kinds the machine has."""
        return sum(self.target.cores.get(kind, 0) for kind in kinds) or 1

    def critical_path(self) -> tuple[PathStep, ...]:
        found: dict[Instruction, list[float]] = {}
        for item in self.played:
            lane, chain = critical(item)
            for entry in chain:
                total = found.setdefault(item.code.listed[lane.stream.steps[entry]], [0, 0.0])
                total[0] += 1
                total[1] += lane.ends[entry] - lane.starts[entry]
        return tuple(
            PathStep(i.stmt.span.file, i.line, i.op.qualified_name, i.engine, int(times), cycles)
            for i, (times, cycles) in found.items()
            if cycles
        )


def _cycles(item: Played) -> float:
    return max(lane.cycles for lane in item.lanes)


def critical(item: Played) -> tuple[Lane, list[int]]:
    """The lane that ends last, and the chain of its entries, in order, that its time consists of."""
    lane = max(item.lanes, key=lambda lane: lane.cycles)
    chain: list[int] = []
    entry = lane.last
    while entry >= 0:
        chain.append(entry)
        entry = lane.causes[entry]
    return lane, chain[::-1]
