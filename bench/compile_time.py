"""How long compilation takes, pass by pass, and how it grows with the program.

    python bench/compile_time.py [--target ascend910b] [--sizes 10,100,1000,10000]

Six kernels of `examples/`, then generated kernels of 10 to 10,000 statements (loads, elementwise work on tiles that
stay alive for a while, loops that carry a tile, stores). Each figure is the best of several runs, in microseconds of
processor time per statement of the placed program; the last line is the growth from 1,000 to 10,000 statements: 10
when passes are linear.
"""

from __future__ import annotations

import argparse
import importlib.util
import linecache
import sys
from pathlib import Path
from time import process_time
from types import ModuleType
from typing import Any

import tilewright.language as pl
from tilewright.compiler import lower
from tilewright.frontend import KernelSource, read_program
from tilewright.ir.dtypes import FP32, from_numpy
from tilewright.ir.function import Program
from tilewright.ir.types import TensorType
from tilewright.targets import Target, load_target

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
KERNELS = ("elementwise", "softmax", "rmsnorm", "matmul", "chained_matmul", "digits/kernel")


def load(name: str) -> ModuleType:
    """The example `name` as a module."""
    path = EXAMPLES / f"{name}.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def example(name: str) -> tuple[KernelSource, list[TensorType]]:
    """The kernel of an example and the types of its arguments."""
    module = load(name)
    kernel = next(value for value in vars(module).values() if isinstance(getattr(value, "source", None), KernelSource))
    if name.startswith("digits"):
        shapes = ((1797, 64), (64, 128), (1, 128), (128, 10), (1, 10), (1797, 10))
        return kernel.source, [TensorType(shape, FP32) for shape in shapes]
    return kernel.source, [TensorType(a.shape, from_numpy(a.dtype)) for a in module.arguments()]


def generated(statements: int) -> tuple[KernelSource, list[TensorType]]:
    """A kernel of about `statements` statements: groups of eight, the last of which is a loop."""
    lines = ["def kernel(a: pl.Tensor, out: pl.Out[pl.Tensor]):"]
    lines += ["    t0 = pl.load(a, [0, 0], [16, 64])"]
    count = 1
    group = 0
    while count < statements:
        t = f"t{group}"
        lines += [
            f"    x = pl.load(a, [{group % 4 * 16}, 0], [16, 64])",
            f"    y = pl.exp(x * 0.5) + {t}",
            "    m = pl.row_max(y)",
            "    z = pl.row_expand_sub(y, m)",
            "    for i in pl.range(0, 4):",
            "        z = z * 2.0 - x",
            f"    t{group + 1} = pl.maximum(z, {t})",
        ]
        count += 8
        group += 1
    lines += [f"    out = pl.store(t{group}, [0, 0], out)", "    return out"]
    text = "\n".join(lines) + "\n"
    name = f"<generated {statements}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"pl": pl}
    exec(compile(text, name, "exec"), scope)
    return KernelSource.from_function(scope["kernel"]), [TensorType((64, 64), FP32), TensorType((16, 64), FP32)]


def size(program: Program) -> int:
    return sum(1 for function in program.functions for _ in function.walk())


def measure(source: KernelSource, types: list[TensorType], target: Target, repeat: int) -> dict[str, float]:
    """Best seconds of reading and of each pass, and the number of statements under ``statements``."""
    best: dict[str, float] = {}
    for _ in range(repeat):
        start = process_time()
        program = read_program(source, types)
        times = {"frontend": process_time() - start}
        began = [process_time()]

        def observe(
            name: str, after: Program, _: float, times: dict[str, float] = times, began: list[float] = began
        ) -> None:
            if name != "frontend":
                times[name] = process_time() - began[0]
            times["statements"] = size(after)
            began[0] = process_time()

        lower(program, target, check=False, observe=observe)
        for name, seconds in times.items():
            best[name] = min(best.get(name, seconds), seconds)
    return best


def table(rows: list[tuple[str, dict[str, float]]]) -> None:
    """One line per pass: microseconds per statement for each program; the total in milliseconds."""
    names = [name for name in rows[0][1] if name != "statements"]
    width = max(map(len, names)) + 2
    print(" " * width + "".join(f"{title:>16}" for title, _ in rows))
    print(f"{'statements':<{width}}" + "".join(f"{int(times['statements']):>16,}" for _, times in rows))
    for name in names:
        print(f"{name:<{width}}" + "".join(f"{times[name] / times['statements'] * 1e6:>13.1f} us" for _, times in rows))
    totals = [sum(times[name] for name in names) for _, times in rows]
    print(f"{'all':<{width}}" + "".join(f"{total * 1e3:>13.1f} ms" for total in totals))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="ascend910b")
    parser.add_argument("--sizes", default="10,100,1000,10000")
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    target = load_target(given.target)
    table([(name, measure(*example(name), target, given.repeat)) for name in KERNELS])
    print()
    sizes = [int(text) for text in given.sizes.split(",")]
    rows = [(f"{n:,}", measure(*generated(n), target, given.repeat)) for n in sizes]
    table(rows)
    by_size = dict(zip(sizes, (times for _, times in rows), strict=True))
    if 1000 in by_size and 10000 in by_size:
        small, large = by_size[1000], by_size[10000]
        growth = {name: large[name] / small[name] for name in small if name != "statements"}
        total = sum(v for k, v in large.items() if k != "statements") / sum(
            v for k, v in small.items() if k != "statements"
        )
        worst = max(growth, key=lambda name: growth[name])
        print(f"\ngrowth from 1,000 to 10,000 statements: {total:.1f} times (most: {worst}, {growth[worst]:.1f})")


if __name__ == "__main__":
    main()
