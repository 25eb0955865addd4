"""The statements that an expansion appends, and how many elements its loops take one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.errors import UNKNOWN, Span
from tilewright.ir.dtypes import INDEX
from tilewright.ir.expansion import Body
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import Block, For, If, Let, LoopKind, Yield
from tilewright.ir.op import Level, Op
from tilewright.ir.rewrite import Rewriter, placed_like, type_of
from tilewright.ir.scalar import Scalar, Value, constant_value
from tilewright.ir.types import ScalarType, TensorType, TileType, Type
from tilewright.ops.create import Create

UNKNOWN_TRIPS = 16
"""Trips that are assumed of a loop whose number is not known when compiling, for the hint alone."""


class Builder(Rewriter):
    """Implements `ir.expansion.Expansion` for one operation at a time. `elements` counts what innermost loops do."""

    def __init__(self) -> None:
        super().__init__()
        self.name = ""
        self.span: Span = UNKNOWN
        self.space: MemorySpace | None = None
        self.elements = 0
        self._factor = 1
        self._nested = False

    def start(self, name: str, span: Span, space: MemorySpace | None) -> None:
        """From here on statements stand for an operation at `span`, whose result is called `name`."""
        self.name, self.span, self.space = name, span, space
        self.elements, self._factor, self._nested = 0, 1, False

    def op(self, op: Op, name: str | None = None) -> Value:
        return self.let(op, name or self.name, self.span)

    def named(self, scalar: Scalar, name: str) -> Scalar:
        if isinstance(scalar, Value) or constant_value(scalar) is not None:
            return scalar
        return self.let(scalar, name, self.span)

    def room(self, kind: Type) -> Value:
        if isinstance(kind, TensorType):
            return self.op(Create(kind.shape, kind.dtype, level=Level.TENSOR, span=self.span))
        assert isinstance(kind, TileType)
        valid = None if kind.valid == kind.shape else kind.valid
        space = kind.space or self.space
        return self.op(Create(kind.shape, kind.dtype, space, None, valid, level=Level.TILE, span=self.span))

    def placed(self, value: Value, kind: Type) -> Value:
        """`value` as a value of type `kind`, where that only says more about the place of what was made last."""
        last = self._out[-1] if self._out else None
        if value.type is kind or not isinstance(last, Let) or last.target is not value:
            return value
        if placed_like(value.type, kind) is not kind:
            return value
        self._out.pop()
        new = Value(value.name, kind, self.span)
        self.emit(Let(new, last.value, span=last.span))
        return new

    def loop(self, stop: Scalar, carried: Sequence[Scalar], body: Body, name: str = "i") -> tuple[Value, ...]:
        trips = stop if isinstance(stop, int) else UNKNOWN_TRIPS
        outer, self._factor, self._nested = self._factor, self._factor * trips, False
        iv = Value(name, ScalarType(INDEX), self.span)
        args = tuple(Value(_name(init, self.name), type_of(init), self.span) for init in carried)
        block = self._arm(lambda: body(iv, *args))
        if not self._nested:
            self.elements += self._factor
        self._factor, self._nested = outer, True
        results = tuple(Value(arg.name, arg.type, self.span) for arg in args)
        inits = tuple(carried)
        self.emit(For(iv, 0, stop, 1, LoopKind.SEQUENTIAL, inits, args, block, results, span=self.span))
        return results

    def choose(
        self, condition: Scalar, then: Callable[[], Sequence[Scalar]], otherwise: Callable[[], Sequence[Scalar]]
    ) -> tuple[Value, ...]:
        arms = self._arm(then), self._arm(otherwise)
        given = arms[0][-1]
        assert isinstance(given, Yield)
        results = tuple(Value(_name(value, self.name), type_of(value), self.span) for value in given.values)
        self.emit(If(condition, *arms, results, span=self.span))
        return results

    def _arm(self, body: Callable[[], Sequence[Scalar]]) -> Block:
        outer, self._out = self._out, []
        try:
            values = tuple(body())
            return (*self._out, Yield(values, span=self.span))
        finally:
            self._out = outer


def _name(value: Scalar, name: str) -> str:
    return value.name if isinstance(value, Value) else name
