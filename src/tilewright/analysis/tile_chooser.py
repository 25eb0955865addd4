"""The tile chooser: how a matmul is cut so that it fits and costs the fewest cycles.

`choose_l0_tile` searches every legal tile (m, n, k), what stays put (A, B or the output) and whether one accumulator
or two are used, and takes the cheapest by a roofline: loads, multiplications and drains, overlapped as the schedule
overlaps them. It is a function of its arguments alone and is cached by them.

Left out of the search is only what cannot win. Of all m with one number of tiles the smallest costs no more in any
term, takes the least room and wastes the least. The same holds of n and k, but for a larger n that drains faster and a
larger k that fills the engine's boxes better, which stay. And with K whole, holding the output costs what holding an
operand does and takes more room.

Refuses, with `CapacityError`, a problem of which not even the smallest box fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np

from tilewright.analysis.tile_model import (
    L0,
    PANELS,
    Breakdown,
    Buffers,
    Floats,
    Ints,
    Level,
    Part,
    Problem,
    Stationary,
    TileModel,
    alignment,
    roofline,
    round_up,
    tiles,
)
from tilewright.errors import CapacityError
from tilewright.targets import Target

__all__ = [
    "L0", "PANELS", "Breakdown", "L0Tile", "Level", "Problem", "Stationary", "alignment", "choose_l0_tile", "roofline",
]  # fmt: skip

QUANTUM = 1024
"""Cycles are compared in parts of so many, so that the order in which floats were added decides nothing."""

ORDER = tuple(Stationary)

RANKED = 24
"""Points among which somebody may decide."""


@dataclass(frozen=True, slots=True)
class L0Tile:
    """A chosen tile. `m`, `n`, `k` are whole boxes, and exceed the problem's extents by that rounding at most."""

    m: int
    n: int
    k: int
    stationary: Stationary
    """A or B: K is whole. OUTPUT: a K loop inside each tile of the result"""
    accumulators: int
    lhs_buffers: int
    rhs_buffers: int
    cycles: Breakdown
    """of the whole problem"""
    limit: Literal["load", "multiply", "drain"]
    """the largest term"""
    fallback: bool = False
    """moving operands had no room for all their buffers, so loads wait for multiplications"""
    runner_up: L0Tile | None = None
    """the best of the other extents"""

    def grid(self, problem: Problem) -> tuple[int, int, int]:
        """How many tiles cover m, n and k."""
        return -(-problem.m // self.m), -(-problem.n // self.n), -(-problem.k // self.k)

    def __str__(self) -> str:
        accumulators = "1 accumulator" if self.accumulators == 1 else f"{self.accumulators} accumulators"
        fallback = ", single buffers" if self.fallback else ""
        return (
            f"{self.m} x {self.n} x {self.k}, {self.stationary.value} held, {accumulators}{fallback}: "
            f"{self.cycles.wall:,.0f} cycles"
        )

    def describe(self, problem: Problem) -> str:
        """What `explain --tiles` shows: the point, its cycles, what limits it, and the runner-up."""
        rows, cols, steps = self.grid(problem)
        terms = ("load", self.cycles.load), ("multiply", self.cycles.multiply), ("drain", self.cycles.drain)
        lines = [
            f"matmul {problem}",
            f"  tile       {self}",
            f"  grid       {rows} x {cols} tiles, {steps} K step{'s' * (steps > 1)} each",
            "  cycles     " + ", ".join(f"{name} {cycles:,.0f}" for name, cycles in terms),
            f"  limit      {self.limit}",
        ]
        if self.runner_up is not None:
            more = self.runner_up.cycles.wall / self.cycles.wall - 1
            lines.append(f"  runner-up  {self.runner_up} (+{more:.1%})")
        return "\n".join(lines)


@lru_cache(maxsize=4096)
def choose_l0_tile(problem: Problem, target: Target, level: Level = L0) -> L0Tile:
    """The cheapest tile of `problem` at `level` of `target`.

    Ties go, in this order, to: less padded volume, fewer K steps, less loading, larger m * n, larger k, fewer
    accumulators, A before B before the output, larger m. Operands that move have as many buffers as the target
    streams through; where that leaves no room for the smallest box, fewer (`fallback`).
    Raises `CapacityError`, `NoRouteError` (an operand cannot be brought in), `TargetError` (a memory is missing)."""
    model = TileModel(problem, target, level)
    wanted = target.matmul.moving_buffers
    for moving in range(wanted, 0, -1):
        points = _points(model, moving)
        if points is None:
            continue
        best = _decided(points, target, level) if target.decisions.matter else points.best()
        chosen = points.tile(best, fallback=moving < wanted)
        others = points.others(best)
        if others is None:
            return chosen
        return replace(chosen, runner_up=others.tile(others.best(), fallback=moving < wanted))
    raise _too_small(model)


def _decided(points: Points, target: Target, level: Level) -> int:
    """The point that somebody decided on, else the cheapest."""
    ranked = points.ranked(RANKED)
    options = {points.spelled(index): index for index in ranked}
    name = "tile" if level is L0 else "panels"
    return options[target.decisions.first(f"{name} of {points.problem}", list(options))[0]]


@dataclass(frozen=True, slots=True)
class Points:
    """Legal points of the search, one a column. Never empty."""

    problem: Problem
    where: Ints
    """rows: m, n, k, stationary (index in `ORDER`), accumulators, buffers of the left and of the right operand"""
    cycles: Floats
    """rows: load, multiply, drain, wall"""

    def best(self) -> int:
        """The index of the cheapest point, ties in the stated order."""
        wall = np.rint(self.cycles[3] * QUANTUM)
        tied = np.flatnonzero(wall == wall.min())
        problem, (m, n, k, stationary, accumulators) = self.problem, self.where[:5, tied]
        steps = tiles(problem.k, k)
        volume = tiles(problem.m, m) * m * tiles(problem.n, n) * n * steps * k
        load = np.rint(self.cycles[0, tied] * QUANTUM)
        keys = (volume, steps, load, -m * n, -k, accumulators, stationary, -m)
        return int(tied[np.lexsort(keys[::-1])[0]])

    def ranked(self, count: int) -> list[int]:
        """The cheapest first, then others of different extents by their cycles."""
        best = self.best()
        found = {(int(m), int(n), int(k)): int(at) for at, (m, n, k) in ((best, self.where[:3, best]),)}
        for at in np.argsort(self.cycles[3], kind="stable"):
            if len(found) >= count:
                break
            m, n, k = (int(extent) for extent in self.where[:3, at])
            found.setdefault((m, n, k), int(at))
        return list(found.values())

    def spelled(self, index: int) -> tuple[int | str, ...]:
        """A point as a decision has it: m, n, k, what is held, accumulators."""
        m, n, k, stationary, accumulators = (int(extent) for extent in self.where[:5, index])
        return m, n, k, ORDER[stationary].value, accumulators

    def others(self, index: int) -> Points | None:
        """The points of other extents; None when there are none."""
        at = (self.where[:3] != self.where[:3, index : index + 1]).any(axis=0)
        return Points(self.problem, self.where[:, at], self.cycles[:, at]) if at.any() else None

    def tile(self, index: int, fallback: bool) -> L0Tile:
        """The point at `index`."""
        m, n, k, stationary, accumulators, lhs, rhs = (int(extent) for extent in self.where[:, index])
        cycles = Breakdown(*(float(term) for term in self.cycles[:, index]))
        return L0Tile(m, n, k, ORDER[stationary], accumulators, lhs, rhs, cycles, cycles.limit, fallback)


def _points(model: TileModel, moving: int) -> Points | None:
    """All points with `moving` buffers for a moving operand; None when none fits."""
    found = [points for points in _search(model, moving) if points.where.size]
    if not found:
        return None
    where, cycles = ([getattr(points, name) for points in found] for name in ("where", "cycles"))
    return Points(model.problem, np.concatenate(where, axis=1), np.concatenate(cycles, axis=1))


def _search(model: TileModel, moving: int) -> Iterator[Points]:
    """An operand held, K whole, one accumulator or two; then the output held, K in steps."""
    problem, (m, n, k) = model.problem, _extents(model)
    whole = k[k >= problem.k]
    deepest = min(2, model.target.matmul.max_accumulators, problem.accumulators or 2)
    for accumulators in range(1, deepest + 1):
        # A second accumulator works while the first drains, which takes a second full tile on the moving side.
        several_n = n[problem.n // n >= accumulators] if accumulators > 1 else n
        several_m = m[problem.m // m >= accumulators] if accumulators > 1 else m
        yield _evaluate(model, (m, several_n, whole), Stationary.A, Buffers(1, moving, accumulators))
        yield _evaluate(model, (several_m, n, whole), Stationary.B, Buffers(moving, 1, accumulators))
    yield _evaluate(model, (m, n, k[k < problem.k]), Stationary.OUTPUT, Buffers(moving, moving))


def _evaluate(model: TileModel, extents: tuple[Ints, Ints, Ints], stationary: Stationary, buffers: Buffers) -> Points:
    """The legal ones of all combinations of `extents`, priced."""
    axes = np.ix_(*extents)
    at = np.nonzero(model.fits(axes[0], axes[1], axes[2], buffers))
    m, n, k = (axis[index] for axis, index in zip(extents, at, strict=True))
    load = model.load(m, n, stationary is not Stationary.A, stationary is not Stationary.B)
    multiply, drain = model.multiply(m, n, k), model.drain(m, n)
    overlaps = max(buffers.lhs, buffers.rhs) >= model.target.matmul.moving_buffers
    busy = np.maximum(load, multiply) if overlaps else load + multiply
    wall = busy + drain
    if buffers.acc > 1:
        count = tiles(model.problem.m, m) * tiles(model.problem.n, n)
        wall = np.maximum(busy, drain) + np.minimum(busy, drain) / count
    rest = (ORDER.index(stationary), buffers.acc, buffers.lhs, buffers.rhs)
    where = np.stack([m, n, k, *(np.full_like(m, value) for value in rest)])
    return Points(model.problem, where, np.stack([load, multiply, drain, wall]))


def _extents(model: TileModel) -> tuple[Ints, Ints, Ints]:
    """The candidates for m, n and k, ascending: whole boxes, no larger than the problem, one issue or the memory."""
    problem, lhs, rhs, acc = model.problem, model.lhs, model.rhs, model.acc
    most = (
        min(model.most(lhs) * lhs.rows, model.most(acc) * acc.rows),
        min(model.most(rhs) * rhs.cols, model.most(acc) * acc.cols),
        min(model.most(lhs) * lhs.cols, model.most(rhs) * rhs.rows),
    )
    m, n, k = (
        np.arange(step, min(round_up(extent, step), limit, model.largest) + 1, step, dtype=np.int64)
        for extent, step, limit in zip((problem.m, problem.n, problem.k), model.align, most, strict=True)
    )
    return (
        _undominated(m, problem.m, np.zeros(m.shape)),
        _undominated(n, problem.n, model.drain_of_row(n)),
        _undominated(k, problem.k, model.boxes_k(k)),
    )


def _undominated(candidates: Ints, extent: int, price: Floats | Ints) -> Ints:
    """Of those that give one number of tiles: the smallest, and each that has a lower `price` than all smaller ones.
    `price` is the one term that may fall as the extent grows."""
    count = tiles(extent, candidates)
    kept = np.ones(candidates.shape, np.bool_)
    for begin, end in pairwise((0, *(np.flatnonzero(np.diff(count)) + 1), count.size)):
        lowest = np.minimum.accumulate(price[begin:end])
        kept[begin + 1 : end] = lowest[1:] < lowest[:-1]
    return candidates[kept]


def _too_small(model: TileModel) -> CapacityError:
    """The error for a problem of which not even the smallest box fits, with each memory that is too small."""
    problem = model.problem
    smallest = [np.array(step) for step in model.align]
    logical = [np.array(min(*pair)) for pair in zip((problem.m, problem.n, problem.k), model.align, strict=True)]
    taken: dict[str, int] = {}
    spelled: dict[str, dict[str, str]] = {}
    once = Buffers(1, 1)
    for physical, meant in zip(_parts(model, smallest, once), _parts(model, logical, once), strict=True):
        role, (rows, cols) = physical[0], meant[1]
        taken[role.memory] = taken.get(role.memory, 0) + int(role.nbytes(*physical[1]))
        spelled.setdefault(role.memory, {})[role.space.value] = f"{role.space.value} [{rows}, {cols}]"
    short = [memory for memory in taken if taken[memory] > model.capacity(memory)]
    asked = [f"{' and '.join(spelled[memory].values())}, {taken[memory]} bytes physical" for memory in short]
    held = [
        f"{', '.join(spelled[memory])} {'holds' if len(spelled[memory]) == 1 else 'together hold'} "
        f"{model.capacity(memory)} bytes"
        for memory in short
    ]
    m, n, k = logical
    return CapacityError(
        f"not even the smallest tile of a matmul {problem} fits {model.target.name}",
        required=f"m={m}, n={n}, k={k}: {'; '.join(asked)}",
        found="; ".join(held),
        help="a target whose memories hold one box of each operand and of the accumulator, or a narrower element type",
    )


def _parts(model: TileModel, extents: list[Ints], buffers: Buffers) -> list[Part]:
    m, n, k = extents
    return model.parts(m, n, k, buffers)
