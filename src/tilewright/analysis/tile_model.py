"""What a matmul costs when it is cut into tiles: the machine, as the tile chooser sees it.

A `Problem` is one matmul. A `TileModel` answers two questions about it on one target, for arrays of tiles at once:
which tiles fit, with how many buffers each, and how many cycles loads, multiplications and drains take. Bytes come
from `analysis.footprint` (of one box, times the number of boxes), prices from the target. Units: elements for extents,
bytes, cycles of the core.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from math import lcm
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tilewright.analysis.footprint import footprint
from tilewright.errors import ShapeError
from tilewright.ir.dtypes import DType
from tilewright.ir.layout import MemorySpace
from tilewright.ir.types import TileType
from tilewright.targets import NOMINAL, Target

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Stationary(Enum):
    """What stays where it is while the rest streams past it."""

    A = "A"
    """the left operand's rows, whole along K; the right operand moves"""
    B = "B"
    """the right operand's columns, whole along K; the left operand moves"""
    OUTPUT = "output"
    """the accumulator; both operands move, K block by K block"""


@dataclass(frozen=True, slots=True)
class Level:
    """Which memories a tile's parts lie in, and from where the operands come."""

    lhs: MemorySpace
    rhs: MemorySpace
    acc: MemorySpace
    bias: MemorySpace
    source: MemorySpace
    """for an operand whose own memory plays this role too: DDR"""
    step: int = 1
    """extents are multiples of this as well as of the boxes"""
    one_issue: bool = True
    """a tile is one issue of the matrix engine, which limits its extents"""


L0 = Level(MemorySpace.LEFT, MemorySpace.RIGHT, MemorySpace.ACC, MemorySpace.BIAS, MemorySpace.MAT)
"""Tiles for the matrix engine: on a CPU, for its registers."""

PANELS = Level(
    MemorySpace.MAT, MemorySpace.MAT, MemorySpace.VEC, MemorySpace.VEC, MemorySpace.DDR, step=16, one_issue=False
)
"""Blocks for a cache: packed panels of both operands, and the block of the result that they add to."""


@dataclass(frozen=True, slots=True)
class Problem:
    """``[m, k] @ [k, n]``: logical extents, one entry of a batch. Raises `ShapeError` for an extent below 1."""

    m: int
    n: int
    k: int
    dtype: DType
    """of the left operand, and of the right one unless `rhs_dtype` says otherwise"""
    acc_dtype: DType
    bias: bool = False
    """whether the sum starts from a row [1, n] of `acc_dtype`"""
    rhs_dtype: DType | None = field(default=None, kw_only=True)
    a_trans: bool = field(default=False, kw_only=True)
    """the left operand lies in its source as [k, m], whose boxes `m` and `k` must respect as well"""
    b_trans: bool = field(default=False, kw_only=True)
    accumulators: int | None = field(default=None, kw_only=True)
    """at most so many; None: as many as the target alternates"""

    def __post_init__(self) -> None:
        if min(self.m, self.n, self.k) < 1:
            raise ShapeError(
                "a matmul needs at least one row, one column and one term",
                required="extents of 1 or more",
                found=f"m={self.m}, n={self.n}, k={self.k}",
                help="leave out a matmul of nothing, or clear its result",
            )

    @property
    def rhs(self) -> DType:
        """Element type of the right operand."""
        return self.rhs_dtype or self.dtype

    def __str__(self) -> str:
        bias = " + bias" if self.bias else ""
        return f"{self.m} x {self.n} x {self.k} {self.dtype} -> {self.acc_dtype}{bias}"


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Cycles of a whole problem. `wall` is what remains after loads, multiplications and drains have overlapped."""

    load: float
    multiply: float
    drain: float
    wall: float

    @property
    def limit(self) -> Literal["load", "multiply", "drain"]:
        """The largest of the three terms; of equal ones the first named."""
        if self.load >= max(self.multiply, self.drain):
            return "load"
        return "multiply" if self.multiply >= self.drain else "drain"


@dataclass(frozen=True, slots=True)
class Role:
    """One part of a tile in its memory: how many boxes an extent takes, and what they weigh."""

    space: MemorySpace
    memory: str
    rows: int
    cols: int
    bytes_of_8: int
    """bytes of eight boxes, so that elements under a byte keep their size"""
    alignment: int

    @staticmethod
    def of(space: MemorySpace, dtype: DType, target: Target, shape: tuple[int, int] = (2, 2)) -> Role:
        """The role of `space`; `shape` with a 1 in it for a vector, which is not rounded up across."""
        memory = target.memory(space)
        rows, cols = target.box(space, target.layout(space, shape), dtype, shape)
        eight = footprint(TileType((8, rows, cols), dtype, space), target)
        return Role(space, memory.name, rows, cols, eight, memory.alignment)

    def nbytes(self, rows: Ints, cols: Ints) -> Ints:
        """Bytes of tiles of `rows` x `cols`, up to the address where the next may begin."""
        boxes = -(-rows // self.rows) * -(-cols // self.cols)
        exact = -(-boxes * self.bytes_of_8 // 8)
        return -(-exact // self.alignment) * self.alignment


@dataclass(frozen=True, slots=True)
class Buffers:
    """How many buffers each part of a tile has."""

    lhs: int
    rhs: int
    acc: int = 1


Part = tuple[Role, tuple[Ints, Ints], int]
"""A role, its rows and columns, and how many buffers it has."""


class TileModel:
    """Feasibility and prices of the tiles of one problem. Arrays broadcast against each other.

    Raises `TargetError` for a role that the target lacks, `NoRouteError` where no path brings an operand in."""

    def __init__(self, problem: Problem, target: Target, level: Level) -> None:
        self.problem, self.target, self.level = problem, target, level
        self.align = _alignment(problem, target, level, rounded=True)
        self.lhs = Role.of(level.lhs, problem.dtype, target)
        self.rhs = Role.of(level.rhs, problem.rhs, target)
        self.acc = Role.of(level.acc, problem.acc_dtype, target)
        self.bias = Role.of(level.bias, problem.acc_dtype, target, (1, 2)) if problem.bias else None
        # Cycles of bringing each operand in once.
        self.lhs_cycles = problem.m * problem.k * _feed(level.lhs, problem.dtype, target, level)
        self.rhs_cycles = problem.k * problem.n * _feed(level.rhs, problem.rhs, target, level)
        self.acc_bytes = problem.acc_dtype.nbytes
        self.drain_formula = target.drain() if level.acc is MemorySpace.ACC else None
        self.ways_out = _ways_out(self.acc, problem.acc_dtype, target)
        self.largest = target.matmul.max_extent if level.one_issue else 1 << 30
        if not self.smallest_fits():
            self.align = _alignment(problem, target, level, rounded=False)

    # --- what fits ------------------------------------------------------------------------------------------------
    def parts(self, m: Ints, n: Ints, k: Ints, buffers: Buffers) -> list[Part]:
        """What a tile is made of."""
        parts = [(self.lhs, (m, k), buffers.lhs), (self.rhs, (k, n), buffers.rhs), (self.acc, (m, n), buffers.acc)]
        if self.bias is not None:
            parts.append((self.bias, (np.ones_like(n), n), 1))
        return parts

    def fits(self, m: Ints, n: Ints, k: Ints, buffers: Buffers) -> Mask:
        """Which tiles fit every memory, roles of one memory taken together."""
        taken: dict[str, Ints] = {}
        for role, (rows, cols), count in self.parts(m, n, k, buffers):
            nbytes = role.nbytes(rows, cols) * count
            taken[role.memory] = taken[role.memory] + nbytes if role.memory in taken else nbytes
        fit = np.ones(np.broadcast_shapes(m.shape, n.shape, k.shape), np.bool_)
        for memory, nbytes in taken.items():
            fit &= nbytes <= self.capacity(memory)
        return fit

    def smallest_fits(self) -> bool:
        """Whether there is room for one box of each part."""
        m, n, k = (np.array(step) for step in self.align)
        return bool(self.fits(m, n, k, Buffers(1, 1)))

    def capacity(self, memory: str) -> int:
        """Bytes that the memory of that name holds."""
        return self.target.capacity(self.target.roles_of(memory)[0])

    def most(self, role: Role) -> int:
        """How many boxes of `role` its memory holds."""
        return self.target.capacity(role.space) * 8 // role.bytes_of_8

    # --- what it costs ----------------------------------------------------------------------------------------------
    def multiply(self, m: Ints, n: Ints, k: Ints) -> Floats:
        """Every tile in every K step: the head of each issue, then its boxes."""
        problem, price = self.problem, self.target.matmul
        passes = price.passes.get(problem.dtype, price.default_passes)
        boxes = -(-m // price.box_m) * -(-n // price.box_n) * self.boxes_k(k)
        return tiles(problem.m, m) * tiles(problem.n, n) * (tiles(problem.k, k) * price.head + passes * boxes)

    def boxes_k(self, k: Ints) -> Ints:
        """The engine's boxes along all of K in steps of `k`, the last step at its own width."""
        steps, tail = self.problem.k // k, self.problem.k % k
        bits, box_bits = self.problem.dtype.bits, 8 * self.target.matmul.box_k_bytes
        return steps * -(-k * bits // box_bits) - (-tail * bits // box_bits)

    def load(self, m: Ints, n: Ints, lhs_moves: bool, rhs_moves: bool) -> Floats:
        """Bytes of each operand over the rate of its way in; one that moves comes again for every tile of the other
        side."""
        lhs = self.lhs_cycles * (tiles(self.problem.n, n) if lhs_moves else np.ones_like(n))
        rhs = self.rhs_cycles * (tiles(self.problem.m, m) if rhs_moves else np.ones_like(m))
        return lhs + rhs

    def drain(self, m: Ints, n: Ints) -> Floats:
        """Every accumulator tile on its way out."""
        count = tiles(self.problem.m, m) * tiles(self.problem.n, n)
        if self.drain_formula is not None:
            return count * (self.drain_formula.start + m * self.drain_of_row(n))
        prices = [latency + m * n * self.acc_bytes * rate for rate, latency in self.ways_out]
        return count * np.minimum.reduce(prices) if prices else np.zeros(count.shape)

    def drain_of_row(self, n: Ints) -> Floats:
        """What each further row adds to the drain of a tile of `n` columns: by the target's formula, which may favour
        certain widths. 0 where the target has no formula, so that the price only ever grows with the width."""
        formula = self.drain_formula
        if formula is None:
            return np.zeros(n.shape)
        widths, where = np.unique(n, return_inverse=True)
        rows = [formula.cycles(1, int(width), self.acc_bytes) - formula.start for width in widths]
        return np.array(rows, np.float64)[where]


def tiles(extent: int, tile: Ints) -> Ints:
    """How many tiles cover `extent`."""
    return -(-extent // tile)


def alignment(problem: Problem, target: Target, level: Level = L0) -> tuple[int, int, int]:
    """What m, n and k are multiples of: the boxes of both operands in every space that they pass through on the way
    to `level`. The rows that an accumulator is rounded up to are in its footprint, not here.

    Where not even one such multiple fits, a memory on the way counts only if its box is that of its layout, hence the
    smallest piece that can be addressed: multiples that a target file asks of a memory only round up what it holds."""
    return TileModel(problem, target, level).align


def _alignment(problem: Problem, target: Target, level: Level, rounded: bool) -> tuple[int, int, int]:
    """`alignment`; `rounded`: the multiples that target files ask for count on the way too."""
    m = n = k = level.step
    for space in _spaces(level.lhs, problem.dtype, target, level):
        if space is level.lhs or rounded or target.memory(space).box is None:
            rows, cols = _box(space, problem.dtype, target)
            m, k = lcm(m, rows), lcm(k, cols)
            if problem.a_trans and space is not level.lhs:
                m, k = lcm(m, cols), lcm(k, rows)
    for space in _spaces(level.rhs, problem.rhs, target, level):
        if space is level.rhs or rounded or target.memory(space).box is None:
            rows, cols = _box(space, problem.rhs, target)
            k, n = lcm(k, rows), lcm(n, cols)
            if problem.b_trans and space is not level.rhs:
                k, n = lcm(k, cols), lcm(n, rows)
    return m, n, k


def roofline(problem: Problem, target: Target, level: Level = L0) -> Breakdown:
    """The machine's limit: each term at full rate, as if nothing else took time. Every operand byte comes in once, the
    engine multiplies the fewest whole boxes and never pauses to start, results leave at the highest bandwidth. `wall`
    is the largest term; no tiling is faster."""
    model = TileModel(problem, target, level)
    price = target.matmul
    passes = price.passes.get(problem.dtype, price.default_passes)
    boxes = -(-problem.m // price.box_m) * -(-problem.n // price.box_n)
    multiply = passes * boxes * -(-problem.k * problem.dtype.bits // (8 * price.box_k_bytes))
    load = model.lhs_cycles + model.rhs_cycles
    rate = min((rate for rate, _ in model.ways_out), default=0.0)
    if model.drain_formula is not None:
        rate = 1 / model.drain_formula.bytes_per_cycle
    drain = problem.m * problem.n * model.acc_bytes * rate
    return Breakdown(load, multiply, drain, max(load, multiply, drain))


def _box(space: MemorySpace, dtype: DType, target: Target) -> tuple[int, int]:
    """The box of a tile of more than one row and column in `space`."""
    return target.box(space, target.layout(space, (2, 2)), dtype)


def _source(space: MemorySpace, target: Target, level: Level) -> MemorySpace:
    """Where an operand in `space` comes from: the level's source if that is another memory, else DDR."""
    other = target.has(level.source) and not target.same_memory(level.source, space)
    return level.source if other else MemorySpace.DDR


def _spaces(space: MemorySpace, dtype: DType, target: Target, level: Level) -> tuple[MemorySpace, ...]:
    """The spaces on the chip that an operand passes through, `space` last."""
    target.memory(space)  # a role that the machine lacks is that mistake, not a missing route
    source = _source(space, target, level)
    route = target.route(source, space, dtype)
    if route is None:
        raise target.no_route(source, space, dtype)
    passed = tuple(step for step in route.spaces if step not in (MemorySpace.DDR, space))
    return (*passed, space)


def _feed(space: MemorySpace, dtype: DType, target: Target, level: Level) -> float:
    """Cycles per element of bringing an operand into `space`."""
    return dtype.bits / 8 * _way(_source(space, target, level), space, dtype, target)[0]


def _way(src: MemorySpace, dst: MemorySpace, dtype: DType, target: Target) -> tuple[float, float]:
    """Cycles per byte, and the latency, of the route between two spaces."""
    route = target.route(src, dst, dtype)
    if route is None:
        raise target.no_route(src, dst, dtype)
    rate = latency = 0.0
    for hop in route.hops:
        edge = hop.edge
        rate += 1 / edge.bytes_per_cycle if edge.bytes_per_cycle else edge.cycles(NOMINAL) / NOMINAL
        latency += edge.latency
    return rate, latency


def _ways_out(acc: Role, dtype: DType, target: Target) -> list[tuple[float, float]]:
    """Cycles per byte, and the latency, of the ways on which results may leave: for an accumulator every edge (as
    `Target.drain_cycles` has it), for another memory the route to DDR."""
    if acc.space is not MemorySpace.ACC:
        return [_way(acc.space, MemorySpace.DDR, dtype, target)]
    edges = [edge for edge in target.edges if edge.src == acc.memory]
    return [(1 / edge.bytes_per_cycle, edge.latency) for edge in edges if edge.bytes_per_cycle]


def round_up(extent: int, step: int) -> int:
    """`extent`, or the next multiple of `step` above it."""
    return -(-extent // step) * step
