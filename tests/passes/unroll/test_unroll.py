"""What unrolling refuses."""

from __future__ import annotations

import pytest
from ir_builder import Builder, program
from tilewright.errors import NonConstantShapeError, UnsupportedError
from tilewright.ir.dtypes import INDEX
from tilewright.ir.nodes import LoopKind
from tilewright.ir.verify import verify
from tilewright.ops.elementwise import Neg
from tilewright.ops.shape import Slice
from tilewright.passes.tensor.unroll import MAX_STATEMENTS, unroll


def test_a_trip_count_must_be_constant() -> None:
    b = Builder()
    n, x = b.scalar("n", INDEX), b.tensor("x", 8, 8)
    (y,) = b.loop(n, (x,), lambda i, c: (b.let("d", Neg(c)),), LoopKind.UNROLL)
    with pytest.raises(NonConstantShapeError, match="constant bounds"):
        unroll(program(b.returns(y)))


def test_an_outer_unrolled_loop_may_bound_an_inner_one() -> None:
    b = Builder()
    x = b.tensor("x", 8, 8)

    def outer(i, c):
        return b.loop(i + 1, (c,), lambda j, d: (b.let("e", Neg(d)),), LoopKind.UNROLL)

    (y,) = b.loop(3, (x,), outer, LoopKind.UNROLL)
    after = unroll(program(b.returns(y)))
    verify(after)
    assert len(after.main.body) == 1 + 2 + 3 + 1


def test_too_many_copies_are_refused_before_they_are_made() -> None:
    b = Builder()
    x = b.tensor("x", 8, 8)
    (y,) = b.loop(MAX_STATEMENTS, (x,), lambda i, c: (b.let("d", Neg(c)),), LoopKind.UNROLL)
    with pytest.raises(UnsupportedError, match="too long"):
        unroll(program(b.returns(y)))


def test_types_follow_the_constants() -> None:
    b = Builder()
    x = b.tensor("x", 64, 8)
    parts = []

    def body(i):
        part = b.let("part", Slice(x, (16, 8), (i * 16, 0), (i * 3 + 2, 8)))
        parts.append(part)
        b.let("use", Neg(part))
        return ()

    b.loop(2, (), body, LoopKind.UNROLL)
    after = unroll(program(b.returns()))
    verify(after)
    assert [stmt.target.type.shape for stmt in after.main.body[:-1]] == [(2, 8), (2, 8), (5, 8), (5, 8)]
    assert unroll(after) is after
