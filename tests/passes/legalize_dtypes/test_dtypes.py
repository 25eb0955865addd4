"""spaces R19, R23: arithmetic that a target lacks gives what the operation itself gives, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from building import Builder, ops_of

from tilewright.errors import UnsupportedError
from tilewright.execute.interpreter import interpret
from tilewright.ir.dtypes import BF16, BOOL, FP16, FP32, INT8, INT32, DType
from tilewright.ir.function import Program
from tilewright.ir.layout import MemorySpace
from tilewright.ir.op import Op
from tilewright.ir.scalar import Value, constant
from tilewright.ir.types import TileType
from tilewright.ir.verify import verify
from tilewright.ops.broadcast import ColExpandMul, RowExpandAdd
from tilewright.ops.cast import Cast
from tilewright.ops.elementwise import Abs, Add, Div, Exp, Maximum, Minimum, Mul, Neg, Recip, Relu, Rsqrt, Sqrt, Sub
from tilewright.ops.matmul import Matmul
from tilewright.ops.reduce import ColMax, ColSum, RowMax, RowSum
from tilewright.ops.select import Cmp, Sel
from tilewright.passes.tile.infer_spaces import infer_spaces
from tilewright.passes.tile.legalize_dtypes import legalize_dtypes
from tilewright.targets import load_target

VEC = MemorySpace.VEC
Make = Callable[[Builder, Value, Value], Op]

FLOATS: dict[str, Make] = {
    "add": lambda b, x, y: Add(x, y),
    "sub": lambda b, x, y: Sub(x, y),
    "mul": lambda b, x, y: Mul(x, y),
    "div": lambda b, x, y: Div(x, y),
    "max": lambda b, x, y: Maximum(x, y),
    "min": lambda b, x, y: Minimum(x, y),
    "adds": lambda b, x, y: Add(x, constant(0.1, x.dtype)),
    "muls": lambda b, x, y: Mul(x, constant(3, x.dtype)),
    "neg": lambda b, x, y: Neg(x),
    "abs": lambda b, x, y: Abs(x),
    "exp": lambda b, x, y: Exp(x),
    "sqrt": lambda b, x, y: Sqrt(x),
    "rsqrt": lambda b, x, y: Rsqrt(x),
    "recip": lambda b, x, y: Recip(x),
    "relu": lambda b, x, y: Relu(x),
    "row_sum": lambda b, x, y: RowSum(x),
    "row_max": lambda b, x, y: RowMax(x),
    "col_sum": lambda b, x, y: ColSum(x),
    "row_expand": lambda b, x, y: RowExpandAdd(x, b.let("r", RowMax(y))),
    "col_expand": lambda b, x, y: ColExpandMul(x, b.let("c", ColMax(y))),
    "sel": lambda b, x, y: Sel(b.let("m", Cmp(x, y, 2)), x, y),
    "sels": lambda b, x, y: Sel(b.let("m", Cmp(x, constant(0.5, x.dtype), 4)), x, constant(0.1, x.dtype)),
}
"""Operations on floats, `lhs` the bit patterns and `rhs` a permutation of them."""


def kernel(make: Make, dtype: DType, shape: tuple[int, int]) -> Program:
    b = Builder()
    x, y = (b.load(n, b.tensor(t, shape, dtype), space=VEC) for n, t in (("x", "a"), ("y", "b")))
    made = b.let("made", make(b, x, y))
    assert isinstance(made.type, TileType)
    return b.program(b.store(made, b.tensor("out", made.type.shape, made.dtype, out=True)))


def both(program: Program, target: str, *arrays: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """The output as the program means it, and as the legalised one computes it."""
    machine = load_target(target)
    legal = legalize_dtypes(infer_spaces(program, machine), machine)
    verify(legal)
    found: list[np.ndarray[Any, Any]] = []
    for version in (program, legal):
        out = version.main.params[-1].value.type
        result = np.zeros(tuple(out.shape), np.dtype(out.dtype.numpy))  # type: ignore[attr-defined]
        interpret(version, [*arrays, result])
        found.append(result)
    return found


@pytest.mark.parametrize("target", ("ascend910b", "ascend950"))
@pytest.mark.parametrize("name", list(FLOATS))
@pytest.mark.parametrize("dtype", (BF16, FP16), ids=str)
def test_narrow_floats_every_bit_pattern(target: str, name: str, dtype: DType) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.dtype(dtype.numpy)).reshape(256, 256)
    other = np.random.default_rng(1).permutation(every.reshape(-1)).reshape(256, 256)
    wanted, found = both(kernel(FLOATS[name], dtype, (256, 256)), target, every, other)
    kind = np.uint8 if wanted.dtype == np.bool_ else np.uint16
    nan = wanted != wanted
    assert (nan == (found != found)).all()
    np.testing.assert_array_equal(wanted.view(kind)[~nan], found.view(kind)[~nan])


@pytest.mark.parametrize("target", ("ascend910b", "ascend950"))
@pytest.mark.parametrize(("src", "dst"), [(a, b) for a in (FP32, FP16, BF16, INT8, BOOL) for b in (FP32, BF16, INT8, BOOL)])
def test_casts(target: str, src: DType, dst: DType) -> None:
    values = np.random.default_rng(2).integers(0 if src is BOOL else -120, 2 if src is BOOL else 120, (32, 64))
    given = values.astype(np.dtype(src.numpy))
    wanted, found = both(kernel(lambda b, x, y: Cast(x, dst), src, (32, 64)), target, given, given)
    np.testing.assert_array_equal(wanted, found)


def test_bf16_addition_on_the_910b_goes_through_f32() -> None:
    target = load_target("ascend910b")
    out = legalize_dtypes(infer_spaces(kernel(FLOATS["add"], BF16, (32, 32)), target), target)
    assert ops_of(out)[2:6] == [
        "x_fp32 = tile.cast(x) [Vec]", "y_fp32 = tile.cast(y) [Vec]",
        "made_fp32 = tile.add(x_fp32, y_fp32) [Vec]", "made = tile.cast(made_fp32) [Vec]",
    ]  # fmt: skip


def test_what_a_target_has_stays() -> None:
    target = load_target("ascend910b")
    program = infer_spaces(kernel(FLOATS["add"], FP16, (32, 32)), target)
    assert legalize_dtypes(program, target) is program


def test_a_value_is_widened_once_and_rounded_after_every_operation() -> None:
    target = load_target("ascend910b")
    make: Make = lambda b, x, y: Mul(b.let("s", Add(x, y)), x)  # noqa: E731
    lines = ops_of(legalize_dtypes(infer_spaces(kernel(make, BF16, (32, 32)), target), target))
    assert sum(line.startswith("x_fp32") for line in lines) == 1
    assert "s = tile.cast(s_fp32) [Vec]" in lines and "s_fp32 = tile.cast(s) [Vec]" in lines


def test_bytes_pass_through_a_wider_type_where_nothing_can_overflow() -> None:
    values = np.arange(-128, 128, dtype=np.int8).reshape(8, 32)
    for make in (FLOATS["max"], FLOATS["min"], FLOATS["row_max"]):
        wanted, found = both(kernel(make, INT8, (8, 32)), "ascend910b", values, values[::-1].copy())
        np.testing.assert_array_equal(wanted, found)


@pytest.mark.parametrize(
    ("make", "dtype", "message"),
    [
        (FLOATS["add"], INT8, "has no tile.add for INT8"),
        (lambda b, x, y: Abs(x), INT32, "has no tile.abs for INT32"),
        (lambda b, x, y: Cast(x, INT8), INT32, "no way from INT32 to INT8"),
    ],
)
def test_refusals_name_what_the_target_takes(make: Make, dtype: DType, message: str) -> None:
    target = load_target("ascend910b")
    program = infer_spaces(kernel(make, dtype, (32, 32)), target)
    with pytest.raises(UnsupportedError, match=message) as caught:
        legalize_dtypes(program, target)
    assert "kernel.py:3" in str(caught.value) and caught.value.help is not None


def test_a_product_that_no_engine_takes_is_refused() -> None:
    b = Builder()
    x = b.load("x", b.tensor("a", (32, 32), FP16), space=MemorySpace.LEFT)
    y = b.load("y", b.tensor("b", (32, 32), FP16), space=MemorySpace.RIGHT)
    b.let("r", Matmul(x, y))
    target = load_target("ascend910b")
    program = infer_spaces(b.program(), target)
    assert legalize_dtypes(program, target) is program
