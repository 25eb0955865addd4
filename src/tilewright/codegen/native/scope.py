"""What is known while one function is emitted: where each array lies, and which register holds each scalar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tilewright.analysis.index_maps import AffineMap
from tilewright.codegen.native.arithmetic import Arithmetic
from tilewright.codegen.native.builder import Builder, Index
from tilewright.codegen.native.elements import Lanes, memory_type
from tilewright.codegen.native.llvm import Processor
from tilewright.errors import CodegenError
from tilewright.ir.dtypes import INDEX, DType
from tilewright.ir.op import Op
from tilewright.ir.scalar import Scalar, Value, dtype_of
from tilewright.ops import Reshape
from tilewright.ops.bits import ReinterpretView


@dataclass(frozen=True, slots=True)
class Place:
    """Where an array lies: address of element 0, physical extents, and the step of each dimension in elements."""

    pointer: str
    dtype: DType
    shape: tuple[Index, ...]
    strides: tuple[Index, ...]

    @property
    def element(self) -> str:
        return memory_type(self.dtype)

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps, as far as is known when compiling."""
        expected = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent == 1:
                continue
            if stride != expected or not isinstance(extent, int):
                return stride == expected and self.shape[0] is extent
            expected *= extent
        return True


def row_major(b: Builder, shape: Sequence[Index]) -> tuple[Index, ...]:
    """The steps of an array without gaps."""
    strides: list[Index] = []
    step: Index = 1
    for extent in reversed(shape):
        strides.append(step)
        step = b.mul(step, extent)
    return tuple(reversed(strides))


@dataclass(slots=True)
class Scope:
    """The state of one function's emission."""

    b: Builder
    processor: Processor
    registers: dict[Value, str] = field(default_factory=dict[Value, str])
    places: dict[Value, Place] = field(default_factory=dict[Value, Place])
    memo: list[dict[Scalar, Index]] = field(default_factory=lambda: [{}])

    @property
    def single(self) -> Lanes:
        return Lanes(self.b, self.processor, 1)

    # --- scalars --------------------------------------------------------------------------------------------------
    def register(self, value: Value) -> str:
        found = self.registers.get(value)
        if found is None:
            raise CodegenError(f"{value.name!r} is used before native code has a value for it", span=value.span)
        return found

    def scalar(self, scalar: Scalar) -> str:
        """The register, or the constant, that holds `scalar`."""
        return Arithmetic(self.single, self.register)(scalar)

    def index(self, scalar: Scalar) -> Index:
        """`scalar` as an i64; computed once per block. To be called where the text runs straight on."""
        if isinstance(scalar, int):
            return scalar
        for known in reversed(self.memo):
            if scalar in known:
                return known[scalar]
        text = self.scalar(scalar)
        if dtype_of(scalar) is not INDEX:
            text = Arithmetic(self.single, self.register).cast(text, dtype_of(scalar), INDEX)
        found: Index = int(text) if text.lstrip("-").isdigit() else text
        self.memo[-1][scalar] = found
        return found

    def indices(self, scalars: Sequence[Scalar]) -> tuple[Index, ...]:
        return tuple(self.index(scalar) for scalar in scalars)

    def element(self, scalar: Scalar, dtype: DType) -> str:
        """`scalar` as one element of `dtype`, rounded to it; narrow floats as FP32."""
        return Arithmetic(self.single, self.register).cast(self.scalar(scalar), dtype_of(scalar), dtype)

    # --- arrays ---------------------------------------------------------------------------------------------------
    def place(self, value: Value) -> Place:
        found = self.places.get(value)
        if found is None:
            raise CodegenError(f"{value.name!r} is used before native code has a place for it", span=value.span)
        return found

    def at(self, place: Place, offsets: Sequence[Index]) -> str:
        """The address of the element at `offsets`."""
        position: Index = 0
        for offset, stride in zip(offsets, place.strides, strict=True):
            position = self.b.add(position, self.b.mul(offset, stride))
        return self.b.address(place.pointer, place.element, position)


def window(scope: Scope, found: AffineMap, place: Place, shape: tuple[Index, ...]) -> Place:
    """The array as the iteration sees it: `shape` elements, each dimension with its own step."""
    b = scope.b
    strides: list[Index] = []
    for axis in range(len(shape)):
        step: Index = 0
        for stride, row in zip(place.strides, found.coefficients, strict=True):
            step = b.add(step, b.mul(stride, row[axis]))
        strides.append(step)
    pointer = scope.at(place, scope.indices(found.offsets))
    return replace(place, pointer=pointer, shape=shape, strides=tuple(strides))


def reinterprets(op: Op) -> bool:
    """Whether a view has its elements in the row-major order of its operand, in another shape."""
    return isinstance(op, Reshape | ReinterpretView)
