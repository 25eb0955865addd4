"""How close the planner of addresses comes to the least memory, and how long it takes.

    python bench/planner.py [--budget 20000]

Twenty generated instances of 200 to 2,000 buffers. Sizes are 32 bytes times a power law; lives come from nested loops:
a buffer lives for some statements of its body, or, where an inner loop reads it, until that ends. In every other
instance a buffer comes into being only when there is room for it in a memory of a fixed size, so that the memory is
nearly full most of the time, which is harder. For each: the bytes alive together (no plan needs less), the peak of the
plan, the gap between the two, and seconds of processor time. Then the kernels of `examples/`: in how many of their
memories the plan is optimal when bytes alone count; and for the plan that is made, the reuses that make an engine wait,
milliseconds, and the modelled cycles, beside those of the plan for bytes alone.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from statistics import median
from time import process_time

from compile_time import EXAMPLES, load
from planner_instances import instances

from tilewright.analysis.packing import BUDGET, Item, pack
from tilewright.errors import TilewrightError
from tilewright.execute.simulator import simulate
from tilewright.ir.function import FunctionKind
from tilewright.passes.memory.place_buffers import place_buffers, plan_addresses
from tilewright.runtime.jit import JitFunction
from tilewright.targets import load_target


@dataclass(frozen=True)
class Row:
    """One generated instance."""

    name: str
    bound: int
    peak: int
    seconds: float

    @property
    def gap(self) -> float:
        return self.peak / self.bound - 1


def measure(name: str, items: list[Item], budget: int = BUDGET) -> Row:
    """The plan of one instance and how long it took."""
    begin = process_time()
    packed = pack(items, budget=budget)
    return Row(name, packed.bound, packed.peak, process_time() - begin)


def kernels() -> None:
    """The kernels of the examples on two targets."""
    print(
        f"\n{'kernel':<18}{'target':<12}{'memories':>9}{'optimal':>9}{'waits':>7}{'ms':>7}{'cycles':>10}{'before':>10}"
    )
    for path in sorted(EXAMPLES.glob("*.py")):
        module = load(path.stem)
        *_, kernel = (value for value in vars(module).values() if isinstance(value, JitFunction))
        for name in ("ascend910b", "ascend950"):
            target = load_target(name)
            try:
                program = kernel.lower(*module.arguments(), target=name, after="assign_buffers")
            except TilewrightError as error:
                print(f"{path.stem:<18}{name:<12} {error.message}")
                continue
            functions = [f for f in program.functions if f.kind is not FunctionKind.ORCHESTRATION]
            begin = process_time()
            plans = [memory for f in functions for memory in plan_addresses(f, target).memories.values()]
            milliseconds = 1000 * (process_time() - begin)
            bytes_alone = [plan_addresses(f, target, engines=False).memories for f in functions]
            optimal = sum(memory.optimal for memories in bytes_alone for memory in memories.values())
            cycles, before = (
                simulate(place_buffers(program, target, engines=engines), target).cycles for engines in (True, False)
            )
            print(
                f"{path.stem:<18}{name:<12}{len(plans):>9}{optimal:>9}{sum(plan.waits for plan in plans):>7}"
                f"{milliseconds:>7.1f}{cycles:>10,.0f}{before:>10,.0f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=int, default=BUDGET, help="placements beyond the standard orders")
    budget: int = parser.parse_args().budget
    print(f"{'instance':<28}{'alive':>10}{'peak':>10}{'gap':>8}{'seconds':>9}   (bytes)")
    rows: list[Row] = []
    for name, items in instances().items():
        row = measure(name, items, budget)
        rows.append(row)
        print(f"{row.name:<28}{32 * row.bound:>10,}{32 * row.peak:>10,}{row.gap:>8.2%}{row.seconds:>9.2f}")
    gaps = [row.gap for row in rows]
    print(f"gap: median {median(gaps):.2%}, worst {max(gaps):.2%}; slowest {max(row.seconds for row in rows):.2f} s")
    kernels()


if __name__ == "__main__":
    main()
