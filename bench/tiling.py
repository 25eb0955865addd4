"""How good the tiles are that the chooser picks, and how long it takes to pick them.

    python bench/tiling.py [--target ascend910b,ascend950] [--repeats 5]

For each of twelve matmuls, in bf16 and f32, on each target: the chosen tile, its gap to the best of an exhaustive
search (written separately, in plain loops: `tests/exhaustive_tiles.py`; must be 0), the ratio of its modelled cycles to
the machine's limit (the largest of multiply, load and drain at full rate: 1.00 is ideal; one row takes the engine as
long as a box of 16), and what the limit is. Then, per target and type, the median and the worst ratio and what holds
the worst back, and milliseconds per uncached call. All cycles are modelled.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

from tilewright.analysis.tile_chooser import Breakdown, L0Tile, Problem, choose_l0_tile, roofline
from tilewright.ir.dtypes import BF16, FP32, DType
from tilewright.targets import Target, load_target

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from exhaustive_tiles import MACHINES, Case, best

SHAPES: dict[str, tuple[int, int, int]] = {
    "square 512": (512, 512, 512),
    "square 1024": (1024, 1024, 1024),
    "square 4096": (4096, 4096, 4096),
    "odd 1000": (1000, 1000, 1000),
    "attention scores": (1024, 1024, 128),
    "attention values": (1024, 128, 1024),
    "projection": (256, 4096, 4096),
    "feed forward": (128, 11008, 4096),
    "decode, batch 16": (16, 4096, 4096),
    "vector": (1, 4096, 4096),
    "low rank": (4096, 4096, 64),
    "short K": (320, 320, 64),
}
"""name: m, n, k"""
DTYPES = {"bf16": BF16, "f32": FP32}


@dataclass(frozen=True)
class Row:
    """One matmul on one target."""

    shape: str
    tile: L0Tile
    gap: float
    limit: Breakdown
    milliseconds: float

    @property
    def ratio(self) -> float:
        """Modelled cycles over the machine's limit."""
        return self.tile.cycles.wall / self.limit.wall

    @property
    def reason(self) -> str:
        """Where the cycles over the limit come from: what the longest term takes beyond it, and how much of the other
        terms does not run beside that one."""
        cycles, limit = self.tile.cycles, self.limit.wall
        longest = max(cycles.load, cycles.multiply, cycles.drain)
        return (
            f"{self.tile.limit} takes {longest / limit - 1:.0%} more than the limit, and "
            f"{(cycles.wall - longest) / limit:.0%} of it in other work is not hidden"
        )


def measure(shape: str, dtype: DType, kind: str, target: Target, repeats: int) -> Row:
    """The chooser's answer for a shape against the exhaustive search's; the time is the best of `repeats`."""
    m, n, k = SHAPES[shape]
    problem = Problem(m, n, k, dtype, FP32)
    times: list[float] = []
    for _ in range(repeats):
        choose_l0_tile.cache_clear()
        start = perf_counter()
        choose_l0_tile(problem, target)
        times.append(perf_counter() - start)
    tile = choose_l0_tile(problem, target)
    optimum = best(MACHINES[target.name], Case(m, n, k, kind))
    assert optimum is not None
    gap = tile.cycles.wall / optimum[3] - 1
    return Row(shape, tile, 0.0 if abs(gap) < 1e-9 else gap, roofline(problem, target), min(times) * 1e3)


def report(target: Target, kind: str, repeats: int) -> list[Row]:
    """The table of one target and element type."""
    rows = [measure(shape, DTYPES[kind], kind, target, repeats) for shape in SHAPES]
    print(f"\n{target.name}, {kind}")
    print(f"{'shape':18} {'m x n x k':18} {'held':7} acc {'gap':>6} {'ratio':>6}  limit     {'ms':>5}")
    for row in rows:
        tile = row.tile
        point = f"{tile.m} x {tile.n} x {tile.k}"
        print(
            f"{row.shape:18} {point:18} {tile.stationary.value:7} {tile.accumulators:3} {row.gap:6.1%} {row.ratio:6.2f}"
            f"  {row.limit.limit:8}  {row.milliseconds:5.2f}"
        )
    worst = max(rows, key=lambda row: row.ratio)
    print(
        f"ratio to the limit: median {median(row.ratio for row in rows):.2f}, worst {worst.ratio:.2f} ({worst.shape})"
    )
    print(f"  held back by: {worst.reason}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="the tile chooser against the optimum and against the machine")
    parser.add_argument("--target", default="ascend910b,ascend950", help="names, with commas between them")
    parser.add_argument("--repeats", type=int, default=5, help="calls of which the fastest counts")
    args = parser.parse_args()
    unknown = [name for name in args.target.split(",") if name not in MACHINES]
    if unknown:
        parser.error(f"no exhaustive search for {', '.join(unknown)}; there is one for {', '.join(MACHINES)}")
    rows: list[Row] = []
    for name in args.target.split(","):
        for kind in DTYPES:
            rows += report(load_target(name), kind, args.repeats)
    times = [row.milliseconds for row in rows]
    gaps = sum(row.gap != 0 for row in rows)
    print(
        f"\n{len(rows)} matmuls: {gaps} with a gap to the optimum; uncached call {median(times):.2f} ms median, "
        f"{max(times):.2f} ms worst"
    )
    sys.exit(1 if gaps else 0)


if __name__ == "__main__":
    main()
