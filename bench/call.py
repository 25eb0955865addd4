"""What calling a compiled kernel costs above the work itself: four NumPy arrays, all checks included.

    python bench/call.py

Prints nanoseconds per call: the bare entry through ctypes, the builtin function in machine code that compares the
arguments, and the kernel as a user calls it. The best and the median of 60 short alternating samples: on a shared
machine the best is what the way takes, the median what the neighbours leave. An empty lambda is shown beside them.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import tilewright.language as pl

CALLS, SAMPLES = 2_000, 60


@pl.jit
def kernel(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = a + b * c


def measure(ways: dict[str, Callable[[], Any]]) -> dict[str, tuple[float, float]]:
    """Nanoseconds per call of each way: the best sample, and the median."""
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(SAMPLES):
        for name, way in ways.items():
            begin = time.perf_counter_ns()
            for _ in range(CALLS):
                way()
            samples[name].append((time.perf_counter_ns() - begin) / CALLS)
    return {name: (min(found), median(found)) for name, found in samples.items()}


def main() -> int:
    a, b, c, out = (np.ones((4, 4), np.float32) for _ in range(4))
    for _ in range(4):
        kernel(a, b, c, out)
    last: Any = kernel._last  # pyright: ignore[reportPrivateUsage]
    short: Any = last.short
    direct = short._direct
    if direct is None or not np.array_equal(out, a + b * c):
        print("the call in machine code is not used, or its result is wrong", file=sys.stderr)
        return 1
    runner, function = short._runner, direct.function
    slots = runner._slots(*(array.ctypes.data for array in (a, b, c, out)))
    entry, at, space = runner.kernel._entry, ctypes.addressof(slots), runner._workspace()
    found = measure(
        {
            "empty lambda": lambda: None,
            "entry, through ctypes": lambda: entry(at, space),
            "compared in machine code": lambda: function(a, b, c, out),
            "compared in Python": lambda: short._compared((a, b, c, out)),
            "kernel(a, b, c, out)": lambda: kernel(a, b, c, out),
        }
    )
    for name, (best, middle) in found.items():
        print(f"{name:28}{best:8.0f} ns at best {middle:8.0f} ns median")
    return 0


if __name__ == "__main__":
    sys.exit(main())
