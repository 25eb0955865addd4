"""One operation as a program of its own: from tensors in DDR to a tensor in DDR, at either level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from op_cases import Case, Sizes, wide
from support import Array, exact_ints, poison

from tilewright.ir.dtypes import BF16, BOOL, FP16, FP32, INT8, INT32, DType
from tilewright.ir.function import Direction, Function, FunctionKind, Param, Program
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import Let, Return, Stmt
from tilewright.ir.op import Level, Op
from tilewright.ir.scalar import Value, constant
from tilewright.ir.types import ScalarType, TensorType, TileType
from tilewright.ops import Assemble, Cast, Full, Load, Matmul, Sel, Store, Write

PRODUCTS = (FP32, FP16, BF16, INT8)


@dataclass
class Run:
    """A program, its arguments (the last one is the result), and what the result should be."""

    program: Program
    arguments: list[Array]
    expected: Any
    tolerance: float


class _Maker:
    def __init__(self, case: Case, level: Level, dtype: DType, sizes: Sizes) -> None:
        self.case = case
        self.level = level
        self.dtype = dtype
        self.sizes = sizes
        self.params: list[Param] = []
        self.arguments: list[Array] = []
        self.body: list[Stmt] = []

    def let(self, op: Op, name: str = "v") -> Value:
        value = Value(name, op.infer())
        self.body.append(Let(value, op))
        return value

    def operand(self, index: int, letters: str, own: DType | None) -> tuple[Value, Array]:
        """A parameter, loaded where the operation reads tiles; a mask is made on chip, of numbers."""
        dtype = own or self.dtype
        physical = tuple(self.sizes[letter][0] for letter in letters)
        valid = tuple(self.sizes[letter][1] for letter in letters)
        if self.level is Level.TILE and index in self.case.products:
            return self.product(index, physical, valid, dtype)
        draw = self.case.draw[index] if self.case.draw else None
        kind = np.dtype(dtype.numpy)
        array = exact_ints(valid, kind, index) if draw is None else draw(valid, index).astype(kind)
        in_ddr = self.level is Level.TENSOR or index in self.case.ddr
        stored = INT32 if dtype is BOOL and index not in self.case.ddr else dtype
        value = Value(f"a{index}", TensorType(valid, stored))
        self.params.append(Param(value, Direction.IN))
        self.arguments.append(array.astype(np.dtype(stored.numpy)))
        if not in_ddr:
            value = self.let(Load(value, (0,) * len(valid), physical, valid))
        if dtype is not stored:
            value = self.let(Cast(value, BOOL, level=self.level))
        return value, array

    def parameter(self, name: str, array: Array, dtype: DType) -> Value:
        value = Value(name, TensorType(array.shape, dtype))
        self.params.append(Param(value, Direction.IN))
        self.arguments.append(array)
        return value

    def product(
        self, index: int, physical: tuple[int, ...], valid: tuple[int, ...], dtype: DType
    ) -> tuple[Value, Array]:
        """An operand as an accumulator: the product of its values and the identity."""
        own = INT8 if dtype is INT32 else dtype
        array = exact_ints(valid, np.dtype(own.numpy), index)
        values = self.parameter(f"a{index}", array, own)
        tile = self.let(Load(values, (0, 0), physical, valid))
        return self.times_identity(tile, own), array.astype(np.dtype(dtype.numpy))

    def times_identity(self, tile: Value, dtype: DType) -> Value:
        kind = tile.type
        assert isinstance(kind, TileType)
        extent, physical = kind.valid[1], kind.shape[1]
        assert isinstance(extent, int)
        one = self.parameter("one", np.eye(extent).astype(np.dtype(dtype.numpy)), dtype)
        right = self.let(Load(one, (0, 0), (physical, physical), (extent, extent)))
        return self.let(Matmul(tile, right, level=Level.TILE))

    def number_of(self, mask: Value) -> Value:
        """Ones where a mask holds, which memory can take."""
        kind = mask.type
        assert isinstance(kind, TensorType | TileType)
        valid = kind.valid if isinstance(kind, TileType) and kind.valid != kind.shape else None
        ones = self.let(Full(kind.shape, INT32, constant(1, INT32), valid, level=self.level))
        return self.let(Sel(mask, ones, constant(0, INT32), level=self.level))


def run_of(case: Case, level: Level, dtype: DType, sizes: Sizes) -> Run:
    """The program of one cell. Raises what the operation raises when it is typed."""
    maker = _Maker(case, level, dtype, sizes)
    own = case.operand_dtypes or (None,) * len(case.operands)
    given = [maker.operand(i, letters, kind) for i, (letters, kind) in enumerate(zip(case.operands, own, strict=True))]
    with np.errstate(all="ignore"):
        formula = cast("Callable[..., Any]", case.formula)
        inputs = (sizes["M"][1], sizes["N"][1]) if case.sized_formula else [wide(a.copy()) for _, a in given]
        expected = np.asarray(formula(*inputs))
    op = case.build(level, dtype, sizes, *(value for value, _ in given))
    made = maker.let(op)
    if isinstance(made.type, TileType) and made.type.space is MemorySpace.LEFT and dtype in PRODUCTS:
        made = maker.times_identity(made, dtype)  # nothing else reads it there
    written = getattr(op, op.writes) if op.writes else None
    if isinstance(made.type, TensorType) and any(param.value is written for param in maker.params):
        assert isinstance(written, Value)
        return _in_place(maker, made, written, expected)
    shape, kind = ((1, 1), made.dtype) if isinstance(made.type, ScalarType) else (_valid(made), made.dtype)
    if kind is BOOL and not isinstance(made.type, ScalarType):
        made, kind = maker.number_of(made), INT32
    out = Value("out", TensorType(shape, kind))
    maker.params.append(Param(out, Direction.OUT))
    maker.arguments.append(poison(shape, np.dtype(kind.numpy)))
    if isinstance(made.type, ScalarType):
        last = maker.let(Write(out, (0, 0), made, level=Level.TENSOR))
    elif isinstance(made.type, TileType):
        last = maker.let(Store(made, (0,) * len(shape), out))
    else:
        last = maker.let(Assemble(out, made, (0,) * len(shape), level=Level.TENSOR))
    if not case.operands and not case.sized_formula:
        expected = expected + np.zeros(shape)
    return _finished(maker, last, expected)


def joined(runs: Sequence[Run]) -> Run:
    """One program that does what each of `runs` does, one after another: compiled at once, which costs a third. What is
    expected is of each."""
    functions = [run.program.functions[0] for run in runs]
    params = tuple(param for function in functions for param in function.params)
    body = tuple(stmt for function in functions for stmt in function.body[:-1])
    last = Return(tuple(value for function in functions for value in function.results))
    function = Function("main", params, (*body, last), kind=FunctionKind.INCORE)
    arguments = [array for run in runs for array in run.arguments]
    return Run(Program((function,), "main"), arguments, [run.expected for run in runs], 0.0)


def _in_place(maker: _Maker, made: Value, written: Value, expected: Any) -> Run:
    """What is written is a tensor: a parameter that goes in and out."""
    position = next(i for i, param in enumerate(maker.params) if param.value is written)
    maker.params.append(Param(maker.params.pop(position).value, Direction.INOUT))
    maker.arguments.append(maker.arguments.pop(position))
    return _finished(maker, made, expected)


def _finished(maker: _Maker, last: Value, expected: Any) -> Run:
    body = (*maker.body, Return((last,)))
    function = Function("main", tuple(maker.params), body, kind=FunctionKind.INCORE)
    return Run(Program((function,), "main"), maker.arguments, expected, maker.case.tolerance)


def _valid(value: Value) -> tuple[int, ...]:
    kind = value.type
    assert isinstance(kind, TensorType | TileType)
    extents = kind.valid if isinstance(kind, TileType) else kind.shape
    return tuple(extent for extent in extents if isinstance(extent, int))
