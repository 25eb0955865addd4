"""What compaction costs as programs grow: ms per access under a predicate, beside those of the smallest program.

    python bench/compaction.py [--nests 10,100,1000] [--runs 5]

Three kinds of programs of N nests: `plain` (one buffer, no predicates), `predicates` (one buffer, every access under
conditions) and `buffers` (a buffer per nest, each under conditions). No two nests touch the same elements, so that no
set is met twice; each run starts without those of the one before. Times are of the processor, the least of the runs,
without garbage collection; small programs are run oftener. The decision is measured, `plan_buffers`, and beside it the
whole pass. Exits with 1 where an access under a predicate costs more than 2 ms, or where growth is beyond 1.2 times
linear.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable
from time import process_time

from tilewright.analysis.buffer_regions import plan_buffers
from tilewright.analysis.region_lines import forget_sets
from tilewright.ir.loop_builder import LoopBuilder
from tilewright.ir.loop_level import LoopFunction
from tilewright.ir.scalar import BinaryKind, binary, logic
from tilewright.passes.loop.compact_buffers import compact_buffers

MOST_MS, MOST_GROWTH = 2.0, 1.2


def program(nests: int, buffers: bool, predicates: bool) -> LoopFunction:
    """N nests of two loops with two accesses each."""
    f = LoopBuilder()
    out = f.buffer("out", (32, 32))
    b = f.alloc("B", (2048, 64))
    for nest in range(nests):
        b = f.alloc(f"B{nest}", (2048, 64)) if buffers else b
        with f.loop("i", 16) as i, f.loop("j", 16) as j:
            at = (i + nest, j * 2 + nest % 5)
            if not predicates:
                f.store(b, at, 1.0)
                f.store(out, (i, j), f.load(b, *at))
                continue
            inside = binary(BinaryKind.LT, i + j, 8 + nest % 5)
            with f.when(logic(BinaryKind.AND, inside, binary(BinaryKind.LE, nest % 5, i * 3 + j))):
                f.store(b, at, 1.0)
                f.store(out, (i, j), f.load(b, *at))
    return f.build()


def seconds(work: Callable[[], object], runs: int) -> float:
    """The least time of `runs`, each from nothing."""
    least = float("inf")
    for _ in range(runs):
        forget_sets()
        gc.collect()
        gc.disable()
        started = process_time()
        work()
        least = min(least, process_time() - started)
        gc.enable()
    return least


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nests", default="10,100,1000", help="sizes, the smallest first")
    parser.add_argument("--runs", type=int, default=5, help="runs of the largest; smaller ones up to ten times as many")
    options = parser.parse_args()
    sizes = [int(size) for size in options.nests.split(",")]
    beyond = False
    print(f"{'program':12}{'nests':>7}{'plan ms':>10}{'pass ms':>10}{'ms/access':>11}{'growth':>8}")
    for name, buffers, predicates in (
        ("plain", False, False), ("predicates", False, True), ("buffers", True, True),
    ):  # fmt: skip
        smallest: float | None = None
        for size in sizes:
            function = program(size, buffers, predicates)
            runs = options.runs * min(10, sizes[-1] // size)
            plan = seconds(lambda function=function: plan_buffers(function), runs)
            whole = seconds(lambda function=function: compact_buffers(function), options.runs)
            each = plan / (2 * size) * 1e3
            smallest = smallest or each
            growth = each / smallest
            print(f"{name:12}{size:7}{plan * 1e3:10.1f}{whole * 1e3:10.1f}{each:11.3f}{growth:8.2f}", flush=True)
            beyond |= (predicates and each > MOST_MS) or growth > MOST_GROWTH
    print("beyond the limits" if beyond else f"within {MOST_MS:g} ms per predicated access, {MOST_GROWTH:g} of linear")
    return int(beyond)


if __name__ == "__main__":
    sys.exit(main())
