"""Programs drawn at random mean the same after each tensor pass, on every kind of target.

Values are square, so that anything fits anything; inputs are small integers and results are kept small by taking the
maximum of products with a constant, so that every comparison is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from ir_builder import Builder, program
from meaning import check_same_meaning
from tilewright.ir.dtypes import FP32, INDEX
from tilewright.ir.function import FunctionKind, Program
from tilewright.ir.nodes import LoopKind
from tilewright.ir.op import Level
from tilewright.ir.scalar import BinaryKind, Const, Value, binary
from tilewright.ir.verify import verify
from tilewright.ops import Assemble, Create, Full, Matmul, MatmulAcc, Reshape, Slice, Transpose
from tilewright.ops.elementwise import Add, Maximum, Minimum, Neg, Sub
from tilewright.passes.tensor.convert_tensor_to_tile import convert_tensor_to_tile, plan_conversion
from tilewright.passes.tensor.inline import inline
from tilewright.passes.tensor.outline_sections import outline_sections
from tilewright.passes.tensor.unroll import unroll
from tilewright.passes.tile.flatten_tiles import flatten_tiles
from tilewright.targets import load_target

N = 16
ONE, FEW = Const(1.0, FP32), Const(-2.0, FP32)


class Drawer:
    """Draws the body of one function into a builder."""

    def __init__(self, seed: int, kind: FunctionKind) -> None:
        self.random = Random(seed)
        self.b = Builder(kind=kind)
        self.n = self.b.scalar("n", INDEX)
        self.inputs = [self.b.tensor(name, N, N) for name in ("a", "b")]
        self.batch = self.b.tensor("c", 3, N, N)

    def small(self, value: Value) -> Value:
        """Values between -2 and 1, so that products of sums stay exact."""
        return self.b.let("s", Minimum(self.b.let("m", Maximum(value, FEW)), ONE))

    def op(self, values: list[Value]) -> Value:
        b, pick = self.b, self.random.choice
        x, y = pick(values), pick(values)
        draw: list[Callable[[], Value]] = [
            lambda: self.small(b.let("x", Add(x, y))),
            lambda: self.small(b.let("x", Sub(x, y))),
            lambda: b.let("x", Neg(self.small(x))),
            lambda: self.small(
                b.let("x", Matmul(x, y, a_trans=pick((False, True)), b_trans=pick((False, True))))
            ),
            lambda: b.let("t", Transpose(x, 0, 1)),
            lambda: b.let("r", Reshape(b.let("f", Reshape(x, (N * N,))), (N, N))),
            lambda: b.let("v", Reshape(b.let("w", Slice(self.batch, (1, N, N), (1, 0, 0))), (N, N))),
            lambda: b.let("v", Slice(x, (N, N), (0, 0))),
            lambda: self.accumulated(x, y),
            lambda: self.assembled(x, y),
        ]
        return pick(draw)()

    def accumulated(self, x: Value, y: Value) -> Value:
        b = self.b
        zero = b.let("z", Full((N, N), FP32, Const(0.0, FP32), level=Level.TENSOR))
        (total,) = b.loop(2, (zero,), lambda i, acc: (b.let("acc", MatmulAcc(acc=acc, lhs=x, rhs=y)),))
        return self.small(total)

    def assembled(self, x: Value, y: Value) -> Value:
        b = self.b
        room = b.let("room", Create((N, N), FP32, level=Level.TENSOR))
        top = b.let("top", Slice(x, (N // 2, N), (0, 0)))
        low = b.let("low", Slice(y, (N // 2, N), (N // 2, 0)))
        half = b.let("half", Assemble(room, top, (0, 0)))
        return b.let("whole", Assemble(half, low, (N // 2, 0)))

    def body(self, values: list[Value], depth: int, count: int) -> list[Value]:
        values = list(values)
        for _ in range(count):
            kind = self.random.random()
            if depth and kind < 0.2:
                values.append(self.loop(values, depth))
            elif depth and kind < 0.35:
                values.append(self.branch(values, depth))
            else:
                values.append(self.op(values))
        return values

    def loop(self, values: list[Value], depth: int) -> Value:
        kind = self.random.choice((LoopKind.SEQUENTIAL, LoopKind.UNROLL))
        init = self.b.let("i", Neg(self.random.choice(values)))
        results = self.b.loop(
            2, (init,), lambda i, c: (self.small(self.body([*values, c], depth - 1, 2)[-1]),), kind
        )
        return results[0]

    def branch(self, values: list[Value], depth: int) -> Value:
        condition = binary(BinaryKind.GT, self.n, 20)
        (result,) = self.b.branch(
            condition,
            lambda: (self.body(values, depth - 1, 2)[-1],),
            lambda: (self.random.choice(values),),
        )
        return result

    def draw(self, scoped: bool) -> Program:
        start = list(self.inputs)
        if not scoped:
            values = self.body(start, 2, 6)
            return program(self.b.returns(*values[-2:]))
        last = self.b.scope(lambda: tuple(self.body(start, 2, 6)[-2:]))
        more = self.body([*start, *last], 1, 3)
        return program(self.b.returns(*more[-2:]))


QUICK = (*range(16), 129, 135)


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed in QUICK else pytest.mark.slow) for seed in range(200)]
)
def test_tensor_passes_keep_the_meaning(seed: int) -> None:
    target = load_target(("ascend910b", "ascend950", "x86_amx", "generic")[seed % 4])
    before = Drawer(seed, FunctionKind.ORCHESTRATION).draw(scoped=seed % 2 == 0)
    verify(before)
    now = before
    for step in (inline, unroll, outline_sections):
        now = step(now)
        verify(now)
        assert step(now) is now
        check_same_meaning(before, now, {"n": 17 + seed % 7})
    assert str(plan_conversion(now, target)) == str(plan_conversion(now, target))
    for step in (lambda p: convert_tensor_to_tile(p, target), flatten_tiles):
        now = step(now)
        verify(now)
        assert step(now) is now
        check_same_meaning(before, now, {"n": 17 + seed % 7})
    for function in now.functions:
        if function.kind is FunctionKind.INCORE:
            values = [stmt.value for stmt in function.walk() if hasattr(stmt, "value")]
            assert not [op for op in values if getattr(op, "level", None) is Level.TENSOR]
