"""How far kernels are from what a machine could do, by the simulator.

    python bench/model.py [--target ascend910b,ascend950]

Twelve kernels, each in a small and a large size, on each target: modelled cycles, cycles over the machine's limit (the
largest of computing, each edge, and DDR at full rate on all cores; 1.00 is ideal), and what sets the limit. Then, per
target, the median and the worst three ratios and what holds those back. Nothing is measured: all cycles are a model's.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from statistics import median
from typing import Any

import ml_dtypes
import numpy as np

import tilewright.language as pl
from tilewright.execute.simulation import SimulationResult
from tilewright.runtime.jit import JitFunction

ROWS, BLOCK = 16, 128
BF16 = np.dtype(ml_dtypes.bfloat16)
F32 = np.dtype(np.float32)


# --- vector kernels: blocks of rows over the cores ------------------------------------------------------------------
@pl.jit
def add(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, a.shape[0], ROWS):
        x = pl.load(a, [i, 0], [ROWS, a.shape[1]])
        y = pl.load(b, [i, 0], [ROWS, a.shape[1]])
        out = pl.store(x + y, [i, 0], out)
    return out


@pl.jit
def gelu(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``x / (1 + exp(-1.702 x))``"""
    for i in pl.parallel(0, a.shape[0], ROWS):
        x = pl.load(a, [i, 0], [ROWS, a.shape[1]])
        out = pl.store(x / (pl.exp(x * -1.702) + 1.0), [i, 0], out)
    return out


@pl.jit
def softmax(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, a.shape[0], ROWS):
        x = pl.load(a, [i, 0], [ROWS, a.shape[1]])
        powers = pl.exp(pl.row_expand_sub(x, pl.row_max(x)))
        out = pl.store(pl.row_expand_div(powers, pl.row_sum(powers)), [i, 0], out)
    return out


@pl.jit
def rmsnorm(a: pl.Tensor, weight: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, a.shape[0], ROWS):
        x = pl.load(a, [i, 0], [ROWS, a.shape[1]])
        scale = pl.load(weight, [0, 0], [1, a.shape[1]])
        mean = pl.row_sum(x * x) * (1.0 / a.shape[1])
        out = pl.store(pl.col_expand_mul(pl.row_expand_mul(x, pl.rsqrt(mean + 1e-6)), scale), [i, 0], out)
    return out


@pl.jit
def piped(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    """`softmax` on one core, three blocks in flight."""
    for i in pl.pipeline(0, a.shape[0], ROWS, stage=3):
        x = pl.load(a, [i, 0], [ROWS, a.shape[1]])
        powers = pl.exp(pl.row_expand_sub(x, pl.row_max(x)))
        out = pl.store(pl.row_expand_div(powers, pl.row_sum(powers)), [i, 0], out)
    return out


@pl.jit
def row_sums(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, a.shape[0], ROWS):
        out = pl.store(pl.row_sum(pl.load(a, [i, 0], [ROWS, a.shape[1]])), [i, 0], out)
    return out


# --- matrix kernels -------------------------------------------------------------------------------------------------
@pl.jit
def matmul(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Blocks of 128 x 128, K in steps of 128."""
    for i in pl.parallel(0, a.shape[0], BLOCK):
        for j in pl.range(0, b.shape[1], BLOCK):
            acc = pl.matmul(pl.load(a, [i, 0], [BLOCK, BLOCK]), pl.load(b, [0, j], [BLOCK, BLOCK]))
            for s in pl.range(BLOCK, a.shape[1], BLOCK):
                acc = pl.matmul_acc(acc, pl.load(a, [i, s], [BLOCK, BLOCK]), pl.load(b, [s, j], [BLOCK, BLOCK]))
            out = pl.store(acc, [i, j], out)
    return out


@pl.jit
def matmul_piped(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    """`matmul` with two steps of K in flight."""
    for i in pl.parallel(0, a.shape[0], BLOCK):
        for j in pl.range(0, b.shape[1], BLOCK):
            acc = pl.matmul(pl.load(a, [i, 0], [BLOCK, BLOCK]), pl.load(b, [0, j], [BLOCK, BLOCK]))
            for s in pl.pipeline(BLOCK, a.shape[1], BLOCK, stage=2):
                acc = pl.matmul_acc(acc, pl.load(a, [i, s], [BLOCK, BLOCK]), pl.load(b, [s, j], [BLOCK, BLOCK]))
            out = pl.store(acc, [i, j], out)
    return out


@pl.jit
def panel(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Rows of `a` against all of `b`; the compiler cuts the product."""
    for i in pl.parallel(0, a.shape[0], 64):
        out = pl.assemble(out, pl.slice(a, [64, a.shape[1]], [i, 0]) @ b, [i, 0])
    return out


@pl.jit
def layer(a: pl.Tensor, w: pl.Tensor, bias: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``relu(a @ w + bias)``"""
    for i in pl.parallel(0, a.shape[0], 64):
        out = pl.assemble(out, pl.relu(pl.slice(a, [64, a.shape[1]], [i, 0]) @ w + bias), [i, 0])
    return out


@pl.jit
def two_layers(a: pl.Tensor, w1: pl.Tensor, w2: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, a.shape[0], 64):
        hidden = pl.relu(pl.slice(a, [64, a.shape[1]], [i, 0]) @ w1)
        out = pl.assemble(out, hidden @ w2, [i, 0])
    return out


@pl.jit
def chained(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``(a @ b) @ c``, in between bfloat16."""
    for i in pl.parallel(0, a.shape[0], 64):
        out = pl.assemble(out, pl.slice(a, [64, a.shape[1]], [i, 0]) @ b @ c, [i, 0])
    return out


Shapes = Sequence[tuple[int, int]]
CASES: tuple[tuple[JitFunction, np.dtype[Any], np.dtype[Any], Shapes, Shapes], ...] = (
    (add, F32, F32, ((256, 512),) * 3, ((8192, 512),) * 3),
    (gelu, F32, F32, ((256, 512),) * 2, ((8192, 512),) * 2),
    (softmax, F32, F32, ((256, 512),) * 2, ((8192, 512),) * 2),
    (rmsnorm, F32, F32, ((256, 512), (1, 512), (256, 512)), ((8192, 512), (1, 512), (8192, 512))),
    (piped, F32, F32, ((256, 256),) * 2, ((2048, 256),) * 2),
    (row_sums, F32, F32, ((256, 512), (256, 1)), ((8192, 512), (8192, 1))),
    (matmul, BF16, F32, ((512, 512),) * 3, ((4096, 1024), (1024, 1024), (4096, 1024))),
    (matmul_piped, BF16, F32, ((512, 512),) * 3, ((4096, 1024), (1024, 1024), (4096, 1024))),
    (panel, BF16, BF16, ((256, 128), (128, 64), (256, 64)), ((4096, 256), (256, 128), (4096, 128))),
    (layer, F32, F32, ((256, 64), (64, 64), (1, 64), (256, 64)), ((4096, 64), (64, 128), (1, 128), (4096, 128))),
    (two_layers, F32, F32, ((256, 64), (64, 64), (64, 64), (256, 64)), ((4096, 64), (64, 128), (128, 64), (4096, 64))),
    (chained, BF16, BF16, ((256, 64), (64, 64), (64, 64), (256, 64)), ((4096, 128), (128, 128), (128, 64), (4096, 64))),
)
"""kernel, element types of inputs and output, shapes of the arguments in a small and a large size"""


def simulated(target: str) -> list[tuple[str, SimulationResult]]:
    """Every kernel in both sizes."""
    found: list[tuple[str, SimulationResult]] = []
    for kernel, dtype, result, *sizes in CASES:
        for size, shapes in zip(("small", "large"), sizes, strict=True):
            arguments = [np.zeros(shape, dtype) for shape in shapes[:-1]] + [np.zeros(shapes[-1], result)]
            found.append((f"{kernel.source.name}, {size}", kernel.simulate(*arguments, target=target)))
    return found


def held_back(found: SimulationResult) -> str:
    """What keeps a program from its limit, read off the critical path and the use of the cores."""
    reasons: list[str] = []
    idle = [use for use in found.engines if use.cores < use.machine]
    if idle:
        kind = "clusters" if idle[0].core == "cluster" else f"{idle[0].core} cores"
        reasons.append(f"work for {idle[0].cores} of {idle[0].machine} {kind}")
    spent: dict[str, float] = {}
    for step in found.critical_path:
        spent[step.engine] = spent.get(step.engine, 0.0) + step.cycles
    path = sorted(spent.items(), key=lambda item: -item[1])[:3]
    reasons.append("path: " + ", ".join(f"{engine} {cycles / found.cycles:.0%}" for engine, cycles in path))
    return "; ".join(reasons)


def main() -> None:
    parser = argparse.ArgumentParser(description="How far kernels are from the machine's limit, by the simulator.")
    parser.add_argument("--target", default="ascend910b,ascend950", help="names, with commas between them")
    for target in parser.parse_args().target.split(","):
        print(f"{target}\n  {'kernel':<22}{'cycles':>12}{'÷ limit':>9}  bound by")
        rows = simulated(target)
        for name, found in rows:
            print(f"  {name:<22}{found.cycles:>12,.0f}{found.ratio:>9.2f}  {found.bound_by}")
        worst = sorted(rows, key=lambda row: -row[1].ratio)[:3]
        print(f"  median {median(found.ratio for _, found in rows):.2f}, worst {worst[0][1].ratio:.2f}")
        for name, found in worst:
            print(f"    {name} {found.ratio:.2f}: {held_back(found)}")


if __name__ == "__main__":
    main()
