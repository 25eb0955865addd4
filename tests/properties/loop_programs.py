"""Random loop programs, in either form, that run: every access is in bounds, and what reaches a parameter is defined.

    function = draw_loops(seed, structured=True, affine=True)
    arguments = loop_arguments(function, seed)

Each has parameters `A` (read) and `C` (written), and some allocations, at the top or inside loops. Each allocation is
written by nests over strided and triangular domains with predicates, and the same elements are read in the same trip
or in a later nest over the same domain. Indices that would leave a buffer are guarded, clamped or wrapped. Values are
small integers, so that sums are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.analysis.scalar_ranges import Facts, range_of, trip_range
from tilewright.ir.buffers import Broadcast, BufferType, IfThenElse, Likely, Ramp
from tilewright.ir.dtypes import FP32
from tilewright.ir.layout import MemorySpace
from tilewright.ir.loop_builder import LoopBuilder
from tilewright.ir.loop_level import ALWAYS, LoopFunction
from tilewright.ir.scalar import (
    BinaryKind,
    Const,
    Scalar,
    UnaryKind,
    Value,
    binary,
    constant_value,
    logic,
    substitute,
    unary,
)

EXTENT = 12
"""The extent of every dimension before compaction."""
COMPARISONS = [kind for kind in BinaryKind if kind.is_comparison]


def draw_loops(seed: int, *, structured: bool = True, affine: bool = True) -> LoopFunction:
    """A program. `structured`: blocks with predicates; else branches, vectors and launches. `affine`: indices and
    predicates are sums of loop variables; else also products, quotients and remainders."""
    return _Drawing(Random(f"{seed}-{structured}-{affine}"), structured, affine).draw()


def loop_arguments(function: LoopFunction, seed: int) -> list[npt.NDArray[Any]]:
    """An array of small integers for each parameter."""
    draw = np.random.default_rng(seed)
    kinds = [param.type for param in function.params if isinstance(param.type, BufferType)]
    shapes = [tuple(extent for extent in kind.shape if isinstance(extent, int)) for kind in kinds]
    return [draw.integers(-8, 9, shape).astype(np.float32) for shape in shapes]


class _Drawing:
    def __init__(self, random: Random, structured: bool, affine: bool) -> None:
        self.random = random
        self.structured = structured
        self.affine = affine
        self.f = LoopBuilder()
        self.a = self.f.buffer("A", (EXTENT, EXTENT))
        self.c = self.f.buffer("C", (EXTENT, EXTENT))
        self.ranges: dict[Value, tuple[int | None, int | None]] = {}
        self.facts = Facts(self.ranges)
        self.domain: list[Value] = []
        self.count = 0

    def draw(self) -> LoopFunction:
        for _ in range(self.random.randint(1, 2)):
            with ExitStack() as stack:
                for _ in range(self.random.choice([0, 0, 1, 1, 2])):
                    self.open_loop(stack, outside=True)
                self.allocation()
            self.domain.clear()
        return self.f.build()

    def name(self, base: str) -> str:
        self.count += 1
        return f"{base}{self.count}"

    # --- loops ---
    def bounds(self) -> tuple[Scalar, Scalar, int]:
        random = self.random
        step = random.choice([1, 1, 1, 2, 3])
        start: Scalar = random.choice([0, 0, 1])
        stop: Scalar = random.randint(0, 5) * random.choice([1, 1, step]) + 1
        if self.domain and random.random() < 0.3:
            start = random.choice([start, random.choice(self.domain)])
            stop = random.choice([stop, random.choice(self.domain) + random.randint(0, 3)])
        return start, stop, step

    def open_loop(
        self, stack: ExitStack, outside: bool = False, bounds: tuple[Scalar, Scalar, int] | None = None
    ) -> Value:
        """A loop around what follows; its bounds, when they are to be those of another loop."""
        bounds = bounds or self.bounds()
        threads = outside and not self.structured and bounds[0] == 0 and bounds[2] == 1 and self.random.random() < 0.3
        manager = self.f.launch(self.name("t"), "t", bounds[1]) if threads else self.f.loop(self.name("i"), *bounds)
        iv = stack.enter_context(manager)
        self.ranges[iv] = trip_range(*bounds, self.facts)
        self.domain.append(iv)
        return iv

    # --- expressions ---
    def sum(self, over: list[Value]) -> Scalar:
        total: Scalar = self.random.randint(-2, 3)
        for iv in over:
            if self.random.random() < 0.7:
                total = binary(BinaryKind.ADD, binary(BinaryKind.MUL, iv, self.random.choice([1, 1, 2, -1, 4])), total)
        if not self.affine and over and self.random.random() < 0.5:
            iv, other = self.random.choice(over), self.random.choice(over)
            kind = self.random.choice([BinaryKind.FLOORDIV, BinaryKind.MOD, BinaryKind.MUL])
            total = binary(BinaryKind.ADD, total, binary(kind, iv, other if kind is BinaryKind.MUL else 3))
        return total

    def condition(self, over: list[Value], depth: int = 2) -> Scalar:
        random = self.random
        if depth and random.random() < 0.4:
            kind = random.choice([BinaryKind.AND, BinaryKind.OR])
            return logic(kind, self.condition(over, depth - 1), self.condition(over, depth - 1))
        compared = binary(random.choice(COMPARISONS), self.sum(over), self.sum(over[-1:]))
        likely = compared if constant_value(compared) is not None else Likely(compared)
        return random.choice([compared, compared, likely, unary(UnaryKind.NOT, compared)])

    def index(self, over: list[Value], guards: list[Scalar]) -> Scalar:
        """An index in bounds: as it is, guarded by a condition added to `guards`, clamped or wrapped."""
        index = self.sum(over)
        low, high = range_of(index, self.facts)
        if low is not None and high is not None and low >= 0 and high < EXTENT:
            return index
        match self.random.choice(["guard", "guard", "clamp", "wrap"]):
            case "guard":
                guards.append(binary(BinaryKind.GE, index, 0))
                guards.append(binary(BinaryKind.LT, index, EXTENT))
                return index
            case "clamp":
                return binary(BinaryKind.MIN, binary(BinaryKind.MAX, index, 0), EXTENT - 1)
            case _:
                return binary(BinaryKind.MOD, index, EXTENT)

    def value(self) -> Scalar:
        """An element of A: one in bounds, whatever the trip."""
        guards: list[Scalar] = []
        indices = tuple(self.index(self.domain, guards) for _ in range(2))
        element = self.f.load(self.a, *indices)
        condition = conjunction(guards)
        known = constant_value(condition)
        if known is not None:
            return element if known else Const(1.0, FP32)
        return IfThenElse(condition, element, Const(1.0, FP32))

    # --- statements ---
    def allocation(self) -> None:
        random, f = self.random, self.f
        rank = random.randint(1, 2)
        align = {"dim_align": ((0, 8, 0),)} if rank == 2 and random.random() < 0.2 else {}
        space = random.choice([None, MemorySpace.VEC])
        buffer = f.alloc(self.name("B"), (EXTENT,) * rank, FP32, space, **align)
        for _ in range(random.randint(1, 2)):
            self.group(buffer, rank)

    def group(self, buffer: Value, rank: int) -> None:
        """Nests over one domain: the first writes elements, and all read them."""
        outer = list(self.domain)
        plans: list[Callable[[list[Value]], Scalar]] = []
        bounds: list[tuple[Scalar, Scalar, int]] = []
        with ExitStack() as stack:
            inner: list[Value] = []
            for _ in range(self.random.randint(1, 2)):
                bounds.append(self.bounds())
                inner.append(self.open_loop(stack, bounds=bounds[-1]))
            guards = [self.condition(self.domain)] if self.random.random() < 0.6 else []
            indices = tuple(self.index(self.domain, guards) for _ in range(rank))
            if not self.structured and not guards and self.random.random() < 0.5:
                self.vectors(buffer, indices)
            else:
                where = conjunction(guards)
                self.guarded(where, lambda: self.touch(buffer, indices))
            plans = [_moved(part, inner) for part in (*indices, *guards)]
        self.domain[:] = outer
        if self.random.random() < 0.5:
            self.again(buffer, rank, bounds, inner, plans)

    def again(
        self,
        buffer: Value,
        rank: int,
        bounds: list[tuple[Scalar, Scalar, int]],
        inner: list[Value],
        plans: list[Callable[[list[Value]], Scalar]],
    ) -> None:
        """A later nest over the same domain that reads the elements again."""
        outer = list(self.domain)
        with ExitStack() as stack:
            ivs: list[Value] = []
            for start, stop, step in bounds:
                known = dict(zip(inner, ivs, strict=False))
                moved = (_renamed(start, known), _renamed(stop, known), step)
                ivs.append(self.open_loop(stack, bounds=moved))
            parts = [plan(ivs) for plan in plans]
            self.guarded(conjunction(parts[rank:]), lambda: self.result(self.f.load(buffer, *parts[:rank])))
        self.domain[:] = outer

    def guarded(self, where: Scalar, body: Callable[[], None]) -> None:
        if self.structured:
            with self.f.block(self.name("b"), where=where):
                body()
        elif where == ALWAYS:
            body()
        elif self.random.random() < 0.7:
            with self.f.when(where):
                body()
        else:  # the same, said the other way round
            with self.f.when(unary(UnaryKind.NOT, where)):
                pass
            with self.f.otherwise():
                body()

    def touch(self, buffer: Value, indices: tuple[Scalar, ...]) -> None:
        self.f.store(buffer, indices, self.value())
        if self.random.random() < 0.7:
            self.result(self.f.load(buffer, *indices) + Const(float(self.random.randint(0, 3)), FP32))

    def result(self, value: Scalar) -> None:
        """Adds the value to an element of C."""
        guards: list[Scalar] = []
        place = tuple(self.index(self.domain, guards) for _ in range(2))
        place = tuple(binary(BinaryKind.MIN, binary(BinaryKind.MAX, part, 0), EXTENT - 1) for part in place)
        self.f.store(self.c, place, binary(BinaryKind.ADD, self.f.load(self.c, *place), value))

    def vectors(self, buffer: Value, indices: tuple[Scalar, ...]) -> None:
        """The same row, as far as four lanes of it fit, at once."""
        stride = self.random.choice([1, 2, -1])
        base = (
            binary(BinaryKind.MIN, indices[-1], EXTENT - 1 - 3 * stride)
            if stride > 0
            else (binary(BinaryKind.MAX, indices[-1], 3))
        )
        where = (*indices[:-1], Ramp(base, stride, 4))
        self.f.store(buffer, where, Broadcast(self.value(), 4))
        lanes = self.f.load(buffer, *where)
        row = binary(BinaryKind.MIN, binary(BinaryKind.MAX, self.sum(self.domain), 0), EXTENT - 1)
        self.f.store(self.c, (row, Ramp(0, 2, 4)), lanes)
        self.f.store(buffer, indices, self.value())


def conjunction(conditions: list[Scalar]) -> Scalar:
    """All of them."""
    result: Scalar = ALWAYS
    for condition in conditions:
        result = logic(BinaryKind.AND, result, condition)
    return result


def _renamed(scalar: Scalar, known: dict[Value, Value]) -> Scalar:
    return substitute(scalar, lambda value: known.get(value, value))


def _moved(scalar: Scalar, inner: list[Value]) -> Callable[[list[Value]], Scalar]:
    """`scalar` as a function of what stands for the loop variables `inner`."""
    return lambda ivs: _renamed(scalar, dict(zip(inner, ivs, strict=True)))
