"""Live ranges against brute force: a value that is read at some time was alive from its definition until then, on
every path."""

from __future__ import annotations

from itertools import pairwise

import pytest
from ir_builder import Builder
from properties.strategies import Seeded, generate

from tilewright.analysis.liveness import Liveness, live_ranges, shareable
from tilewright.ir.dtypes import FP16, FP32, INDEX
from tilewright.ir.function import Function
from tilewright.ir.nodes import Block, For, If, Let, walk
from tilewright.ir.op import Level
from tilewright.ir.scalar import BinaryKind, Value, binary
from tilewright.ops import Cast, Load, Store
from tilewright.ops.broadcast import RowExpandAdd
from tilewright.ops.elementwise import Add, Neg
from tilewright.ops.reduce import RowSum


def alive(live: Liveness, value: Value, time: int) -> bool:
    return any(first <= time <= last for first, last in live.ranges[value])


class Paths:
    """Follows every path through a function, each loop twice, and asks at each read whether the value was alive at
    all the times since it came into being on that path."""

    def __init__(self, function: Function) -> None:
        self.live = live_ranges(function)
        for path in range(4):
            self.choices = path
            self.times: list[int] = [0]
            self.born: dict[Value, int] = {param.value: 0 for param in function.params}
            self.block(function.body)

    def block(self, block: Block) -> None:
        for stmt in block:
            time = 2 * self.live.begins[stmt]
            self.times.append(time)
            for value in stmt.uses():
                for passed in self.times[self.born[value] :]:
                    if passed > self.live.ranges[value][0][0]:
                        assert alive(self.live, value, passed), f"{value.name} at {passed}: {self.live.ranges[value]}"
            if isinstance(stmt, For):
                for value in stmt.block_args():
                    self.born[value] = len(self.times)
                for _ in range(2):
                    self.block(stmt.body)
                    self.born |= {value: len(self.times) for value in stmt.block_args()}
            elif isinstance(stmt, If):
                self.choices, odd = divmod(self.choices * 5 + 3, 2)
                self.block(stmt.then if odd else stmt.otherwise)
            for value in stmt.defs():
                self.born[value] = len(self.times)


@pytest.mark.parametrize("seed", range(60))
def test_what_is_read_was_alive_since_it_was_made(seed: int) -> None:
    Paths(generate(Seeded(seed), Level.TILE).program.main)


@pytest.mark.parametrize("seed", range(60))
def test_ranges_are_sorted_and_apart(seed: int) -> None:
    function = generate(Seeded(seed), Level.TILE).program.main
    for ranges in live_ranges(function).ranges.values():
        assert all(first <= last for first, last in ranges)
        assert all(a[1] < b[0] for a, b in pairwise(ranges))


def test_a_value_read_in_a_loop_lives_until_the_loop_ends() -> None:
    builder = Builder()
    a, out = builder.tensor("a", 8, 8), builder.out("out", 8, 8)
    x = builder.let("x", Load(a, (0, 0), (8, 8)))

    def body(iv: Value, acc: Value) -> tuple[Value, ...]:
        return (builder.let("s", Add(acc, x)),)

    (y,) = builder.loop(3, (builder.let("z", Neg(x)),), body)
    function = builder.returns(builder.let("o", Store(y, (0, 0), out)))
    live = live_ranges(function)
    (loop,) = (stmt for stmt in walk(function.body) if isinstance(stmt, For))
    assert live.range_of(x)[1] > 2 * live.begins[loop.body[-1]]


def test_what_an_inner_arm_reads_and_what_follows_is_one_range() -> None:
    """The value is read in an inner arm and after the outer branch: there is no hole."""
    builder = Builder()
    n, a, out = builder.scalar("n", INDEX), builder.tensor("a", 8, 8), builder.out("out", 8, 8)
    x = builder.let("x", Load(a, (0, 0), (8, 8)))
    y = builder.let("y", Neg(x))

    def inner() -> tuple[Value, ...]:
        return builder.branch(
            binary(BinaryKind.GT, n, 1), lambda: (builder.let("d", Add(x, x)),), lambda: (builder.let("e", Neg(y)),)
        )

    (phi,) = builder.branch(binary(BinaryKind.GT, n, 0), inner, lambda: (builder.let("f", Neg(y)),))
    last = builder.let("g", Add(phi, x))
    function = builder.returns(builder.let("o", Store(last, (0, 0), out)))
    assert len(live_ranges(function).ranges[x]) == 1
    assert len(live_ranges(function).ranges[y]) > 1


def test_who_may_share() -> None:
    builder = Builder()
    a, v = builder.tensor("a", 8, 8), builder.tensor("v", 8, 1)
    x, y = builder.let("x", Load(a, (0, 0), (8, 8))), builder.let("y", Load(a, (0, 0), (8, 8)))
    vector = builder.let("w", Load(v, (0, 0), (8, 1)))

    def shares(op: Add | RowExpandAdd | Cast | RowSum) -> set[str]:
        return {value.name for value in shareable(op, Value("t", op.infer()))}

    assert shares(Add(x, y)) == {"x", "y"}
    assert shares(RowExpandAdd(x, vector)) == {"x"}
    assert shares(Cast(x, FP16)) == set()
    assert shares(Cast(x, FP32)) == {"x"}
    assert shares(RowSum(x)) == set()


def test_numbers_are_those_of_the_statements_in_order() -> None:
    function = generate(Seeded(7), Level.TILE).program.main
    live = live_ranges(function)
    begins = [live.begins[stmt] for stmt in walk(function.body)]
    assert begins == sorted(begins) and len(set(begins)) == len(begins)
    assert all(live.ends[stmt] == live.begins[stmt] for stmt in walk(function.body) if isinstance(stmt, Let))
