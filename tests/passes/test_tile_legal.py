"""Whole programs through every tile pass: legal, verified, of the same meaning, and right on the emulated machine."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from building import Builder
from passes.checking import emulated, legalized
from support import TAILS

from tilewright.ir.dtypes import BF16, FP16, FP32, INT8, INT32, DType
from tilewright.ir.function import Program
from tilewright.ir.op import Level
from tilewright.ir.scalar import Value, constant
from tilewright.ops.broadcast import RowExpandMul, RowExpandSub
from tilewright.ops.cast import Cast
from tilewright.ops.create import Full
from tilewright.ops.elementwise import Add, Mul
from tilewright.ops.matmul import Matmul, MatmulAcc
from tilewright.ops.reduce import RowMax, RowSum

TARGETS = ("ascend910b", "ascend950", "x86_amx", "x86_avx512", "generic")


# --- programs -----------------------------------------------------------------------------------------------------
def chain(dtype: DType, m: int = 64, k: int = 64, n: int = 64, p: int = 64, *, cast: bool = True) -> Program:
    """a @ b @ c, the middle rounded."""
    b = Builder()
    x = b.load("x", b.tensor("a", (m, k), dtype))
    y = b.load("y", b.tensor("b", (k, n), dtype))
    z = b.load("z", b.tensor("c", (n, p), dtype))
    out = b.tensor("out", (m, p), FP32, out=True)
    ab = b.let("ab", Matmul(x, y))
    ab = b.let("ab16", Cast(ab, dtype)) if cast else ab
    return b.program(b.store(b.let("abc", Matmul(ab, z)), out))


def split_k(dtype: DType, m: int = 64, n: int = 64, block: int = 32, trips: int = 4) -> Program:
    """A K loop whose accumulator starts as zeros."""
    b = Builder()
    acc_type = INT32 if dtype is INT8 else FP32
    lhs, rhs = b.tensor("a", (m, block * trips), dtype), b.tensor("b", (block * trips, n), dtype)
    out = b.tensor("out", (m, n), acc_type, out=True)
    zero = b.let("zero", Full((m, n), acc_type, constant(0, acc_type), level=Level.TILE))

    def body(k: Value, acc: Value) -> tuple[Value, ...]:
        x = b.load("x", lhs, (m, block), offsets=(0, k * block))
        y = b.load("y", rhs, (block, n), offsets=(k * block, 0))
        return (b.let("acc_1", MatmulAcc(acc=acc, lhs=x, rhs=y)),)

    (total,) = b.loop(trips, (zero,), body)
    return b.program(b.store(total, out))


def softmax(m: int, n: int, dtype: DType = FP32) -> Program:
    b = Builder()
    x = b.load("x", b.tensor("a", (m, n), dtype))
    out = b.tensor("out", (m, n), dtype, out=True)
    top = b.let("top", RowMax(x))
    top2 = b.let("top2", Add(top, top))
    shifted = b.let("shifted", RowExpandSub(x, top2))
    total = b.let("total", RowSum(shifted))
    scaled = b.let("scaled", RowExpandMul(shifted, b.let("t3", Mul(total, top))))
    return b.program(b.store(scaled, out))


def read_twice(dtype: DType = BF16) -> Program:
    """One tensor read by add and by matmul."""
    b = Builder()
    x = b.load("x", b.tensor("a", (64, 64), dtype))
    y = b.load("y", b.tensor("b", (64, 64), dtype))
    out, other = b.tensor("out", (64, 64), FP32, out=True), b.tensor("other", (64, 64), dtype, out=True)
    s1 = b.store(b.let("sum", Add(x, x)), other)
    return b.program(b.store(b.let("xy", Matmul(x, y)), out), s1)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "make",
    [
        lambda: chain(BF16),
        lambda: chain(FP16),
        lambda: chain(FP32, cast=False),
        lambda: split_k(FP16),
        lambda: split_k(INT8),
        lambda: softmax(64, 64),
        read_twice,
    ],
)
def test_programs_become_legal(target: str, make: Callable[[], Program]) -> None:
    legalized(make(), target)


@pytest.mark.parametrize("target", ("ascend910b", "ascend950", "x86_amx"))
@pytest.mark.parametrize("size", TAILS)
def test_tails(target: str, size: int) -> None:
    legalized(chain(BF16, size, 40, size, 17), target)
    legalized(split_k(INT8, size, 72, block=size), target)
    legalized(softmax(size, 65), target)
    legalized(softmax(17, size), target)
    legalized(softmax(size, size, BF16), target)


EMULATED: dict[str, Callable[[int], Program]] = {
    "rows": lambda size: chain(FP16, size, 33, 17, 5) if size < 100 else chain(FP16, 100, 33, 17, 5),
    "bytes": lambda size: split_k(INT8, size, 72, block=40),
    "reduction": lambda size: softmax(size, 65),
    "narrow": lambda size: softmax(33, size, BF16),
}


@pytest.mark.parametrize("target", ("ascend910b", "ascend950"))
@pytest.mark.parametrize("size", TAILS)
@pytest.mark.parametrize("name", list(EMULATED))
def test_the_emulated_machine_gives_the_same(name: str, size: int, target: str) -> None:
    emulated(EMULATED[name](size), target)
