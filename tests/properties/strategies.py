"""Random programs that are well typed and exact: what the properties are checked on.

A program is drawn from choices, each a number below a bound, so that one generator serves Hypothesis (which shrinks the
choices) and a plain seed. Every value carries the largest magnitude that it can have; an operation whose result would
not be an exact integer in its dtype first clamps its operands, so that equality needs no tolerance in any order of
summation, on any machine. What is drawn: loads with constant and run-time valid extents, elementwise, reductions,
expansions, casts, views, parts, matmuls and accumulations, elements read and written, loops that carry up to three
values (swapped and rotated too) and an output, branches with phis, all nested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from meaning import draw_arguments
from properties.cases import AnyOperation
from properties.statements import LIMITS, TAMED, Choices, Drawn, Seeded, shape_of, valid_of
from support import exact_bound

from tilewright.errors import TilewrightError
from tilewright.ir.dtypes import FP32, INDEX, INT8, INT32
from tilewright.ir.function import Program
from tilewright.ir.nodes import For, LoopKind, Yield
from tilewright.ir.op import Level
from tilewright.ir.rewrite import type_of
from tilewright.ir.scalar import BinaryKind, Scalar, Value, binary, constant
from tilewright.ir.types import ScalarType

__all__ = ["Generated", "Seeded", "generate", "programs"]


@dataclass(frozen=True)
class Generated:
    """A program, and numbers for its scalar parameters."""

    program: Program
    symbols: dict[str, int]
    special: dict[str, Callable[[tuple[int, ...]], Any]] = field(default_factory=dict[str, Any])
    """parameters that need other numbers than small integers, such as indices, by name: what draws them from a shape"""

    def arguments(self, seed: int = 0) -> list[Any]:
        """An argument for each parameter: small integers, and what the special ones need."""
        found = draw_arguments(self.program, self.symbols, seed)
        for position, param in enumerate(self.program.main.params):
            draw = self.special.get(param.value.name)
            if draw is not None:
                found[position] = draw(found[position].shape).astype(found[position].dtype)
        return found

    def __repr__(self) -> str:
        return f"{self.program.as_python()}\n# {self.symbols}"


@st.composite
def programs(draw: Any, level: Level = Level.TILE, size: int = 10) -> Generated:
    """A random program of about `size` statements at `level`."""
    return generate(Drawn(draw), level, size)


def generate(choices: Choices, level: Level, size: int = 10) -> Generated:
    """The program that `choices` make."""
    return _Generator(choices, level).run(size)


class _Generator(AnyOperation):
    """Puts statements, loops and branches together."""

    def run(self, size: int) -> Generated:
        self.special = {}
        self.stored = []
        self.earlier: set[Value] = set()
        """what the sections before this one read and made"""
        self.rare = 3 if self.choices.below(4) else 0
        """how many operations of any kind are still to come"""
        if self.level is Level.TENSOR and self.maybe(2):
            results: tuple[Scalar, ...] = self.sections(size)
        else:
            results = self.body(size)
        function = self.builder.returns(*results, *self.stored)
        return Generated(Program((function,), function.name), self.symbols, self.special)

    def sections(self, size: int) -> tuple[Value, ...]:
        """One to three sections, each of which reads what the ones before it made."""
        results: tuple[Value, ...] = ()
        count = 1 + self.choices.below(3)
        for _ in range(count):
            parameters, first = len(self.builder.params), len(self.stored)
            scalars = list(self.pool.scalars)
            bounds: dict[Value, int] = {}
            made: list[Value] = []

            def section(bounds: dict[Value, int] = bounds, made: list[Value] = made) -> tuple[Value, ...]:
                self.own = set()
                made += self.body(max(2, size // count))
                bounds.update(self.pool.arrays)
                return (*made, *self.stored[first:])  # noqa: B023 - called at once

            outside = self.builder.scope(section)
            self.stored[first:] = outside[len(made) :]
            new = {param.value for param in self.builder.params[parameters:]}
            known = [item for item in self.pool.arrays if item[0] in self.earlier or item[0] in new]
            results = (*results, *outside[: len(made)])
            self.earlier |= new | set(results)
            self.own, self.pool.scalars = set(), scalars
            self.pool.arrays = [*known, *((s, bounds[v]) for s, v in zip(outside, made, strict=False))]
        return results[-4:]

    def body(self, size: int) -> tuple[Value, ...]:
        self.load()
        for _ in range(size):
            self.step()
            if self.rare and self.depth == 0 and self.maybe(2):
                self.rare -= 1
                self.any_operation()
        return self.finish()

    def step(self) -> None:
        """One random statement, if the one chosen is possible here."""
        moves: list[Callable[[], None]] = [
            self.load, self.load, self.binary, self.binary, self.unary, self.with_number, self.reduce, self.expand,
            self.cast, self.view, self.matmul, self.matmul, self.select, self.part, self.element, self.fill,
        ]  # fmt: skip
        if self.depth < 2:
            moves += [self.loop, self.loop, self.loop, self.branch, self.branch, self.accumulate]
        if self.depth == 0 and self.level is Level.TILE:
            moves.append(self.work_items)
        self.pick(moves)()

    # --- products ---
    def operands(self) -> list[tuple[Value, int]] | None:
        lhs = self.array(lambda v: v.dtype is not INT32 and len(shape_of(v)) == 2)
        if lhs is None:
            return None
        dtype, inner = lhs[0].dtype, valid_of(lhs[0])[1]

        def goes(value: Value) -> bool:
            return value.dtype is dtype and len(valid_of(value)) == 2 and valid_of(value)[0] == inner

        rhs = self.array(goes)
        if rhs is None:
            return None
        limit = LIMITS[dtype] if self.level is Level.TENSOR else LIMITS[FP32]
        small = 2 if dtype is INT8 else TAMED
        if max(lhs[1], rhs[1]) > small:
            lhs, rhs = self.tamed(lhs, small), self.tamed(rhs, small)
        return self.fitted([lhs, rhs], lambda b: 64 * b[0] * b[1], limit)

    def matmul(self) -> None:
        found = self.operands()
        if found is not None:
            (a, x), (b, y) = found
            self.let(self.op("matmul", a, b), 64 * x * y)

    def accumulate(self) -> None:
        """An accumulator made before a loop, or by its first trip, and added to in each trip."""
        found = self.operands()
        if found is None:
            return
        (a, x), (b, y) = found
        kind: Any = self.op("matmul", a, b)
        try:
            shape: Any = kind.infer().shape
        except TilewrightError:
            return
        dtype = INT32 if a.dtype is INT8 else FP32
        bound = 5 * 64 * x * y
        if self.maybe(2):
            start = self.let(self.op("full", shape, dtype, constant(0, dtype)), bound)
        else:
            start = self.let(self.op("matmul", a, b), bound)
        if start is None or start.dtype is not dtype:
            return

        def body(iv: Value, acc: Value) -> tuple[Scalar, ...]:
            self.shared.add(acc)
            self.pool.arrays.append((b, y))
            self.local_step()
            out = self.let(self.op("matmul_acc", acc, a, b), bound)
            return (out if out is not None and out.type is acc.type else acc,)

        self.structured_loop((start,), [bound], body)

    def local_step(self) -> None:
        if self.maybe(2):
            self.step()

    # --- control flow ---
    def structured_loop(self, inits: tuple[Scalar, ...], bounds: list[int], body: Callable[..., Any]) -> None:
        stop: Scalar = self.pick((2, 3, 1, self.trips, 4))
        kind = self.pick((LoopKind.SEQUENTIAL, LoopKind.SEQUENTIAL, LoopKind.PIPELINE, LoopKind.UNROLL))
        if not isinstance(stop, int) or (kind is LoopKind.PIPELINE and self.level is Level.TENSOR):
            kind = LoopKind.SEQUENTIAL
        stage = self.pick((2, 3)) if kind is LoopKind.PIPELINE else 1
        for init in inits:
            if isinstance(init, Value):
                self.use_up(init)
        outer, own, self.own = self.pool.copy(), self.own, set()
        self.depth += 1
        iv = Value("i", ScalarType(INDEX))
        args = tuple(Value(f"c{self.depth}{k}", type_of(init)) for k, init in enumerate(inits))

        def block() -> tuple[Scalar, ...]:
            self.pool.scalars.append(iv)
            self.turns.append(iv)
            for arg, bound in zip(args, bounds, strict=True):
                self.enter(arg, bound)
            values = body(iv, *args)
            self.turns.pop()
            return values

        inner = self.builder._block(block)  # pyright: ignore[reportPrivateUsage]
        self.depth -= 1
        self.pool, self.own = outer, own
        self.names += 1
        results = tuple(Value(f"r{self.names}{k}", arg.type) for k, arg in enumerate(args))
        self.builder._out.append(For(iv, 0, stop, 1, kind, inits, args, inner, results, stage))  # pyright: ignore[reportPrivateUsage]
        assert isinstance(inner[-1], Yield)
        for result, init, bound in zip(results, inits, bounds, strict=True):
            self.enter(result, bound)
            if isinstance(init, Value):
                self.began[result] = self.began.get(init, init)
        if any(given in args and given is not arg for given, arg in zip(inner[-1].values, args, strict=True)):
            self.shared.update(results)  # each may be what another one started as

    def enter(self, value: Value, bound: int) -> None:
        self.own.add(value)
        if isinstance(value.type, ScalarType):
            self.pool.scalars.append(value)
        else:
            self.pool.arrays.append((value, bound))

    def loop(self) -> None:
        carried: list[tuple[Value, int]] = []
        for _ in range(1 + self.choices.below(3)):
            item = self.array(
                lambda v: (
                    (not carried or v.type is carried[0][0].type or self.maybe(2))
                    and (self.level is Level.TILE or (self.may_write(v) and v not in [value for value, _ in carried]))
                )
            )
            if item is not None:
                carried.append(self.tamed(item))
        if not carried:
            return
        counter = self.maybe(3)

        def body(iv: Value, *args: Value) -> tuple[Scalar, ...]:
            arrays = args[: len(carried)]
            if self.maybe(2):
                self.shared.update(arrays)  # they may be exchanged, then
            for _ in range(1 + self.choices.below(4)):
                self.step()
            yielded: list[Scalar] = []
            for arg in arrays:
                yielded.append(self.next_of(arg, arrays, yielded))
            if counter:
                yielded.append(binary(BinaryKind.ADD, args[-1], self.pick((1, iv))))
            return tuple(yielded)

        inits = (*(value for value, _ in carried), *((0,) if counter else ()))
        self.structured_loop(inits, [TAMED] * len(inits), body)

    def next_of(self, arg: Value, arrays: tuple[Value, ...], taken: list[Scalar]) -> Value:
        """What a trip hands on for `arg`: something new, or another carried value. A tensor is handed on once."""

        def free(value: Value) -> bool:
            if self.level is Level.TILE:
                return value.type is arg.type
            begun = self.began.get(value, value)  # what a loop may have left as it was
            exchanged = begun is arg or begun not in arrays or arg in self.shared
            return value.type is arg.type and value not in taken and value in self.own and exchanged

        same = [other for other in arrays if free(other)]
        if self.maybe(2) and same:
            return self.pick(same)
        item = self.array(free)
        if item is not None:
            return self.tamed(item)[0]
        made = self.let(self.op("full", shape_of(arg), arg.dtype, constant(1, arg.dtype)), 1)
        assert made is not None
        return made

    def work_items(self) -> None:
        """A parallel loop, each trip of which stores rows of its own."""
        dtype, rows, columns = self.dtype(), self.pick((8, 16, 5)), self.pick(self.dims)
        count = self.pick((2, 3, 5))
        source = self.tensor((rows * count, columns), dtype)
        out = self.builder.out(f"p{self.inputs}", rows * count, columns, dtype=dtype)
        iv, arg = Value("i", ScalarType(INDEX)), Value("o", out.type)
        outer, own, self.own = self.pool.copy(), self.own, set()
        self.depth += 2

        def block() -> tuple[Scalar, ...]:
            offsets = (binary(BinaryKind.MUL, iv, rows), 0)
            self.pool.scalars.append(iv)
            loaded = self.let(self.op("load", source, offsets, (rows, columns)), exact_bound(dtype.numpy))
            assert loaded is not None
            for _ in range(self.choices.below(4)):
                self.step()
            item = self.array(lambda v: v.type is loaded.type)
            self.names += 1
            return (self.builder.let(f"o{self.names}", self.op("store", (item or (loaded, 0))[0], offsets, arg)),)

        inner = self.builder._block(block)  # pyright: ignore[reportPrivateUsage]
        self.depth -= 2
        self.pool, self.own = outer, own
        self.names += 1
        result = Value(f"r{self.names}", out.type)
        kind = LoopKind.PARALLEL
        self.builder._out.append(For(iv, 0, count, 1, kind, (out,), (arg,), inner, (result,)))  # pyright: ignore[reportPrivateUsage]
        self.stored.append(result)

    def condition(self) -> Scalar:
        scalar = self.pick(self.pool.scalars)
        kind = self.pick((BinaryKind.EQ, BinaryKind.LT, BinaryKind.GT))
        return binary(kind, scalar, self.pick((0, 1, 16)))

    def branch(self) -> None:
        like = self.array()
        if like is None:
            return
        like = self.tamed(like)
        condition = self.condition()
        if isinstance(condition, int) or not hasattr(condition, "children"):
            return
        outer, own = self.pool.copy(), self.own
        count = 1 + self.choices.below(2)

        def arm() -> tuple[Value, ...]:
            self.pool, self.own = outer.copy(), set()
            for _ in range(self.choices.below(3)):
                self.step()
            found: list[Value] = []
            for _ in range(count):
                item = self.array(lambda v: v.type is like[0].type)
                assert item is not None
                found.append(self.tamed(item)[0])
            self.shared.update(found)
            return tuple(found)

        self.depth += 1
        results = self.builder.branch(condition, arm, arm)
        self.depth -= 1
        self.pool, self.own = outer, own
        for result in results:
            self.pool.arrays.append((result, TAMED))

    # --- the end ---
    def finish(self) -> tuple[Value, ...]:
        """At most four arrays go to DDR, each to its own output: an early one, and the latest."""
        parameters = {param.value for param in self.builder.params}
        kept = [item for item in self.pool.arrays if item[0] not in parameters | self.earlier]
        if len(kept) > 3:
            kept = [kept[self.choices.below(len(kept) - 3)], *kept[-3:]]
        if self.level is Level.TENSOR:
            return tuple(dict(kept))
        results: list[Value] = []
        for position, (value, _) in enumerate(dict(kept).items()):
            kind: Any = value.type
            out = self.builder.out(f"out{position}", *(kind.shape), dtype=value.dtype)
            self.names += 1
            results.append(self.builder.let(f"o{position}", self.op("store", value, (0,) * len(kind.shape), out)))
        return tuple(results)
