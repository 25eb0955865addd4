"""{[1, N], [M, 1], [M, N]} against each other, for every operation of two operands, whatever the arrays lie like."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, cast

import numpy as np
import pytest
from support import Array

import tilewright as tw
from tilewright.codegen.native import compile_native
from tilewright.codegen.pto.check import check
from tilewright.codegen.pto.emulate import launch
from tilewright.codegen.pto.writer import emit_pto
from tilewright.compiler import UNPLACED, lower
from tilewright.ir.fields import Kind
from tilewright.ir.loops import Elementwise
from tilewright.ir.op import Level, Op, registry
from tilewright.targets import load_target

M, N = 17, 15
SHAPES = {"row": (1, N), "column": (M, 1), "matrix": (M, N)}


def leaky(a: Any, b: Any) -> Any:
    return cast("Any", np.where(a > 0, a, a * b))


FORMULAS: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "maximum": np.maximum,
    "minimum": np.minimum, "fmod": np.fmod, "rem": np.remainder, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "shl": np.left_shift, "shr": np.right_shift, "cmp": np.equal, "prelu": leaky, "lrelu": leaky,
}  # fmt: skip
INTEGERS = ("and", "or", "xor", "shl", "shr")


def two_operands() -> list[str]:
    """The elementwise operations of two operands of one shape, read from their classes."""

    def takes(cls: type[Op]) -> bool:
        given = [f for f in cls.fields if f.kind in (Kind.OPERAND, Kind.SCALAR) and not f.scratch]
        form = cls.loops
        return len(given) == 2 and isinstance(form, Elementwise) and not form.maps and given[1].kind is Kind.OPERAND

    return sorted({cls.name for cls in registry().values() if takes(cls) and Level.TENSOR in cls.levels})


def test_every_operation_has_a_formula() -> None:
    assert two_operands() == sorted(FORMULAS)


def laid(values: Array, how: str) -> Array:
    """The same numbers in rows, in columns, or apart from each other."""
    if how == "columns":
        return np.asfortranarray(values)
    if how == "rows":
        return np.ascontiguousarray(values)
    room = np.zeros((values.shape[0] * 2, values.shape[1] * 3), values.dtype)
    room[::2, ::3] = values
    return room[::2, ::3]


def numbers(name: str, shape: tuple[int, int], seed: int) -> Array:
    kind = np.int32 if name in INTEGERS else np.float32
    return np.random.default_rng(seed).integers(1, 5, shape).astype(kind)


def parameter(name: str, array: Array, dtype: str) -> str:
    steps = [step // array.itemsize for step in array.strides]
    view = "" if array.flags.c_contiguous else f", pl.TensorView(stride={steps})"
    return f"{name}: pl.Tensor[{list(array.shape)}, pl.{dtype}{view}]"


def program_of(name: str, a: Array, b: Array) -> tw.Program:
    """`name` of both, in one section; a mask is stored as ones and zeros."""
    dtype = "INT32" if name in INTEGERS else "FP32"
    shape = list(np.broadcast_shapes(a.shape, b.shape))
    result = f"pl.sel(y, pl.tensor.full({shape}, pl.FP32, 1.0), 0.0)" if name == "cmp" else "y"
    return tw.parse(f"""
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, {parameter("a", a, dtype)}, {parameter("b", b, dtype)}, out: pl.Out[pl.Tensor[{shape}, pl.{dtype}]]):
        y = pl.{name}_(a, b)
        z = {result}
        out_1 = pl.tensor.assemble(out, z, [0, 0])
        return out_1
""")


def expected(name: str, a: Array, b: Array) -> Array:
    shape = np.broadcast_shapes(a.shape, b.shape)
    return np.asarray(FORMULAS[name](np.broadcast_to(a, shape), np.broadcast_to(b, shape))).astype(a.dtype)


@pytest.mark.parametrize("how", ["rows", "columns", "apart"])
@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_natively(name: str, how: str) -> None:
    target = load_target("host")
    for one, other in product(SHAPES.values(), repeat=2):
        a, b = laid(numbers(name, one, 1), how), laid(numbers(name, other, 2), how)
        wanted = expected(name, a, b)
        out = np.zeros(wanted.shape, wanted.dtype)
        compile_native(lower(program_of(name, a, b), target, after=UNPLACED), target).run([a, b, out])
        np.testing.assert_array_equal(out, wanted, f"{name} of {one} and {other}, {how}")


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["ascend910b", "ascend950"])
@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_on_both_chips(name: str, machine: str) -> None:
    target = load_target(machine)
    for one, other in product(SHAPES.values(), repeat=2):
        a, b = numbers(name, one, 1), numbers(name, other, 2)
        wanted = expected(name, a, b)
        out = np.zeros(wanted.shape, wanted.dtype)
        module = emit_pto(lower(program_of(name, a, b), target), target)
        assert [str(f) for text in module.texts.values() for f in check(text, level=3, dialect="current")] == []
        launch(module.manifest, module.texts, {"a": a, "b": b, "out": out}, sync="auto")
        np.testing.assert_array_equal(out, wanted, f"{name} of {one} and {other}")
