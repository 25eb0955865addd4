"""The parts that a target is made of: memories, edges between them, engines, and the prices of work.

All are frozen and hold data only. Figures come from a target's file, where the source of each stands beside it
("public", "device sweep", "assumed"); nothing here knows a particular machine. Units: bytes, cycles of the core.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import TypeVar

from tilewright.ir.dtypes import DType
from tilewright.ir.layout import COL_MAJOR, NZ, NZ_ACC, ROW_MAJOR, ZN, BLayout, Layout, MemorySpace, SLayout

T = TypeVar("T")

LAYOUTS: Mapping[str, Layout] = {
    "row_major": ROW_MAJOR,
    "col_major": COL_MAJOR,
    "nz": NZ,
    "zn": ZN,
    "nz_acc": NZ_ACC,
    "left_scale": Layout(BLayout.ROW_MAJOR, SLayout.ROW_MAJOR, 32),
    "right_scale": Layout(BLayout.COL_MAJOR, SLayout.COL_MAJOR, 32),
}
"""The layouts that a target file can name."""

DDR = "DDR"
"""The name of the memory outside the chip; every target has it, unbounded and on no core."""


@dataclass(frozen=True, slots=True)
class Extent:
    """One side of a box: a number of elements, or of bytes (``"64B"`` in a file) that the element size divides."""

    count: int
    in_bytes: bool = False

    def elements(self, dtype: DType) -> int:
        """How many elements of `dtype` the side holds, at least one."""
        return max(1, self.count * 8 // dtype.bits) if self.in_bytes else self.count


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory of the machine."""

    name: str
    capacity: int | None
    """bytes that tiles may occupy; None: unbounded (DDR)"""
    physical: int | None
    """bytes that are there; more than `capacity` where some are reserved"""
    alignment: int
    """bytes; a tile's address is a multiple of it"""
    layout: Layout | None
    """how tiles lie in it; None: as the role implies (`tilewright.ir.layout.implied_layout`)"""
    row_bytes: int
    """an unboxed tile's contiguous side is a multiple of so many bytes; 1: no rule"""
    box: tuple[Extent, Extent] | None
    """multiples of rows and columns, in place of those that the layout's box gives"""
    row_multiple: Mapping[DType, int]
    """further multiples of the number of rows, per element type"""
    core: str | None
    """the kind of core that it belongs to; None: shared by all"""
    rank: int
    """0 seen by all cores, 1 by the lanes of one core, 2 by one lane: what threads share (compaction)"""
    register_base: int | None = None
    """where it is made of registers: the number of its first; a tile's register is base + address // register_bytes"""
    register_bytes: int = 0
    cache_level: int | None = None
    """where it stands in a cache: the level, and the share of it that tiles may use; read on the host"""
    cache_share: float = 1.0


@dataclass(frozen=True, slots=True)
class Drain:
    """Cycles of moving one accumulator tile out of its memory, which grow with rows rather than with bytes."""

    start: float
    row: float
    """cycles per row, at least"""
    bytes_per_cycle: float
    odd: float
    """cycles per row for each odd multiple of `columns` beyond the first"""
    columns: int = 8

    def cycles(self, m: int, n: int, nbytes: int = 4) -> float:
        """``start + m * max(row, n * nbytes / bytes_per_cycle) + odd * m * (odd part of ceil(n / columns) - 1)``."""
        blocks = max(1, ceil(n / self.columns))
        odd_part = blocks // (blocks & -blocks)
        return self.start + m * max(self.row, nbytes * n / self.bytes_per_cycle) + self.odd * m * (odd_part - 1)


@dataclass(frozen=True, slots=True)
class Edge:
    """One way that data can go, from one memory to another (or within one)."""

    src: str
    dst: str
    """names of memories, not roles"""
    engine: str
    core: str | None
    """the kind of core whose engine does it"""
    bytes_per_cycle: float | None
    """None where `drain` gives the price"""
    latency: float
    dtypes: frozenset[DType]
    """element types that pass unchanged"""
    convert: frozenset[tuple[DType, DType]]
    """(from, to) that the edge converts on the way, rounding to nearest even"""
    rescale: frozenset[tuple[DType, DType]]
    """(from, to) that it converts only with a scale; never part of a route"""
    layouts: frozenset[tuple[Layout, Layout]] | None
    """(from, to) that it can rearrange; None: whatever the two memories hold"""
    drain: Drain | None
    assumed: bool
    """no public figure stands behind the price"""

    def carries(self, dtype: DType, to_dtype: DType) -> bool:
        """Whether `dtype` may go in and `to_dtype` come out."""
        return dtype in self.dtypes if dtype is to_dtype else (dtype, to_dtype) in self.convert

    def rearranges(self, src: Layout, dst: Layout) -> bool:
        """Whether a tile laid out as `src` can arrive laid out as `dst`."""
        return self.layouts is None or (src, dst) in self.layouts

    def cycles(self, nbytes: float, shape: tuple[int, int] | None = None) -> float:
        """Cycles to move `nbytes`, latency included. A drain needs the tile's (rows, columns); without them it is
        priced as rows of 128 four-byte elements."""
        if self.drain is not None:
            m, n = shape or (max(1, ceil(nbytes / 512)), 128)
            return self.latency + self.drain.cycles(m, n, max(1, round(nbytes / max(1, m * n))) if shape else 4)
        assert self.bytes_per_cycle is not None  # the loader demands one of the two
        return self.latency + nbytes / self.bytes_per_cycle


@dataclass(frozen=True, slots=True)
class Engine:
    """Something that works in order, beside the other engines of its core."""

    name: str
    cores: tuple[str, ...]
    """kinds of core that have one"""
    does: frozenset[str]
    """classes of work: ``matmul``, ``vector``, ``scalar``; moves are tied to engines by their edges"""


@dataclass(frozen=True, slots=True)
class MatmulType:
    """Element types that the matrix engine takes together: ``acc <- lhs, rhs``."""

    acc: DType
    lhs: DType
    rhs: DType
    scaled: bool = False
    """with block scales (MX) on both operands"""


@dataclass(frozen=True, slots=True)
class MatmulPrice:
    """One issue costs ``head + passes * ceil(m / box_m) * ceil(n / box_n) * ceil(k * size / box_k_bytes)`` cycles."""

    head: float
    box_m: int
    box_n: int
    box_k_bytes: int
    passes: Mapping[DType, float]
    """cycles per box, by the operands' element type"""
    default_passes: float
    moving_buffers: int
    """buffers of an operand that is streamed while the other is held (the tile chooser)"""
    max_accumulators: int
    """how many accumulators the tile chooser may alternate"""
    max_extent: int
    """largest m, n or k of one issue"""

    def cycles(self, m: int, n: int, k: int, dtype: DType) -> float:
        """Cycles of one issue on operands of `dtype`."""
        passes = self.passes.get(dtype, self.default_passes)
        k_boxes = ceil(k * dtype.bits / (8 * self.box_k_bytes))
        return self.head + passes * ceil(m / self.box_m) * ceil(n / self.box_n) * k_boxes


PRICE_OF_KIND: Mapping[str, str] = {
    "add": "binary", "sub": "binary", "mul": "binary", "max": "binary", "min": "binary", "bitwise": "binary",
    "compare": "binary", "neg": "unary", "abs": "unary", "relu": "unary", "expand": "unary", "fill": "move",
    "div": "transcendental", "exp": "transcendental", "log": "transcendental", "sqrt": "transcendental",
    "rsqrt": "transcendental", "recip": "transcendental",
}  # fmt: skip
"""Kinds of vector work that share the price of another; a file may still price them on their own."""


@dataclass(frozen=True, slots=True)
class VectorPrice:
    """One vector operation costs ``start + ceil(bytes / width) * repeat + completion`` cycles."""

    start: float
    width: int
    """bytes per repeat"""
    repeat: Mapping[str, Mapping[DType | None, float]]
    """by kind of work, then by element type; None is every other type"""
    completion: Mapping[str, float]
    scalar: float
    """cycles of one scalar operation"""

    def cycles(self, kind: str, nbytes: float, dtype: DType) -> float:
        """Cycles of one operation of `kind` on `nbytes` of `dtype`. A kind with no price of its own costs what
        `PRICE_OF_KIND` says, at last what ``binary`` does."""
        if kind == "none":
            return 0.0
        rates = _priced(self.repeat, kind) or {None: 1.0}
        rate = rates.get(dtype, rates.get(None, max(rates.values())))
        return self.start + ceil(nbytes / self.width) * rate + (_priced(self.completion, kind) or 0.0)


def _priced(table: Mapping[str, T], kind: str) -> T | None:
    """The entry of `kind`, of the kind whose price it shares, or of ``binary``."""
    for name in (kind, PRICE_OF_KIND.get(kind, "binary"), "binary"):
        if name in table:
            return table[name]
    return None


@dataclass(frozen=True, slots=True)
class CastTable:
    """Which element types the machine turns into which by one instruction; None: any into any."""

    native: Mapping[DType, tuple[DType, ...]] | None = None
    assumed: bool = False

    def is_native(self, src: DType, dst: DType) -> bool:
        return src is dst or self.native is None or dst in self.native.get(src, ())

    def chain(self, src: DType, dst: DType) -> list[DType] | None:
        """The types to cast to, one after the other, `dst` last; [] when nothing is to do, None when there is no way.
        The shortest chain; of several, the one through the widest types, then the one named first in the table."""
        if src is dst:
            return []
        if self.native is None:
            return [dst]
        paths: list[list[DType]] = [[src]]
        seen = {src}
        while paths:
            longer = [[*path, to] for path in paths for to in self.native.get(path[-1], ()) if to not in seen]
            found = [path[1:] for path in longer if path[-1] is dst]
            if found:
                return max(found, key=lambda steps: sum(step.bits for step in steps))
            seen |= {path[-1] for path in longer}
            paths = longer
        return None


@dataclass(frozen=True, slots=True)
class DTypeRules:
    """What the engines compute on. Vector rules are keyed by kind of work; None: every type."""

    held: frozenset[DType]
    """element types that tiles may have"""
    vector: Mapping[str, frozenset[DType]] = field(default_factory=dict[str, frozenset[DType]])
    matmul: tuple[MatmulType, ...] = ()

    def vector_dtypes(self, kind: str, scalar: bool = False) -> frozenset[DType]:
        """Element types of vector work of `kind` (``scalar``: one operand is a scalar). A kind without a rule of its
        own follows that of ``scalar`` forms, then its price class, then ``arithmetic``, then all that is held."""
        if kind in ("move", "none", "scalar"):  # a single element is what the tile holds
            return self.held
        names = [f"scalar_{kind}", "scalar"] if scalar else []
        for name in (*names, kind, PRICE_OF_KIND.get(kind, kind), "arithmetic"):
            if name in self.vector:
                return self.vector[name]
        return self.held


@dataclass(frozen=True, slots=True)
class Hop:
    """One move of a route, between two roles, over one edge."""

    src: MemorySpace
    dst: MemorySpace
    edge: Edge
    dtype: DType
    """of the elements that go in"""
    to_dtype: DType
    """of the elements that come out"""


@dataclass(frozen=True, slots=True)
class Route:
    """The cheapest way between two roles; no hops where both stand for one memory."""

    hops: tuple[Hop, ...]
    cost: float
    """cycles, for the bytes that were asked about"""

    @property
    def spaces(self) -> tuple[MemorySpace, ...]:
        """Every role on the way, both ends included; empty when there is no hop."""
        return () if not self.hops else (self.hops[0].src, *(hop.dst for hop in self.hops))

    def __str__(self) -> str:
        return " -> ".join(space.value for space in self.spaces) or "in place"
