"""Any operation of the registry, on operands of its own: so that random programs hold every one of them.

The operands and how to draw them are those of `op_cases`. A result in floats need not be a whole number, so that it is
rounded to one before anything else reads it; a mask chooses between two numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from op_cases import CASES, FULL, TAIL, Case, Draw, base_name
from properties.statements import LIMITS, TAMED, Statements

from tilewright.errors import TilewrightError
from tilewright.ir.dtypes import BOOL, FP32, INT32, DType
from tilewright.ir.function import Direction, Param
from tilewright.ir.op import Level, Op
from tilewright.ir.scalar import Value, constant
from tilewright.ir.types import TensorType, TileType


@cache
def cases_of(level: Level) -> tuple[tuple[Case, ...], ...]:
    """The cases at `level`, those of one operation together. What no other level has stands there twice, so that it is
    drawn as often as the rest."""
    found: dict[str, list[Case]] = {}
    elsewhere: set[str] = set()
    for name, case in CASES.items():
        if level in case.levels:
            found.setdefault(base_name(name), []).append(case)
        if case.levels != (level,):
            elsewhere.add(base_name(name))
    alone = [cases for name, cases in found.items() if name not in elsewhere]
    return tuple(map(tuple, [*found.values(), *alone]))


class AnyOperation(Statements):
    """Statements, and one of any operation."""

    special: dict[str, Callable[[tuple[int, ...]], Any]]
    """parameters that need other numbers than small integers, such as indices, by name"""
    stored: list[Value]
    """tensors that an operation wrote, in their last version"""

    def any_operation(self) -> None:
        """One operation, its operands loaded for it."""
        case: Case = self.pick(self.pick(cases_of(self.level)))
        dtype: DType = self.pick(case.dtypes)
        sizes = FULL if self.maybe(2) else TAIL
        own = case.operand_dtypes or (None,) * len(case.operands)
        draws = case.draw or (None,) * len(case.operands)
        shapes = [[sizes[letter] for letter in letters] for letters in case.operands]
        mark = len(self.builder.params), len(self.builder._out), len(self.pool.arrays)  # pyright: ignore[reportPrivateUsage]
        try:
            values = [
                self._operand(shape, kind or dtype, draw, ddr=at in case.ddr)
                for at, (shape, kind, draw) in enumerate(zip(shapes, own, draws, strict=True))
            ]
            op = case.build(self.level, dtype, sizes, *values)
            op.infer()
        except TilewrightError:
            self._back(mark)
            return
        self._use(op)

    def _operand(self, shape: list[tuple[int, int]], dtype: DType, draw: Draw | None, *, ddr: bool) -> Value:
        physical, valid = zip(*shape, strict=True)
        tensor = self.tensor(valid, dtype)
        if draw is not None:
            seed = self.inputs
            self.special[tensor.name] = lambda extents: draw(extents, seed)
        if ddr or self.level is Level.TENSOR:
            return tensor
        self.names += 1
        load = self.op("load", tensor, (0,) * len(shape), tuple(physical), tuple(valid))
        return self.builder.let(f"v{self.names}", load)

    def _use(self, op: Op) -> None:
        """The operation as a statement, and its result made fit for the others."""
        written = getattr(op, op.writes) if op.writes is not None else None
        if isinstance(written, Value) and isinstance(written.type, TensorType):
            position = next((i for i, p in enumerate(self.builder.params) if p.value is written), None)
            if position is None or self.depth:
                return
            self.builder.params[position] = Param(written, Direction.INOUT)
        result = self.let(op, LIMITS.get(FP32, 0))
        if result is None:
            return
        if written is not None and isinstance(result.type, TensorType):
            self.stored.append(result)
            self.pool.arrays = [item for item in self.pool.arrays if item[0] is not result]
            return
        if not isinstance(result.type, TensorType | TileType):
            return
        self.pool.arrays = [item for item in self.pool.arrays if item[0] is not result]
        self._whole_numbers(result)

    def _whole_numbers(self, result: Value) -> None:
        bound = LIMITS[INT32]
        before = {item[0] for item in self.pool.arrays}
        if result.dtype is BOOL:
            low, high = constant(0, FP32), constant(1, FP32)
            zero = self.let(self.op("cast", result, FP32), 1)
            if zero is not None:
                self.let(self.op("add", zero, high if self.maybe(2) else low), 2)
        elif result.dtype.is_float:
            # Close to zero first: far from it, one unit in the last place is more than what rounding takes away.
            self.pool.arrays.append((result, bound))
            small, _ = self.tamed((result, bound))
            self.pool.arrays = [
                item for item in self.pool.arrays if item[0].dtype is not small.dtype or item[0] in before
            ]
            self.let(self.op("cast", small, INT32), TAMED)
        elif result.dtype in LIMITS:
            self.pool.arrays.append((result, bound))

    def _back(self, mark: tuple[int, int, int]) -> None:
        """As if nothing had been drawn."""
        del self.builder.params[mark[0] :]
        del self.builder._out[mark[1] :]  # pyright: ignore[reportPrivateUsage]
        del self.pool.arrays[mark[2] :]
