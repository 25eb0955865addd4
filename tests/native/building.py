"""Small tile programs written out by hand, and the comparison of native code with the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeGuard

import numpy as np
from support import Array, poison

from tilewright.codegen.native import NativeKernel, compile_native
from tilewright.execute.interpreter import interpret
from tilewright.ir.dtypes import FP32, INDEX, DType
from tilewright.ir.function import Direction, Function, Param, Program
from tilewright.ir.nodes import Let, Return, Stmt
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Shape, Value
from tilewright.ir.types import ScalarType, TensorType
from tilewright.ops import Load, Store
from tilewright.targets import Target, load_target

TAILS = (1, 15, 16, 17, 63, 64, 65, 200)
MARGIN = 64


@cache
def host() -> Target:
    return load_target("host")


def make(op: type[Op], *operands: Scalar) -> Op:
    """An operation of a class that is known only when testing."""
    cls: Any = op
    return cls(*operands)


class Building:
    """A function put together statement by statement."""

    def __init__(self, name: str = "kernel") -> None:
        self.name = name
        self.params: list[Param] = []
        self.body: list[Stmt] = []
        self.last: dict[Value, Value] = {}

    def tensor(
        self, name: str, *shape: Scalar, dtype: DType = FP32, out: bool = False, strides: Shape | None = None
    ) -> Value:
        value = Value(name, TensorType(shape, dtype, strides))
        self.params.append(Param(value, Direction.OUT if out else Direction.IN))
        if out:
            self.last[value] = value
        return value

    def scalar(self, name: str, dtype: DType = INDEX) -> Value:
        value = Value(name, ScalarType(dtype))
        self.params.append(Param(value))
        return value

    def let(self, op: Op, name: str = "x") -> Value:
        value = Value(name, op.infer())
        self.body.append(Let(value, op))
        return value

    def load(self, tensor: Value, valid: Shape | None = None, offsets: Shape | None = None, **given: Any) -> Value:
        assert isinstance(tensor.type, TensorType)
        shape = given.pop("shape", tensor.type.shape)
        return self.let(Load(tensor, offsets or (0,) * len(shape), shape, valid, **given))

    def store(self, tile: Value, out: Value, offsets: Shape | None = None) -> Value:
        assert isinstance(out.type, TensorType)
        self.last[out] = self.let(Store(tile, offsets or (0,) * out.type.rank, self.last[out]))
        return self.last[out]

    def function(self, *results: Scalar, **given: Any) -> Function:
        returned = (*results, *(v for v in self.last.values() if v not in results))
        return Function(self.name, tuple(self.params), (*self.body, Return(returned)), **given)

    def program(self, *results: Scalar) -> Program:
        return Program((self.function(*results),), self.name)


def is_array(value: Any) -> TypeGuard[Array]:
    return isinstance(value, np.ndarray)


def framed(values: Array) -> Array:
    """A copy of `values` in the middle of poison; contiguous itself."""
    around = poison((values.size + 2 * MARGIN,), values.dtype)
    view = around[MARGIN : MARGIN + values.size].reshape(values.shape)
    view[...] = values
    return view


def frame_intact(view: Array) -> bool:
    base: Any = view.base
    while base.base is not None:
        base = base.base
    wanted = poison(base.shape, base.dtype)
    edges = [np.concatenate([a[:MARGIN], a[-MARGIN:]]).tobytes() for a in (base, wanted)]
    return edges[0] == edges[1]


def compiled(program: Program, target: Target | None = None) -> NativeKernel:
    return compile_native(program, target or host())


def same(program: Program, arguments: Sequence[Any], kernel: NativeKernel | None = None, ulp: float = 0) -> Any:
    """Native code and the interpreter give the same results and write the same elements, exactly or within `ulp`
    units in the last place; nothing around the arrays changes. Returns what native code returned."""
    kernel = kernel or compiled(program)
    ours: list[Any] = [framed(a) if is_array(a) else a for a in arguments]
    theirs: list[Any] = [a.copy() if is_array(a) else a for a in arguments]
    expected = interpret(program, theirs)
    found = kernel.run(ours)
    for a, b in zip([*ours, *found], [*theirs, *expected], strict=True):
        compare(a, b, ulp)
    assert all(frame_intact(a) for a in ours if is_array(a)), "memory around an array was written"
    return found


def compare(found: Any, expected: Any, ulp: float = 0) -> None:
    a, b = np.asarray(found), np.asarray(expected)
    if not a.ndim:
        assert a == b
        return
    assert a.shape == b.shape and a.dtype == b.dtype
    with np.errstate(all="ignore"):
        wrong = a != b
        if a.dtype.kind not in "iub":
            wrong &= ~(np.isnan(a) & np.isnan(b))
            wrong &= ~(np.abs(a.astype(np.float64) - b.astype(np.float64)) <= ulp * unit(b))
    if np.any(wrong):
        where = tuple(np.argwhere(wrong)[0]) if wrong.ndim else ()
        raise AssertionError(f"{wrong.sum()} of {a.size} differ, first at {where}: {a[where]} for {b[where]}")


def unit(array: Array) -> Array:
    """The distance to the next value of the dtype, per element."""
    kind = array.dtype
    smallest, bits = {"float32": (2.0**-149, 23), "float16": (2.0**-24, 10), "bfloat16": (2.0**-133, 7)}[kind.name]
    size = np.abs(array.astype(np.float64))
    exponent = np.floor(np.log2(np.where(size > 0, size, 1)))
    return np.maximum(2.0 ** (exponent - bits), smallest)


def draw(shape: tuple[int, ...], dtype: DType, seed: int = 0) -> Array:
    """Small integers of any dtype, both signs; booleans at random."""
    generator = np.random.default_rng(seed)
    kind = np.dtype(dtype.numpy)
    if kind.kind == "b":
        return generator.integers(0, 2, shape).astype(kind)
    return generator.integers(0 if kind.kind == "u" else -7, 8, shape).astype(kind)


def special(shape: tuple[int, ...], dtype: DType, seed: int = 0) -> Array:
    """Numbers of all magnitudes, with NaN, infinities, both zeros and denormal numbers; integers over their range."""
    generator = np.random.default_rng(seed)
    kind = np.dtype(dtype.numpy)
    raw = generator.integers(0, 256, (*shape, kind.itemsize), np.uint8)
    if kind.kind == "b":
        return (raw[..., 0] & 1).astype(np.bool_)
    return raw.view(kind)[..., 0].copy()
