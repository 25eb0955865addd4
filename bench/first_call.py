"""From source to the first result in a fresh process: a row kernel and a product, compiled and from the cache.

    python bench/first_call.py [--rounds N]

The clock starts when numpy, llvmlite.binding, islpy and tilewright are imported; what these imports take stands beside
it. Each round is a process of its own: one with an empty cache, one with the code on disk.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

KERNELS = {
    "softmax 64x1024": ("return pl.softmax(a)", "np.ones((64, 1024), np.float32)", 1),
    "gemm 512x512x512": ("return a @ b", "np.ones((512, 512), np.float32)", 2),
}
LIMITS = {"softmax 64x1024": (60.0, 5.0), "gemm 512x512x512": (200.0, 5.0)}
"""Milliseconds wanted: compiled, from the cache."""

SCRIPT = """
from time import perf_counter as now
t0 = now()
import numpy as np
t1 = now()
import llvmlite.binding, islpy
t2 = now()
import tilewright.language as pl
t3 = now()

@pl.jit
def kernel({parameters}):
    {body}

arrays = [{array} for _ in range({count})]
start = now()
kernel(*arrays)
print((t1 - t0) * 1e3, (t2 - t1) * 1e3, (t3 - t2) * 1e3, (now() - start) * 1e3)
"""


def measure(script: Path, cache: Path) -> list[float]:
    """Milliseconds of the imports of numpy, of llvmlite and islpy, of tilewright, and of the first call."""
    environment = {**os.environ, "TILEWRIGHT_CACHE": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return [float(part) for part in subprocess.check_output([sys.executable, script], env=environment).split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7, help="processes of each kind")
    rounds = parser.parse_args().rounds
    print("ms, best and median; imports: numpy, llvmlite.binding and islpy, tilewright")
    with tempfile.TemporaryDirectory() as name:
        for kernel, (body, array, count) in KERNELS.items():
            script = Path(name) / "kernel.py"
            parameters = ", ".join(f"{letter}: pl.Tensor" for letter in "abcd"[:count])
            script.write_text(SCRIPT.format(parameters=parameters, body=body, array=array, count=count))
            measure(script, Path(name) / "none")  # bytecode of everything, once
            cold: list[list[float]] = []
            warm: list[list[float]] = []
            for index in range(rounds):
                cache = Path(name) / f"{kernel.split()[0]}{index}"
                cold.append(measure(script, cache))
                warm.append(measure(script, cache))
            imports = " + ".join(f"{median(sample[part] for sample in warm):.0f}" for part in range(3))
            compiled, cached = ([sample[3] for sample in samples] for samples in (cold, warm))
            wanted = LIMITS[kernel]
            print(
                f"{kernel:<18} compiled {min(compiled):6.1f} {median(compiled):6.1f} (wanted {wanted[0]:.0f})"
                f"   from the cache {min(cached):5.1f} {median(cached):5.1f} (wanted {wanted[1]:.0f})"
                f"   imports {imports}"
            )


if __name__ == "__main__":
    main()
