"""Buffers, and the expressions that only the loop level has: elements read, vector lanes, calls.

B[i, j]                       Load(B, (i, j))
B[ramp(0, 2, 4)]              the lanes B[0], B[2], B[4], B[6]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tilewright.ir.dtypes import BOOL, INDEX, DType
from tilewright.ir.layout import MemorySpace
from tilewright.ir.scalar import (
    Binary,
    BinaryKind,
    Choice,
    Expr,
    Scalar,
    Shape,
    Value,
    binary,
    constant_value,
    dtype_of,
    linear_terms,
    substitute,
    values_in,
)
from tilewright.ir.types import ScalarType, Type, interned

Replace = Callable[[Value], Scalar]


class BufferType(Type):
    """An array in memory, row by row. `space` None: memory of the caller, or not chosen yet."""

    __slots__ = ("_dtype", "shape", "space")
    shape: Shape
    space: MemorySpace | None
    _dtype: DType

    def __new__(cls, shape: Shape, dtype: DType, space: MemorySpace | None = None) -> BufferType:
        self, new = interned(cls, (shape, dtype, space))
        if new:
            self.shape, self._dtype, self.space = shape, dtype, space
        return self

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def rank(self) -> int:
        return len(self.shape)

    def scalars(self) -> Iterator[Scalar]:
        return iter(self.shape)

    def substitute(self, replace: Replace) -> BufferType:
        return BufferType(tuple(substitute(extent, replace) for extent in self.shape), self._dtype, self.space)

    def __repr__(self) -> str:
        return f"pl.loop.Buffer[{list(self.shape)!r}, {self._dtype}, {self.space}]"


class VectorType(Type):
    """A named scalar expression of several lanes."""

    __slots__ = ("_dtype", "lanes")
    lanes: int
    _dtype: DType

    def __new__(cls, dtype: DType, lanes: int) -> VectorType:
        self, new = interned(cls, (dtype, lanes))
        if new:
            self._dtype, self.lanes = dtype, lanes
        return self

    @property
    def dtype(self) -> DType:
        return self._dtype

    def __repr__(self) -> str:
        return f"pl.loop.Vector[pl.{self._dtype}, {self.lanes}]"


class HandleType(Type):
    """A named pointer to elements of `dtype`."""

    __slots__ = ("_dtype",)
    _dtype: DType

    def __new__(cls, dtype: DType) -> HandleType:
        self, new = interned(cls, (dtype,))
        if new:
            self._dtype = dtype
        return self

    @property
    def dtype(self) -> DType:
        return self._dtype

    def __repr__(self) -> str:
        return f"pl.loop.Handle[pl.{self._dtype}]"


DimAlign = tuple[tuple[int, int, int], ...]
"""For some dimensions: the dimension, a factor, and an offset."""


def row_strides(shape: tuple[int, ...], dim_align: DimAlign = ()) -> tuple[int, ...]:
    """Elements from one index to the next in each dimension: row by row, innermost first, the stride of an aligned
    dimension raised until it is `offset` modulo `factor`."""
    wanted = {dim: (factor, offset) for dim, factor, offset in dim_align}
    strides: list[int] = []
    stride = 1
    for dim in reversed(range(len(shape))):
        if dim in wanted:
            factor, offset = wanted[dim]
            stride += (offset - stride) % factor
        strides.insert(0, stride)
        stride *= shape[dim]
    return tuple(strides)


def buffer_type(buffer: Value) -> BufferType:
    """The type of a value that is a buffer."""
    assert isinstance(buffer.type, BufferType)
    return buffer.type


class _Node(Expr):
    """An expression that is its class, its children and `facts`."""

    __slots__ = ()

    def facts(self) -> tuple[object, ...]:
        """What tells two of them apart besides their children."""
        return ()

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Node)
            and type(self) is type(other)
            and self.facts() == other.facts()
            and self.children() == other.children()
        )

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.facts(), self.children()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}{(*self.facts(), *self.children())!r}"


class Load(_Node):
    """`buffer[indices]`. A vector where an index is one; an element at a time elsewhere."""

    __slots__ = ("buffer", "indices")

    def __init__(self, buffer: Value, indices: Shape) -> None:
        self.buffer = buffer
        self.indices = indices

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    def children(self) -> tuple[Scalar, ...]:
        return (self.buffer, *self.indices)

    def with_children(self, children: tuple[Scalar, ...]) -> Scalar:
        buffer = children[0]
        assert isinstance(buffer, Value)
        return Load(buffer, children[1:])


class Ramp(_Node):
    """The vector ``base, base + stride, …`` of `lanes` indices; `stride` may be negative."""

    __slots__ = ("base", "lanes", "stride")

    def __init__(self, base: Scalar, stride: Scalar, lanes: int) -> None:
        self.base = base
        self.stride = stride
        self.lanes = lanes

    @property
    def dtype(self) -> DType:
        return INDEX

    def facts(self) -> tuple[object, ...]:
        return (self.lanes,)

    def children(self) -> tuple[Scalar, ...]:
        return (self.base, self.stride)

    def with_children(self, children: tuple[Scalar, ...]) -> Scalar:
        return Ramp(children[0], children[1], self.lanes)


class Broadcast(_Node):
    """`value` in each of `lanes` lanes."""

    __slots__ = ("lanes", "value")

    def __init__(self, value: Scalar, lanes: int) -> None:
        self.value = value
        self.lanes = lanes

    @property
    def dtype(self) -> DType:
        return dtype_of(self.value)

    def facts(self) -> tuple[object, ...]:
        return (self.lanes,)

    def children(self) -> tuple[Scalar, ...]:
        return (self.value,)

    def with_children(self, children: tuple[Scalar, ...]) -> Scalar:
        return Broadcast(children[0], self.lanes)


class IfThenElse(Choice):
    """A choice that evaluates only the one it takes (a `Select` evaluates both)."""

    __slots__ = ()


class Likely(_Node):
    """`condition`, said to hold nearly always."""

    __slots__ = ("condition",)

    def __init__(self, condition: Scalar) -> None:
        self.condition = condition

    @property
    def dtype(self) -> DType:
        return BOOL

    def children(self) -> tuple[Scalar, ...]:
        return (self.condition,)

    def with_children(self, children: tuple[Scalar, ...]) -> Scalar:
        return children[0] if constant_value(children[0]) is not None else Likely(children[0])


class AddressOf(_Node):
    """A pointer into `buffer`, an argument of an `Extern`: `offset` elements from its start, of the `extent` elements
    from there that may be touched; None where the callee takes the whole buffer."""

    __slots__ = ("buffer", "extent", "offset")

    def __init__(self, buffer: Value, offset: Scalar | None = None, extent: Scalar | None = None) -> None:
        self.buffer = buffer
        self.offset = offset
        self.extent = extent

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    def facts(self) -> tuple[object, ...]:
        return (self.offset is None, self.extent is None)

    def children(self) -> tuple[Scalar, ...]:
        return (self.buffer, *(part for part in (self.offset, self.extent) if part is not None))

    def with_children(self, children: tuple[Scalar, ...]) -> Scalar:
        buffer, *rest = children
        assert isinstance(buffer, Value)
        offset = rest.pop(0) if self.offset is not None else None
        return AddressOf(buffer, offset, rest.pop(0) if self.extent is not None else None)


class Extern(_Node):
    """A call of a function that is not the compiler's. `pure`: its value depends on its arguments alone."""

    __slots__ = ("_dtype", "args", "name", "pure")

    def __init__(self, name: str, args: tuple[Scalar, ...], dtype: DType, pure: bool = False) -> None:
        self.name = name
        self.args = args
        self.pure = pure
        self._dtype = dtype

    @property
    def dtype(self) -> DType:
        return self._dtype

    def facts(self) -> tuple[object, ...]:
        return (self.name, self.pure, self._dtype.name)

    def children(self) -> tuple[Scalar, ...]:
        return self.args

    def with_children(self, children: tuple[Scalar, ...]) -> Scalar:
        return Extern(self.name, children, self._dtype, self.pure)


def lanes_of(scalar: Scalar) -> int:
    """How many lanes an expression has; 1 where it is no vector."""
    if isinstance(scalar, (Ramp, Broadcast)):
        return scalar.lanes
    if isinstance(scalar, Value):
        return scalar.type.lanes if isinstance(scalar.type, VectorType) else 1
    if isinstance(scalar, Expr):
        return max((lanes_of(child) for child in scalar.children()), default=1)
    return 1


def named_type(scalar: Scalar) -> Type:
    """The type of a value that names `scalar`."""
    if isinstance(scalar, AddressOf) or (isinstance(scalar, Value) and isinstance(scalar.type, HandleType)):
        return HandleType(scalar.dtype)
    lanes = lanes_of(scalar)
    return ScalarType(dtype_of(scalar)) if lanes == 1 else VectorType(dtype_of(scalar), lanes)


@dataclass(frozen=True, slots=True)
class Region:
    """The box of `extents` elements at `offsets` of a buffer."""

    buffer: Value
    offsets: Shape
    extents: Shape

    def uses(self) -> Iterator[Value]:
        yield self.buffer
        yield from values_of((*self.offsets, *self.extents))

    def substitute(self, replace: Replace) -> Region:
        buffer = replace(self.buffer)
        assert isinstance(buffer, Value)
        return Region(buffer, replaced(self.offsets, replace), replaced(self.extents, replace))


def extent_between(offset: Scalar, stop: Scalar) -> Scalar:
    """How many elements ``offset:stop`` has."""
    terms, constant = linear_terms(Binary(BinaryKind.SUB, stop, offset, INDEX))
    if not terms:
        return constant
    (first, factor), *rest = terms.items()
    return first if not rest and factor == 1 and constant == 0 else binary(BinaryKind.SUB, stop, offset)


def values_of(scalars: tuple[Scalar, ...]) -> Iterator[Value]:
    """The SSA values that the scalars read, in order, with repetitions."""
    for scalar in scalars:
        if not isinstance(scalar, int):
            yield from values_in(scalar)


def replaced(scalars: tuple[Scalar, ...], replace: Replace) -> tuple[Scalar, ...]:
    """The scalars with each SSA value in them replaced."""
    return tuple(substitute(scalar, replace) for scalar in scalars)
