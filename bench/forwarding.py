"""What forwarding saves: the same programs compiled with and without it.

    python bench/forwarding.py [--target ascend910b,ascend950,host] [--why]

Every operation stands outside of scopes, so that each is a section of its own. Per kernel and target: round trips
through DDR that are gone (a tensor between two sections that is neither stored nor loaded), bytes of DDR as the placed
program moves them, and cycles, both before and after. Cycles are the simulator's on the Ascend targets, and on the
CPU those of the price of native code that forwarding itself goes by. With `--why`, each
tensor that stays in DDR has its reason. Nothing is measured."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import tilewright.language as pl
from tilewright.compiler import UNPLACED, lower
from tilewright.execute.simulator import simulate
from tilewright.ir.function import Program
from tilewright.report import explain
from tilewright.sections.price import native_price, price_of
from tilewright.targets import Target, load_target

F16 = np.dtype(np.float16)
F32 = np.dtype(np.float32)


@pl.jit
def ffn(x: pl.Tensor, w1: pl.Tensor, b1: pl.Tensor, w2: pl.Tensor, b2: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``gelu(x @ w1 + b1) @ w2 + b2``, the gelu as ``h / (1 + exp(-1.702 h))``"""
    m = pl.matmul(x, w1)
    h = pl.col_expand_add(m, b1)
    scaled = h * -1.702
    powers = pl.exp(scaled)
    ones = powers + 1.0
    g = h / ones
    o = pl.matmul(g, w2)
    out[:] = pl.col_expand_add(o, b2)
    return out


@pl.jit
def attention(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Four heads, the softmax in five operations."""
    for head in pl.unroll(4):
        rows, keys = q.shape[0] // 4, k.shape[0] // 4
        s = pl.matmul(
            q[head * rows : (head + 1) * rows, :],
            k[head * keys : (head + 1) * keys, :],
            b_trans=True,
            out_dtype=pl.FP32,
        )
        m = pl.row_max(s)
        d = pl.row_expand_sub(s, m)
        e = pl.exp(d)
        t = pl.row_sum(e)
        p = pl.row_expand_div(e, t)
        c = pl.cast(p, pl.FP16)
        o = pl.matmul(c, v[head * keys : (head + 1) * keys, :], out_dtype=pl.FP32)
        out[head * rows : (head + 1) * rows, :] = o
    return out


@pl.jit
def gated(x: pl.Tensor, wg: pl.Tensor, wu: pl.Tensor, wd: pl.Tensor, out: pl.Out[pl.Tensor]):
    """``rmsnorm(x)``, then ``(silu(n @ wg) * (n @ wu)) @ wd``"""
    squares = x * x
    total = pl.row_sum(squares)
    mean = total * (1.0 / 256.0)
    shifted = mean + 1.0e-5
    scale = pl.rsqrt(shifted)
    n = pl.row_expand_mul(x, scale)
    g = pl.matmul(n, wg)
    u = pl.matmul(n, wu)
    negative = g * -1.0
    powers = pl.exp(negative)
    ones = powers + 1.0
    a = g / ones
    h = a * u
    out[:] = pl.matmul(h, wd)
    return out


def zeros(*shapes: tuple[int, int], dtype: Any = F32) -> list[Any]:
    return [np.zeros(shape, dtype) for shape in shapes]


KERNELS: dict[str, tuple[Any, list[Any]]] = {
    "ffn 128x256x512, f32": (ffn, zeros((128, 256), (256, 512), (1, 512), (512, 256), (1, 256), (128, 256))),
    "ffn 1024x256x512, f16": (
        ffn, zeros((1024, 256), (256, 512), (1, 512), (512, 256), (1, 256), (1024, 256), dtype=F16),
    ),
    "attention 4 heads, 512 keys, f16": (
        attention, [*zeros((4 * 512, 64), (4 * 512, 64), (4 * 512, 64), dtype=F16), *zeros((4 * 512, 64))],
    ),
    "rmsnorm, silu-gated 128x256x512, f32": (
        gated, zeros((128, 256), (256, 512), (256, 512), (512, 256), (128, 256)),
    ),
}  # fmt: skip


def cycles(source: Program, target: Target, forward: bool) -> tuple[float, int]:
    """Modelled cycles and bytes of DDR."""
    if target.family == "cpu":
        native = native_price(lower(source, target, after=UNPLACED, forward=forward), target)
        return native.cycles, native.ddr
    price = price_of(lower(source, target, after="legalize_moves", forward=forward), target)
    return simulate(lower(source, target, forward=forward), target).cycles, price.ddr


def line(name: str, target: Target, why: bool) -> list[str]:
    kernel, arguments = KERNELS[name]
    source = kernel.program(*arguments)
    hands = explain(source, target).hands
    tensors = {(hand.tensor, hand.line) for hand in hands}
    stay = {(hand.tensor, hand.line) for hand in hands if hand.kept}
    before, bytes_before = cycles(source, target, False)
    after, bytes_after = cycles(source, target, True)
    found = [
        f"{name:<38} {target.name:<12} {len(tensors - stay):>4} of {len(tensors):<4}"
        f" {bytes_before / 1e6:>8.2f} -> {bytes_after / 1e6:>7.2f} MB"
        f" {before:>12,.0f} -> {after:>11,.0f} ({after / before:.2f})"
    ]
    if why:
        found += [f"    {hand.tensor} ({hand.producer} -> {hand.consumer}): {hand.why}" for hand in hands if hand.why]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="What forwarding saves.")
    parser.add_argument("--target", default="ascend910b,ascend950,host")
    parser.add_argument("--why", action="store_true", help="say why a tensor stays in DDR")
    options = parser.parse_args()
    print(f"{'kernel':<38} {'target':<12} {'removed':>12} {'DDR':>20} {'cycles, modelled':>32}")
    for name in KERNELS:
        for target in options.target.split(","):
            print("\n".join(line(name, load_target(target), options.why)), flush=True)


if __name__ == "__main__":
    main()
