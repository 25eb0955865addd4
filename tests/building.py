"""A small builder of tile-level functions, for tests of passes that stand below the frontend."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from tilewright.errors import Span
from tilewright.ir.dtypes import FP32, INDEX, DType
from tilewright.ir.function import Direction, Function, FunctionKind, Param, Program
from tilewright.ir.layout import MemorySpace
from tilewright.ir.nodes import Block, For, If, Let, LoopKind, Return, Stmt, Yield
from tilewright.ir.op import Op
from tilewright.ir.rewrite import type_of
from tilewright.ir.scalar import Scalar, Value
from tilewright.ir.types import ScalarType, TensorType
from tilewright.ops.movement import Load, Store


class Builder:
    """Appends statements to the innermost open block."""

    def __init__(self) -> None:
        self.params: list[Param] = []
        self.blocks: list[list[Stmt]] = [[]]
        self.line = 0

    def tensor(
        self, name: str, shape: tuple[Scalar, ...], dtype: DType = FP32, out: bool = False, inout: bool = False
    ) -> Value:
        value = Value(name, TensorType(shape, dtype))
        direction = Direction.INOUT if inout else Direction.OUT if out else Direction.IN
        self.params.append(Param(value, direction))
        return value

    def index(self, name: str) -> Value:
        value = Value(name, ScalarType(INDEX))
        self.params.append(Param(value))
        return value

    def let(self, name: str, op: Op) -> Value:
        self.line += 1
        span = Span("kernel.py", self.line, 0, self.line, 10)
        value = Value(name, op.infer(), span)
        self.blocks[-1].append(Let(value, op, span=span))
        return value

    def load(
        self, name: str, tensor: Value, shape: tuple[int, ...] | None = None, space: MemorySpace | None = None,
        offsets: tuple[Scalar, ...] | None = None, **fields: Any,
    ) -> Value:  # fmt: skip
        assert isinstance(tensor.type, TensorType)
        extents = shape or tensor.type.shape
        return self.let(name, Load(tensor, offsets or (0,) * len(extents), extents, target_memory=space, **fields))

    def store(self, tile: Value, out: Value, offsets: tuple[Scalar, ...] = (0, 0)) -> Value:
        return self.let(f"{out.name}_1", Store(tile, offsets, out))

    @contextmanager
    def nested(self) -> Generator[list[Stmt]]:
        inner: list[Stmt] = []
        self.blocks.append(inner)
        try:
            yield inner
        finally:
            self.blocks.pop()

    def loop(
        self,
        stop: Scalar,
        inits: tuple[Value, ...],
        body: Callable[..., tuple[Value, ...]],
        kind: LoopKind = LoopKind.SEQUENTIAL,
        stage: int = 1,
    ) -> tuple[Value, ...]:
        iv = Value("k", ScalarType(INDEX))
        args = tuple(Value(f"{init.name}_arg", type_of(init)) for init in inits)
        with self.nested() as inner:
            values = body(iv, *args)
            inner.append(Yield(values))
        results = tuple(Value(f"{init.name}_out", type_of(init)) for init in inits)
        self.blocks[-1].append(For(iv, 0, stop, 1, kind, inits, args, tuple(inner), results, stage))
        return results

    def branch(
        self, condition: Scalar, then: Callable[[], tuple[Value, ...]], otherwise: Callable[[], tuple[Value, ...]]
    ) -> tuple[Value, ...]:
        arms: list[Block] = []
        for arm in (then, otherwise):
            with self.nested() as inner:
                inner.append(Yield(arm()))
            arms.append(tuple(inner))
        last = arms[0][-1]
        assert isinstance(last, Yield)
        results = tuple(Value(f"phi{index}", type_of(value)) for index, value in enumerate(last.values))
        self.blocks[-1].append(If(condition, arms[0], arms[1], results))
        return results

    def program(self, *results: Scalar, kind: FunctionKind = FunctionKind.INCORE) -> Program:
        body = (*self.blocks[0], Return(results))
        return Program((Function("main", tuple(self.params), body, kind),), "main")


def ops_of(program: Program) -> list[str]:
    """`name = op(operands) [space]` of every operation, in order."""
    lines: list[str] = []
    for stmt in program.main.walk():
        if isinstance(stmt, Let) and isinstance(stmt.value, Op):
            op = stmt.value
            operands = ", ".join(value.name for _, value in op.operand_items())
            space = getattr(stmt.target.type, "space", None)
            where = f" [{space.value}]" if space is not None else ""
            lines.append(f"{stmt.target.name} = {op.qualified_name}({operands}){where}")
    return lines
