"""The verifier on tensors in DDR: a version that was overwritten is not read, under whatever name it is known."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ir_builder import Builder, program

from tilewright.errors import VerifyError
from tilewright.ir.dtypes import INDEX
from tilewright.ir.function import Direction, Function
from tilewright.ir.scalar import Value
from tilewright.ir.verify import verify
from tilewright.ops.movement import Load, Store


class Kernel(Builder):
    """A builder with an input `a`, two tensors `p` and `q` to read and write, a number `n`, and a tile `t` of `a`."""

    def __init__(self) -> None:
        super().__init__()
        self.n = self.scalar("n", INDEX)
        self.a = self.tensor("a", 8, 8)
        self.p = self.tensor("p", 8, 8, direction=Direction.INOUT)
        self.q = self.tensor("q", 8, 8, direction=Direction.INOUT)
        self.t = self.read(self.a)

    def read(self, tensor: Value) -> Value:
        return self.let("u", Load(tensor, (0, 0), (8, 8)))

    def write(self, tensor: Value) -> Value:
        return self.let(f"{tensor.name}_next", Store(self.t, (0, 0), tensor))


def stale(k: Kernel) -> Function:
    p = k.write(k.p)
    k.read(k.p)
    return k.returns(p, k.q)


def one_of_two(k: Kernel) -> Function:
    (r,) = k.branch(k.n, lambda: (k.p,), lambda: (k.q,))
    k.write(r)
    k.read(k.q)
    return k.returns(k.p, k.q)


def one_start_for_two_carries(k: Kernel) -> Function:
    def body(i: Value, x: Value, y: Value) -> tuple[Value, ...]:
        new = k.write(x)
        k.read(y)
        return new, y

    x, _ = k.loop(2, (k.p, k.p), body)
    return k.returns(x, k.q)


def one_yielded_for_two_carries(k: Kernel) -> Function:
    def body(i: Value, x: Value, y: Value) -> tuple[Value, ...]:
        new = k.write(x)
        return new, new

    x, y = k.loop(2, (k.p, k.q), body)
    k.write(x)
    k.read(y)
    return k.returns(x, y)


def not_carried(k: Kernel) -> Function:
    def body(i: Value) -> tuple[Value, ...]:
        k.write(k.p)
        return ()

    k.loop(2, (), body)
    return k.returns(k.p, k.q)


def input_written(k: Kernel) -> Function:
    k.write(k.a)
    return k.returns(k.p, k.q)


def output_returned_twice(k: Kernel) -> Function:
    return k.returns(k.p, k.p)


def used_after_its_loop(k: Kernel) -> Function:
    inside: list[Value] = []

    def body(i: Value) -> tuple[Value, ...]:
        inside.append(k.read(k.a))
        return ()

    k.loop(2, (), body)
    p = k.let("p_next", Store(inside[0], (0, 0), k.p))
    return k.returns(p, k.q)


def read_then_written(k: Kernel) -> Function:
    k.read(k.p)
    return k.returns(k.write(k.p), k.q)


def only_read_in_a_loop(k: Kernel) -> Function:
    def body(i: Value, x: Value) -> tuple[Value, ...]:
        k.read(x)
        return (x,)

    k.loop(2, (k.p,), body)
    k.read(k.p)
    return k.returns(k.p, k.q)


def carried_and_written(k: Kernel) -> Function:
    def body(i: Value, x: Value) -> tuple[Value, ...]:
        return (k.write(x),)

    (x,) = k.loop(2, (k.p,), body)
    k.read(x)
    return k.returns(x, k.q)


def written_in_one_arm(k: Kernel) -> Function:
    (r,) = k.branch(k.n, lambda: (k.write(k.p),), lambda: (k.p,))
    k.read(r)
    return k.returns(r, k.q)


Make = Callable[[Kernel], Function]
WRONG: list[tuple[Make, str]] = [
    (stale, "read after a later version"),
    (one_of_two, "read after a later version"),
    (one_start_for_two_carries, "read after a later version"),
    (one_yielded_for_two_carries, "read after a later version"),
    (not_carried, "without carrying it"),
    (input_written, "is an input and is written"),
    (output_returned_twice, "2 times"),
    (used_after_its_loop, "where it is not defined"),
]
RIGHT: list[Make] = [read_then_written, only_read_in_a_loop, carried_and_written, written_in_one_arm]


@pytest.mark.parametrize(("make", "message"), WRONG, ids=[make.__name__ for make, _ in WRONG])
def test_refused(make: Make, message: str) -> None:
    with pytest.raises(VerifyError, match=message):
        verify(program(make(Kernel())))


@pytest.mark.parametrize("make", RIGHT, ids=[make.__name__ for make in RIGHT])
def test_accepted(make: Make) -> None:
    verify(program(make(Kernel())))
