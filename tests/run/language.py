"""Kernels that use one part of the language each, as people write them: each with what NumPy makes of its input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tilewright.language as pl
from tilewright import language

ROWS, COLUMNS = 64, 64
Case = tuple[Any, Callable[[Any], Any], tuple[Any, ...]]
KERNELS: list[Case] = []
"""Kernels with what they compute of their input, and the numbers that they take after `a` and `out`."""
NO_TEXT: list[Any] = []
"""Those of them that launch kernels which return numbers."""
BLOCKS = 4


def computes(meaning: Callable[[Any], Any], *numbers: Any) -> Callable[[Any], Any]:
    def keep(kernel: Any) -> Any:
        KERNELS.append((kernel, lambda a: meaning(a).astype(np.float32), numbers))
        return kernel

    return keep


@computes(lambda a: a + 1)
@pl.jit
def launch_as_a_loop(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.spmd(BLOCKS, name_hint="rows", sync_start=True):
        x = pl.load(a, [i * 16, 0], [16, COLUMNS])
        out = pl.store(x + 1.0, [i * 16, 0], out)
    return out


@computes(lambda a: a + 1)
@pl.jit
def launch_as_a_scope(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.spmd(BLOCKS, name_hint="rows"):
        i = pl.tile.get_block_idx()
        x = pl.load(a, [i * 16, 0], [16, COLUMNS])
        out = pl.store(x + 1.0, [i * 16, 0], out)
    return out


@computes(lambda a: a + 1)
@pl.jit
def blocks_that_take_turns(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.spmd(3):
        for i in pl.range(pl.tile.get_block_idx(), BLOCKS, pl.tile.get_block_num()):
            x = pl.load(a, [i * 16, 0], [16, COLUMNS])
            out = pl.store(x + 1.0, [i * 16, 0], out)
    return out


@computes(lambda a: np.maximum(a @ a, 0) + 1)
@pl.jit
def cluster(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.cluster(name_hint="group"):
        out[:] = pl.relu(a @ a) + 1.0
    return out


@computes(lambda a: (a + 1) * 2)
@pl.jit
def tasks_in_order(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    between = pl.create_tensor([ROWS, COLUMNS], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="first") as first:
        between[:] = a + 1.0
    with pl.at(level=pl.Level.CORE_GROUP, deps=[first], optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):
        out[:] = between * 2.0
    return out


@pl.jit.incore
def raised(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    out[:] = a + 1.0
    return out


@pl.jit.incore
def doubled(out: pl.InOut[pl.Tensor]):
    out[:] = out * 2.0
    return out


@computes(lambda a: (a + 1) * 2)
@pl.jit
def submitted(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    first, task = pl.submit(raised, a, out)
    second, _ = pl.submit(doubled, first, deps=[task])
    return second


@computes(lambda a: a @ a + 1)
@pl.jit
def lanes_above_each_other(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.load(a, [0, 0], [ROWS, COLUMNS])
        product = pl.matmul(x, x)
        for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            half = pl.aiv_shard(product)
            out = pl.store(half + 1.0, [lane * 32, 0], out)
    return out


@computes(lambda a: a @ a + 1)
@pl.jit
def lanes_side_by_side(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.load(a, [0, 0], [ROWS, COLUMNS])
        product = pl.matmul(x, x)
        for _ in pl.split_aiv(2, mode=pl.SplitMode.LEFT_RIGHT):
            half = pl.aiv_shard(product)
            out = pl.store(half + 1.0, [0, pl.get_subblock_idx() * 32], out)
    return out


@computes(lambda a: a + np.arange(ROWS)[:, None] // 32 + 1)
@pl.jit
def lanes_that_share_nothing(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):
            x = pl.load(a, [lane * 32, 0], [32, COLUMNS])
            if lane == 0:
                y = x + 1.0
            else:
                y = x + 2.0
            out = pl.store(y, [lane * 32, 0], out)
    return out


@computes(lambda a: np.maximum(a, 1) @ a)
@pl.jit
def lanes_gathered(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.load(a, [0, 0], [ROWS, COLUMNS])
        for _ in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            half = pl.maximum(pl.aiv_shard(x), 1.0)
            whole = pl.aic_gather(half)
        out = pl.store(pl.matmul(whole, x), [0, 0], out)
    return out


@computes(lambda a: a[[48 + i for i in range(16)] + list(range(16, 64))] * 0 + a + 1)
@pl.jit
def array_of_scalars(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        starts = pl.array.create(4, pl.INT32)
        for i in pl.range(4):
            starts[i] = 48 - i * 16
        starts = pl.array.update_element(starts, 0, 48)
        for i in pl.range(4):
            start = pl.array.get_element(starts, i) + starts[0] - 48
            x = pl.load(a, [start, 0], [16, COLUMNS])
            out = pl.store(x + 1.0, [start, 0], out)
    return out


@computes(lambda a: a + 1)
@pl.jit
def pinned_slots(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        ring = pl.MemRef("ring", slots=2)
        first: pl.Tile[[16, COLUMNS], pl.FP32, ring[1], pl.Mem.Vec] = pl.load(a, [0, 0], [16, COLUMNS])
        out = pl.store(first + 1.0, [0, 0], out)
        for i in pl.range(1, 4):
            x: pl.Tile[[16, COLUMNS], pl.FP32, ring[i % 2], pl.Mem.Vec] = pl.load(a, [i * 16, 0], [16, COLUMNS])
            out = pl.store(x + 1.0, [i * 16, 0], out)
    return out


@pl.jit.incore
def pair(a: pl.Tensor, n: pl.Scalar[pl.INDEX]):
    return a + 1.0, n + 1


@computes(lambda a: a + 5, 3)
@pl.jit
def tuples_and_scalars_that_come_back(a: pl.Tensor, out: pl.Out[pl.Tensor], n: pl.Scalar[pl.INDEX]):
    x, m = pair(a, n)
    for _ in pl.range(m):
        x = x + 1.0
    out[:] = x
    return out


@computes(lambda a: a * (np.arange(ROWS)[:, None] // 32))
@pl.jit
def known_when_read(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    pl.static_assert(a.shape[0] == ROWS, "rows")
    for i in pl.static_range(2):
        out[i * 32 : i * 32 + 32, :] = a[i * 32 : i * 32 + 32, :] * float(i)
    return out


NO_TEXT.append(tuples_and_scalars_that_come_back)


@computes(lambda a: np.maximum(a, 0) + 1)
@pl.jit
def functions_of_a_module(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = language.relu(a) + 1.0
    return out


@computes(lambda a: a + 1)
@pl.jit
def extents_with_names(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    n = pl.dynamic("n")
    a.bind_dynamic(0, n)
    pl.tensor.bind_dynamic(out, 0, n)
    for i in pl.range(n // 16):
        out[i * 16 : i * 16 + 16, :] = a[i * 16 : i * 16 + 16, :] + 1.0
    return out


@computes(lambda a: a[:, ::-1] * 0 + a + 3, 3)
@pl.jit
def loop_left_early(a: pl.Tensor, out: pl.Out[pl.Tensor], n: pl.Scalar[pl.INDEX]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.load(a, [0, 0], [ROWS, COLUMNS])
        for i in pl.range(10):
            if i == n:
                break
            x = x + 1.0
        out = pl.store(x, [0, 0], out)
    return out


@computes(lambda a: a + 6, 3)
@pl.jit
def nested_loops_with_several_carries(a: pl.Tensor, out: pl.Out[pl.Tensor], n: pl.Scalar[pl.INDEX]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.load(a, [0, 0], [ROWS, COLUMNS])
        y = x * 0.0
        for _, (p, q, s) in pl.range(2, init_values=(x, y, 0)):
            for _, (r, t) in pl.range(n, init_values=(p, s)):
                r1, t1 = pl.yield_(r + 1.0, t + 1)
            p1, q1, s1 = pl.yield_(r1, q + 0.0, t1)
        while s1 > 6:
            s1 = s1 - 1
        out = pl.store(p1 + q1, [0, 0], out)
    return out


@pl.jit.incore
def one_block(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    i = pl.tile.get_block_idx()
    x = pl.load(a, [i * 16, 0], [16, COLUMNS])
    out = pl.store(x + 1.0, [i * 16, 0], out)
    return out


@pl.jit.inline
def every_other_block(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    if pl.tile.get_block_idx() % 2 == 0:
        out = one_block(a, out)
    return out


@computes(lambda a: a + 1)
@pl.jit
def kernels_that_are_blocks(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.spmd(BLOCKS):
        out = one_block(a, out)
    return out


@computes(lambda a: np.where(np.arange(ROWS)[:, None] // 16 % 2 == 0, a + 1, a))
@pl.jit
def inlined_blocks(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    out[:] = a
    with pl.spmd(BLOCKS):
        out = every_other_block(a, out)
    return out


@computes(lambda a: a * 2, 1)
@pl.jit
def returned_early(a: pl.Tensor, out: pl.Out[pl.Tensor], n: int):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.load(a, [0, 0], [ROWS, COLUMNS])
        if n == 0:
            if COLUMNS > 3:
                return pl.store(x, [0, 0], out)
        out = pl.store(x * 2.0, [0, 0], out)
        return out


@computes(lambda a: a - a[0, 0] if a[0, 0] + 2 > 0 else a + 2)
@pl.jit
def returned_early_by_what_is_read(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.load(a, [0, 0], [ROWS, COLUMNS])
        if pl.read(x, [0, 0]) > 100.0:
            out = pl.store(x * 2.0, [0, 0], out)
            return out
        for i in pl.range(4):
            if i == 2:
                break
            x = x + 1.0
        while pl.read(x, [0, 0]) > 0.0:
            x = x - 1.0
        out = pl.store(x, [0, 0], out)
    return out


@computes(lambda a: np.where(np.arange(ROWS)[:, None] < 48, a + 1, a))
@pl.jit
def sections_in_a_while_loop(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    out[:] = a
    i = 0
    while True:
        out[i * 16 : i * 16 + 16, :] = a[i * 16 : i * 16 + 16, :] + 1.0
        i += 1
        if i == 3:
            break
    return out


@computes(lambda a: np.maximum(a @ a, 0))
@pl.jit
def both_kinds_of_core_in_blocks(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.spmd(2):
        block = pl.tile.get_block_idx()
        product = pl.matmul(pl.load(a, [block * 32, 0], [32, COLUMNS]), pl.load(a, [0, 0], [ROWS, COLUMNS]))
        for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            half = pl.aiv_shard(product)
            for p in pl.pipeline(2, stage=2):
                part = pl.slice(half, [8, COLUMNS], [p * 8, 0])
                out = pl.store(pl.relu(part), [block * 32 + lane * 16 + p * 8, 0], out)
    return out


@computes(lambda a: np.where(np.arange(COLUMNS) < 32, a + 1, np.where(np.arange(ROWS)[:, None] // 16 == 1, a, a * 2)))
@pl.jit
def independent_trips_that_skip(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    out[:] = a
    for i in pl.parallel(0, ROWS, 16):
        for j in pl.range(2):
            if j == 1:
                continue
            out[i : i + 16, j * 32 : j * 32 + 32] = a[i : i + 16, j * 32 : j * 32 + 32] + 1.0
        if i == 16:
            continue
        out[i : i + 16, 32:64] = a[i : i + 16, 32:64] * 2.0
    return out


# What a kernel may say and a type checker does not know: names of a loop's last trip, slots of a buffer.
# pyright: reportPossiblyUnboundVariable=false, reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false
