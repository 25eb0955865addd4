"""What launches cost, so that a program with a join can be compared with the one without it.

The price is taken of a program whose moves are legal: every tile has a space, every statement a cost in cycles
(`analysis.cost`). Work items are dealt out over the cores of the kind that runs them, and the busiest core counts. Its
engines overlap in part: the price is the mean of what it would take if all of them did (the busiest engine alone) and
if none did (their sum). Launches follow each other. The memory that all cores share is a limit of its own:
the bytes of all launches at the rate that the target states for it. Tails count as whole blocks and trips that only a
run shows count once, on both sides of a comparison alike."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.analysis.cost import cost_of
from tilewright.analysis.work_items import work_items
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.nodes import Block, For, If, Let
from tilewright.ir.op import Op
from tilewright.ir.types import TensorType
from tilewright.targets import Target


@dataclass(frozen=True, slots=True)
class Price:
    """`cycles` of the busiest core, launch after launch (modelled); bytes read from and written to DDR by all cores."""

    cycles: float = 0.0
    ddr_in: int = 0
    ddr_out: int = 0

    @property
    def ddr(self) -> int:
        return self.ddr_in + self.ddr_out

    def __add__(self, other: Price) -> Price:
        return Price(self.cycles + other.cycles, self.ddr_in + other.ddr_in, self.ddr_out + other.ddr_out)

    def __str__(self) -> str:
        return f"{self.cycles:,.0f} cycles, {self.ddr:,} bytes of DDR"


def price_of(program: Program, target: Target) -> Price:
    """The price of launching each section of `program` once. Requires placed tiles and legal moves. Linear."""
    total = Price()
    for function in program.functions:
        if function.kind is FunctionKind.INCORE:
            total += _Launch(function, target).price()
    return total


MACS = 16.0
"""Multiply-adds a cycle of native code, of every element type (assumed)."""
PACK = 1.0
"""Cycles for packing one element of a product's right operand, which native code does for each product (assumed)."""
BYTES = 5.0
"""Bytes a cycle between a tensor and the caches (measured, both ways)."""


def native_price(program: Program, target: Target) -> Price:
    """The price of the same as native code, which runs the items of a CPU one after another and cuts its products
    itself. Requires the tile level with all blocks chosen, before anything is placed. Linear."""
    total = Price()
    for function in program.functions:
        if function.kind is FunctionKind.INCORE:
            total += _native(function.body, target, 1)
    return total


def _native(block: Block, target: Target, times: int) -> Price:
    total = Price()
    for stmt in block:
        if isinstance(stmt, Let) and isinstance(stmt.value, Op):
            total += _native_op(stmt, stmt.value, target, times)
        trips = (stmt.trip_count or 1) if isinstance(stmt, For) else 1
        for inner in stmt.blocks()[:1]:
            total += _native(inner, target, times * trips)
    return total


def _native_op(stmt: Let, op: Op, target: Target, times: int) -> Price:
    work = op.work()
    if work.macs is not None:
        rows, columns, depth = work.macs
        return Price(times * (rows * columns * depth / MACS + depth * columns * PACK))
    stored = isinstance(stmt.target.type, TensorType)
    if stored or any(isinstance(value.type, TensorType) for _, value in op.operand_items()):
        moved = times * work.nbytes
        return Price(moved / BYTES, 0 if stored else moved, moved if stored else 0)
    if not work.is_arithmetic:
        return Price()
    dtypes = [value.dtype for _, value in op.operand_items()] + [stmt.target.type.dtype]
    dtype = max(dtypes, key=lambda kind: kind.bits)
    return Price(times * target.vector_cycles(work.kind, work.elements * dtype.nbytes, dtype))


class _Launch:
    def __init__(self, function: Function, target: Target) -> None:
        self.function = function
        self.target = target
        self.items = work_items(function, target)
        self.engines: dict[str, float] = {}
        self.ddr_in = 0
        self.ddr_out = 0

    def price(self) -> Price:
        self.block(self.function.body, 1.0, 1)
        shared = self.target.ddr_bytes_per_cycle
        limit = (self.ddr_in + self.ddr_out) / shared if shared else 0.0
        busy = self.engines.values()
        alone = (max(busy, default=0.0) + sum(busy)) / 2
        return Price(max(alone, limit), self.ddr_in, self.ddr_out)

    def block(self, block: Block, rounds: float, times: int) -> None:
        """`rounds`: how often the busiest core does the block; `times`: how often all cores together do."""
        for stmt in block:
            match stmt:
                case Let():
                    self.let(stmt, rounds, times)
                case For():
                    trips = stmt.trip_count if stmt.trip_count is not None else 1
                    alone = -(-trips // self.items.cores) if stmt in self.items.loops else trips
                    self.block(stmt.body, rounds * alone, times * trips)
                case If():
                    # One arm runs; which one is not known here, and the first stands for both.
                    self.block(stmt.then, rounds, times)
                case _:
                    for inner in stmt.blocks():
                        self.block(inner, rounds, times)

    def let(self, stmt: Let, rounds: float, times: int) -> None:
        op = stmt.value
        if not isinstance(op, Op):
            return
        cost = cost_of(op, stmt.target.type, self.target)
        self.engines[cost.engine] = self.engines.get(cost.engine, 0.0) + cost.cycles * rounds
        if isinstance(stmt.target.type, TensorType):
            self.ddr_out += cost.ddr_bytes * times
        else:
            self.ddr_in += cost.ddr_bytes * times
