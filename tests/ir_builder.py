"""Programs built through the IR, for tests that must not depend on the reader of text."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.ir.dtypes import FP32, DType
from tilewright.ir.function import Direction, Function, FunctionKind, Param, Program
from tilewright.ir.nodes import Block, Call, For, If, Let, LoopKind, Return, Scope, Stmt, Yield
from tilewright.ir.op import Op
from tilewright.ir.rewrite import type_of
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import ScalarType, TensorType


class Builder:
    """One function, statement by statement. Nested blocks are functions of the builder that return what is yielded."""

    def __init__(self, name: str = "main", kind: FunctionKind = FunctionKind.INCORE) -> None:
        self.name = name
        self.kind = kind
        self.params: list[Param] = []
        self._out: list[Stmt] = []
        self._returned = False

    def tensor(self, name: str, *shape: Scalar, dtype: DType = FP32, direction: Direction = Direction.IN) -> Value:
        value = Value(name, TensorType(tuple(shape), dtype))
        self.params.append(Param(value, direction))
        return value

    def out(self, name: str, *shape: Scalar, dtype: DType = FP32) -> Value:
        return self.tensor(name, *shape, dtype=dtype, direction=Direction.OUT)

    def scalar(self, name: str, dtype: DType) -> Value:
        value = Value(name, ScalarType(dtype))
        self.params.append(Param(value))
        return value

    def let(self, name: str, op: Op | Scalar) -> Value:
        value = Value(name, op.infer() if isinstance(op, Op) else type_of(op))
        self._out.append(Let(value, op))
        return value

    def call(self, names: tuple[str, ...], callee: Function, *args: Scalar) -> tuple[Value, ...]:
        targets = tuple(Value(n, type_of(r)) for n, r in zip(names, callee.results, strict=True))
        self._out.append(Call(targets, callee.name, args))
        return targets

    def loop(
        self,
        stop: Scalar,
        inits: tuple[Value, ...],
        body: Callable[..., tuple[Scalar, ...]],
        kind: LoopKind = LoopKind.SEQUENTIAL,
    ) -> tuple[Value, ...]:
        from tilewright.ir.dtypes import INDEX

        iv = Value("i", ScalarType(INDEX))
        iter_args = tuple(Value(init.name, init.type) for init in inits)
        block = self._block(lambda: body(iv, *iter_args))
        results = tuple(Value(init.name, init.type) for init in inits)
        self._out.append(For(iv, 0, stop, 1, kind, inits, iter_args, block, results))
        return results

    def branch(
        self, condition: Scalar, then: Callable[[], tuple[Value, ...]], otherwise: Callable[[], tuple[Value, ...]]
    ) -> tuple[Value, ...]:
        arms = self._block(then), self._block(otherwise)
        last = arms[0][-1]
        assert isinstance(last, Yield)
        results = tuple(Value("r", type_of(value)) for value in last.values)
        self._out.append(If(condition, arms[0], arms[1], results))
        return results

    def scope(self, body: Callable[[], tuple[Value, ...]]) -> tuple[Value, ...]:
        block = self._block(body)
        last = block[-1]
        assert isinstance(last, Yield)
        results = tuple(Value("s", type_of(value)) for value in last.values)
        self._out.append(Scope("at", (), block, results))
        return results

    def _block(self, body: Callable[[], tuple[Scalar, ...]]) -> Block:
        outer, self._out = self._out, []
        values = body()
        block = (*self._out, Yield(values))
        self._out = outer
        return block

    def returns(self, *values: Scalar) -> Function:
        return Function(self.name, tuple(self.params), (*self._out, Return(values)), self.kind)


def program(*functions: Function) -> Program:
    """A program whose entry is the last of `functions`."""
    return Program(functions, functions[-1].name)
