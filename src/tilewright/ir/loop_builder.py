"""Writing loop nests: a builder whose blocks are with-statements, for passes and tests.

f = LoopBuilder("main")
a, b = f.buffer("A", (16,)), f.buffer("B", (16,))
with f.loop("i", 16) as i, f.block("copy", reads=[f.region(a, (i,))], writes=[f.region(b, (i,))]):
    f.store(b, (i,), f.load(a, i) + 1.0)
function = f.build()
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

from tilewright.errors import UNKNOWN, Span
from tilewright.ir.buffers import BufferType, Extern, Load, Region, named_type
from tilewright.ir.dtypes import FP32, INDEX, DType
from tilewright.ir.layout import MemorySpace
from tilewright.ir.loop_level import (
    ALWAYS,
    Alias,
    Allocate,
    Annotations,
    Attribute,
    ComputeBlock,
    Evaluate,
    Launch,
    Loop,
    LoopFunction,
    LoopKind,
    Match,
    OpCall,
    Store,
    While,
)
from tilewright.ir.nodes import Block, If, Let, Stmt
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Shape, Value, constant
from tilewright.ir.types import ScalarType


class LoopBuilder:
    """One function, statement by statement. A method whose statement has a block is a context manager. `span` is the
    source line of whatever is appended while it is set."""

    def __init__(self, name: str = "main") -> None:
        self.name = name
        self.params: list[Value] = []
        self.span: Span = UNKNOWN
        self._out: list[Stmt] = []

    def build(self) -> LoopFunction:
        """The function of what was appended so far."""
        return LoopFunction(self.name, tuple(self.params), tuple(self._out), self.span)

    # --- parameters ---
    def buffer(self, name: str, shape: Shape, dtype: DType = FP32, space: MemorySpace | None = None) -> Value:
        """A parameter that is a buffer."""
        return self._param(Value(name, BufferType(shape, dtype, space), self.span))

    def scalar(self, name: str, dtype: DType = INDEX) -> Value:
        """A parameter that is a scalar."""
        return self._param(Value(name, ScalarType(dtype), self.span))

    def _param(self, value: Value) -> Value:
        self.params.append(value)
        return value

    # --- statements ---
    def emit(self, stmt: Stmt) -> None:
        """Append any statement."""
        self._out.append(stmt)

    def extend(self, block: Block) -> None:
        """Append the statements of a block."""
        self._out.extend(block)

    def alloc(
        self,
        name: str,
        shape: Shape,
        dtype: DType = FP32,
        space: MemorySpace | None = None,
        **annotations: Any,
    ) -> Value:
        """A buffer from here to the end of the block that is open."""
        buffer = Value(name, BufferType(shape, dtype, space), self.span)
        self.emit(Allocate(buffer, tuple(annotations.items()), span=self.span))
        return buffer

    def alias(self, name: str, source: Value, shape: Shape, dtype: DType | None = None, offset: Scalar = 0) -> Value:
        """The memory of `source` from element `offset` on as another array."""
        assert isinstance(source.type, BufferType)
        buffer = Value(name, BufferType(shape, dtype or source.dtype, source.type.space), self.span)
        self.emit(Alias(buffer, source, offset, span=self.span))
        return buffer

    def let(self, name: str, value: Scalar) -> Value:
        """A name for a scalar."""
        target = Value(name, named_type(value), self.span)
        self.emit(Let(target, value, span=self.span))
        return target

    def store(self, buffer: Value, indices: Sequence[Scalar], value: Scalar | float | bool) -> None:
        """`buffer[indices] = value`; a plain number takes the buffer's dtype."""
        self.emit(Store(buffer, tuple(indices), element(value, buffer.dtype), span=self.span))

    def evaluate(self, call: Extern) -> None:
        """A call made for its effect."""
        self.emit(Evaluate(call, span=self.span))

    def op(self, op: Op, bindings: Iterable[tuple[Value, Region]], result: Region | None) -> None:
        """An operation, whole."""
        self.emit(OpCall(op, tuple(bindings), result, span=self.span))

    # --- expressions ---
    @staticmethod
    def load(buffer: Value, *indices: Scalar) -> Load:
        """`buffer[indices]`."""
        return Load(buffer, indices)

    @staticmethod
    def region(buffer: Value, offsets: Sequence[Scalar], extents: Sequence[Scalar] | None = None) -> Region:
        """The box at `offsets`; one element without `extents`."""
        return Region(buffer, tuple(offsets), tuple(extents) if extents is not None else (1,) * len(offsets))

    @staticmethod
    def whole(buffer: Value) -> Region:
        """The whole of a buffer."""
        assert isinstance(buffer.type, BufferType)
        return Region(buffer, (0,) * buffer.type.rank, buffer.type.shape)

    # --- statements with blocks ---
    @contextmanager
    def _nested(self, block: list[Stmt]) -> Generator[None]:
        outer, self._out = self._out, block
        try:
            yield
        finally:
            self._out = outer

    @contextmanager
    def loop(
        self,
        name: str,
        *bounds: Scalar,
        kind: LoopKind = LoopKind.SERIAL,
        thread: str | None = None,
        **annotations: Any,
    ) -> Generator[Value]:
        """A loop; bounds as those of `range`."""
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        iv, body, span = Value(name, ScalarType(INDEX), self.span), list[Stmt](), self.span
        kind = LoopKind.THREAD if thread is not None else kind
        with self._nested(body):
            yield iv
        self.emit(Loop(iv, start, stop, step, tuple(body), kind, thread, tuple(annotations.items()), span=span))

    @contextmanager
    def launch(self, thread: str, name: str, extent: Scalar | None = None) -> Generator[Value]:
        """The threads called `thread`."""
        iv, body, span = Value(name, ScalarType(INDEX), self.span), list[Stmt](), self.span
        with self._nested(body):
            yield iv
        self.emit(Launch(thread, iv, extent, tuple(body), span=span))

    @contextmanager
    def repeat(self, condition: Scalar) -> Generator[None]:
        """A while loop."""
        body, span = list[Stmt](), self.span
        with self._nested(body):
            yield
        self.emit(While(condition, tuple(body), span=span))

    @contextmanager
    def when(self, condition: Scalar) -> Generator[None]:
        """A branch; `otherwise` right after it opens the other arm."""
        body, span = list[Stmt](), self.span
        with self._nested(body):
            yield
        self.emit(If(condition, tuple(body), (), (), span=span))

    @contextmanager
    def otherwise(self) -> Generator[None]:
        """The other arm of the branch just appended."""
        body = list[Stmt]()
        with self._nested(body):
            yield
        branch = self._out.pop()
        assert isinstance(branch, If)
        self.emit(branch.replace(otherwise=tuple(body)))

    @contextmanager
    def attribute(self, key: str, node: Value, value: object) -> Generator[None]:
        """A fact that holds inside."""
        body, span = list[Stmt](), self.span
        with self._nested(body):
            yield
        self.emit(Attribute(key, node, value, tuple(body), span=span))

    @contextmanager
    def block(
        self,
        name: str,
        reads: Iterable[Region] = (),
        writes: Iterable[Region] = (),
        where: Scalar = ALWAYS,
        annotations: Annotations = (),
    ) -> Generator[BlockParts]:
        """A block of the structured form. Its allocations and matches are made through what it hands out."""
        parts, body, span = BlockParts(), list[Stmt](), self.span
        with self._nested(body):
            yield parts
        self.emit(
            ComputeBlock(
                name,
                tuple(reads),
                tuple(writes),
                tuple(body),
                where,
                tuple(parts.allocs),
                tuple(parts.matches),
                annotations,
                span=span,
            )
        )


class BlockParts:
    """What a block owns: its allocations and matched buffers."""

    def __init__(self) -> None:
        self.allocs: list[Allocate] = []
        self.matches: list[Match] = []

    def alloc(
        self, name: str, shape: Shape, dtype: DType = FP32, space: MemorySpace | None = None, **annotations: Any
    ) -> Value:
        """A buffer that exists inside the block."""
        buffer = Value(name, BufferType(shape, dtype, space))
        self.allocs.append(Allocate(buffer, tuple(annotations.items())))
        return buffer

    def match(self, name: str, source: Region) -> Value:
        """Another name for a region, of the same extents."""
        assert isinstance(source.buffer.type, BufferType)
        buffer = Value(name, BufferType(source.extents, source.buffer.dtype, source.buffer.type.space))
        self.matches.append(Match(buffer, source))
        return buffer


def element(value: Scalar | float | bool, dtype: DType) -> Scalar:
    """`value` as an element of `dtype`: a plain Python number becomes a constant of it."""
    if isinstance(value, bool | int | float) and (dtype is not INDEX or not isinstance(value, int)):
        return constant(value, dtype)
    return value if not isinstance(value, float) else constant(value, dtype)
