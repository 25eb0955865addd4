"""What the op classes share: extents and how they join, result types, checks with messages, NumPy helpers.

Placement: a computed result is inferred *unplaced*; only an attribute that names a memory, and views and updates,
which stay where their operand is, infer a space. `infer_spaces` places the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.errors import DTypeError, OperandError, OutOfBoundsError, ShapeError, SliceError
from tilewright.ir.dtypes import (
    BF16,
    BOOL,
    FP16,
    FP32,
    INDEX,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DType,
)
from tilewright.ir.layout import MemorySpace
from tilewright.ir.op import Array, Level, LoweringContext, Op
from tilewright.ir.scalar import (
    Binary,
    BinaryKind,
    Scalar,
    Shape,
    Value,
    binary,
    dtype_of,
    linear_terms,
    maximum,
    minimum,
)  # fmt: skip
from tilewright.ir.types import DEFAULT_VIEW, TensorType, TileType, TileView, Type

VEC, MAT, LEFT, RIGHT, ACC = (
    MemorySpace.VEC, MemorySpace.MAT, MemorySpace.LEFT, MemorySpace.RIGHT, MemorySpace.ACC,
)  # fmt: skip
FLOATS = (FP32, FP16, BF16)
INTEGERS = (INT8, INT32, INT16, INT64, UINT8, UINT16, UINT32, UINT64)
NUMBERS = FLOATS + INTEGERS
ELEMENTS = (*NUMBERS, BOOL)
TENSOR, TILE = Level.TENSOR, Level.TILE


# --- extents ------------------------------------------------------------------------------------------------------
def same_extent(a: Scalar, b: Scalar) -> bool:
    """Whether two extents are equal for every value of the symbols in them."""
    if a == b:
        return True
    if isinstance(a, int) and isinstance(b, int):
        return False
    return linear_terms(binary(BinaryKind.SUB, a, b)) == ({}, 0)


def same_shape(a: Shape, b: Shape) -> bool:
    return len(a) == len(b) and all(map(same_extent, a, b))


def clip(extent: Scalar, limit: Scalar) -> Scalar:
    """`extent`, at least 0 and at most `limit`."""
    return maximum(minimum(extent, limit), 0)


def _at_most(extent: Scalar, limit: Scalar) -> bool:
    """Whether `extent` is visibly bounded by `limit`: a minimum that mentions it."""
    if same_extent(extent, limit):
        return True
    if not isinstance(extent, Binary):
        return False
    if extent.kind is BinaryKind.MAX and extent.rhs == 0:
        return _at_most(extent.lhs, limit)
    return extent.kind is BinaryKind.MIN and (_at_most(extent.lhs, limit) or _at_most(extent.rhs, limit))


def join_tensor_extents(a: Scalar, b: Scalar) -> Scalar | None:
    """The extent of an elementwise result on tensors, None when the two do not go together. A tensor that is the valid
    part of a larger one goes with the larger one; the smaller extent wins."""
    if _at_most(a, b):
        return a
    return b if _at_most(b, a) else None


def join_valid(a: Scalar, a_physical: Scalar, b: Scalar, b_physical: Scalar) -> Scalar:
    """The valid extent of an elementwise result: where both operands have meaning."""
    if same_extent(a, b) or same_extent(b, b_physical):
        return a
    if same_extent(a, a_physical) or _at_most(b, a):
        return b
    return a if _at_most(a, b) else minimum(a, b)


def meaning_of(type: Type) -> Shape:
    """The extents that have meaning: a tile's valid shape, a tensor's shape."""
    if isinstance(type, TileType):
        return type.valid
    assert isinstance(type, TensorType)
    return type.shape


def physical_of(type: Type) -> Shape:
    """A tile's physical shape, a tensor's shape."""
    assert isinstance(type, (TileType, TensorType))
    return type.shape


def count(shape: Shape) -> int:
    """Number of elements; extents that are not known when compiling count as 1."""
    total = 1
    for extent in shape:
        total *= extent if isinstance(extent, int) else 1
    return total


def elements_of(type: Type) -> int:
    """Elements to process: the valid ones, or all where the valid extent is not known when compiling."""
    pairs = zip(meaning_of(type), physical_of(type), strict=True)
    return count(tuple(valid if isinstance(valid, int) else physical for valid, physical in pairs))


# --- result types -------------------------------------------------------------------------------------------------
def array_type(
    level: Level, shape: Shape, dtype: DType, valid: Shape | None = None, space: MemorySpace | None = None
) -> Type:
    """The result type at `level`. A tensor has no physical shape apart from its meaning, so its shape is `valid`."""
    if level is TENSOR:
        return TensorType(shape if valid is None else valid, dtype)
    return TileType(shape, dtype, space, DEFAULT_VIEW if valid is None else TileView(valid))


# --- checks -------------------------------------------------------------------------------------------------------
def operand_types(op: Op) -> str:
    """``lhs pl.Tile[...] and rhs pl.Tile[...]``: for messages."""
    return " and ".join(f"{name} {value.type!r}" for name, value in op.operand_items())


def check_operands(op: Op) -> None:
    """Every tensor or tile operand is one, and of the op's level. Raises `OperandError`."""
    for field in op.fields:
        if field.kind.name != "OPERAND":
            continue
        value: object = getattr(op, field.name)
        if value is None and (field.default is None or field.scratch):
            continue
        if isinstance(value, Value) and isinstance(value.type, (TensorType, TileType)):
            if (op.level is TILE) is isinstance(value.type, TileType):
                continue
            kind = "tile" if op.level is TILE else "tensor"
            raise OperandError(
                f"{op.qualified_name} takes a {kind} as {field.name}",
                span=op.span,
                required=f"a {kind}",
                found=repr(value.type),
                help="load the tensor first with pl.load" if op.level is TILE else f"use pl.tile.{op.name}",
            )
        if not field.scalar:
            raise OperandError(
                f"{op.qualified_name} takes a tensor or tile as {field.name}", span=op.span, found=repr(value)
            )


def check_dtype(op: Op, name: str, dtype: DType, allowed: Sequence[DType]) -> None:
    """Raises `DTypeError` unless `dtype`, that of the operand `name`, is allowed (none given: all are)."""
    if allowed and dtype not in allowed:
        floats = all(a.is_float for a in allowed)
        raise DTypeError(
            f"{op.qualified_name} does not take {dtype} as {name}",
            span=op.span,
            required=" or ".join(a.name for a in allowed),
            found=operand_types(op) or dtype.name,
            help=f"cast it first: pl.cast({name}, pl.{'FP32' if floats else allowed[0].name})",
        )


def check_same_dtype(op: Op, *names: str) -> None:
    """Raises `DTypeError` unless the named operands have one dtype; a plain int takes any."""
    first = dtype_of(getattr(op, names[0]))
    for name in names[1:]:
        value: Scalar = getattr(op, name)
        if isinstance(value, int) or dtype_of(value) is first:
            continue
        raise DTypeError(
            f"the operands of {op.qualified_name} have two dtypes",
            span=op.span,
            required=f"{name} of dtype {first}",
            found=operand_types(op) if isinstance(value, Value) else f"{first} and {dtype_of(value)}",
            help=f"cast one of them: pl.cast({name}, pl.{first})",
        )


def check_rank(op: Op, name: str, type: Type, rank: int) -> None:
    if len(physical_of(type)) != rank:
        raise ShapeError(
            f"{op.qualified_name} takes {name} with {rank} dimensions",
            span=op.span,
            required=f"{rank} dimensions",
            found=repr(type),
            help="reshape it first",
        )


def check_lengths(op: Op, rank: int, **tuples: Shape | None) -> None:
    """Offsets, shapes, indices: one entry per dimension."""
    for name, given in tuples.items():
        if given is not None and len(given) != rank:
            raise ShapeError(
                f"{op.qualified_name} takes one entry of {name} per dimension",
                span=op.span,
                required=f"{rank} entries",
                found=f"{len(given)}: {list(given)}",
            )


def check_box(op: Op, what: str, limits: Shape, offsets: Shape, extents: Shape) -> None:
    """Raises `SliceError` when a box that is constant does not lie within `limits`."""
    for axis, (limit, offset, extent) in enumerate(zip(limits, offsets, extents, strict=True)):
        end = binary(BinaryKind.ADD, offset, extent)
        beyond = isinstance(end, int) and isinstance(limit, int) and end > limit
        if beyond or (isinstance(offset, int) and offset < 0):
            raise SliceError(
                f"{op.qualified_name} reaches outside its {what} in dimension {axis}",
                span=op.span,
                required=f"0 <= offset and offset + extent <= {limit}",
                found=f"offset {offset}, extent {extent}",
                help="shorten it, or give valid_shape (or clamp=True where there is one) for the last part",
            )


# --- NumPy --------------------------------------------------------------------------------------------------------
def widened(array: Any) -> Any:
    """Narrow floats as FP32, in which they are computed; everything else as it is."""
    array = np.asarray(array)
    return array.astype(np.float32) if array.dtype in (FP16.numpy, BF16.numpy) else array


def rounded(array: Any, dtype: DType) -> Array:
    """`array` as `dtype`: floats rounded half to even, integers wrapped."""
    with np.errstate(all="ignore"):
        return np.asarray(array).astype(np.dtype(dtype.numpy), copy=False)


def compute(dtype: DType, formula: Callable[..., Any], *operands: Any, **options: Any) -> Array:
    """`formula` of the operands, narrow floats in FP32, rounded to `dtype` once."""
    with np.errstate(all="ignore"):
        return rounded(formula(*map(widened, operands), **options), dtype)


def integer_limits(dtype: DType) -> tuple[int, int]:
    """The least and the greatest value of an integer dtype."""
    return (
        (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1) if dtype.kind == "int" else (0, (1 << dtype.bits) - 1)
    )


def identity(kind: BinaryKind, dtype: DType) -> int | float:
    """What changes nothing when it is combined by `kind`: what the reduction of no elements gives."""
    match kind:
        case BinaryKind.ADD:
            return 0
        case BinaryKind.MUL:
            return 1
        case BinaryKind.MIN:
            return float("inf") if dtype.is_float else integer_limits(dtype)[1]
        case BinaryKind.MAX:
            return float("-inf") if dtype.is_float else integer_limits(dtype)[0]
        case _:
            raise AssertionError(f"no reduction is by {kind.value}")


def saturated(integral: Any, dtype: DType) -> Array:
    """Integral floats as integers: beyond the limits the limit, which may be no float itself; 0 for NaN."""
    low, high = integer_limits(dtype)
    with np.errstate(all="ignore"):
        inside = (integral > low) & (integral < high)  # a limit that is no float compares as the float next to it
        exact = np.where(inside, integral, 0).astype(dtype.numpy)
    limits = np.array([low, high], dtype.numpy)
    return np.where(integral >= high, limits[1], np.where(integral <= low, limits[0], exact))


def filled(shape: Sequence[int], value: Any, dtype: DType) -> Array:
    """An array of `value`."""
    return rounded(np.full(tuple(shape), value), dtype)


def cropped(*arrays: Array) -> list[Array]:
    """The arrays cut to the part that all of them have."""
    common = tuple(slice(0, min(extents)) for extents in zip(*(a.shape for a in arrays), strict=True))
    return [array[common] for array in arrays]


def box(array: Array, offsets: Sequence[int], extents: Sequence[int]) -> tuple[slice, ...]:
    """Slices for a box of `array`. Raises `OutOfBoundsError` when it does not lie inside."""
    for axis, (offset, extent, limit) in enumerate(zip(offsets, extents, array.shape, strict=True)):
        if offset < 0 or extent < 0 or offset + extent > limit:
            raise OutOfBoundsError(
                f"an access leaves its array in dimension {axis}",
                required=f"within [0, {limit})",
                found=f"[{offset}, {offset + extent})",
            )
    return tuple(slice(int(o), int(o) + int(e)) for o, e in zip(offsets, extents, strict=True))


def same_scalar_dtype(value: Scalar, dtype: DType) -> bool:
    """Whether a scalar may stand for one element of `dtype`: an int literal, or a scalar of that dtype."""
    return isinstance(value, int) or dtype_of(value) is dtype


def check_scalar(op: Op, name: str, value: Scalar, dtype: DType) -> None:
    if not same_scalar_dtype(value, dtype):
        raise DTypeError(
            f"{op.qualified_name} takes {name} of the elements' dtype",
            span=op.span,
            required=dtype.name,
            found=dtype_of(value).name,
            help=f"write pl.const(..., pl.{dtype}), or cast the scalar",
        )


def check_index(op: Op, name: str, *values: Scalar | None) -> None:
    """Offsets, extents and indices are of dtype INDEX."""
    for value in values:
        if value is not None and dtype_of(value) is not INDEX:
            raise DTypeError(
                f"{op.qualified_name} takes integers as {name}",
                span=op.span,
                required="INDEX",
                found=dtype_of(value).name,
            )


# --- lowering -----------------------------------------------------------------------------------------------------
def in_ddr(value: Value) -> bool:
    """Whether `value`, an operand of an operation being lowered, is still a tensor."""
    return isinstance(value.type, TensorType)


Emit = LoweringContext
