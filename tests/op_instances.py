"""Instances of every operation, found from its fields alone: whatever its own `infer` accepts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice, product
from typing import Any

from tilewright.errors import TilewrightError
from tilewright.ir.dtypes import BF16, BOOL, FP32, INT8, INT32, UINT8, DType
from tilewright.ir.function import Direction, Function, Param, Program
from tilewright.ir.layout import BLayout, MemorySpace, Pad, SLayout
from tilewright.ir.nodes import Let, Return
from tilewright.ir.op import Field, Kind, Level, Op, registry
from tilewright.ir.scalar import Const, Value
from tilewright.ir.types import TensorType, TileType

SHAPES = ((16, 16), (16, 1), (1, 16), (16, 32), (32, 16), (2, 16, 16))
DTYPES = (FP32, INT32, BF16, BOOL, UINT8, INT8)
SCALARS = ((16, 16), (0, 0), (8, 8), (16, 1), (32, 32), (2, 16, 16), (0, 0, 0), (256,), (0,))
NUMBERS = (0, 4, Const(1.5, FP32), Const(3, INT32), Const(1.5, BF16), Const(True, BOOL))
STATIC: tuple[Any, ...] = (
    BF16, INT32, FP32, True, 1, 0, 2, 16, "round", "floor", Pad.ZERO, Pad.MAX, MemorySpace.VEC, MemorySpace.MAT,
    BLayout.COL_MAJOR, SLayout.ROW_MAJOR, (0,), (1,), "row", 1.5,
)  # fmt: skip
TRIES = 60_000


def classes() -> list[tuple[type[Op], Level]]:
    """Every op class at every level that it has."""
    import tilewright.ops  # noqa: F401  # pyright: ignore[reportUnusedImport]

    found = dict.fromkeys(registry().values())
    return [(cls, level) for cls in found for level in cls.levels]


def _operands(name: str, level: Level, field: Field) -> Iterator[Any]:
    both: tuple[type[TensorType], ...] | tuple[type[TileType], ...] = (
        (TensorType,) if level is Level.TENSOR else (TileType,)
    )
    # An operation between levels (load, store) says which of its operands is the tensor by its name.
    kinds: tuple[Any, ...] = (TensorType,) if "tensor" in name else (TensorType, *both) if field.ddr else both
    kinds = tuple(dict.fromkeys(kinds))
    for kind, dtype, shape in product(kinds, DTYPES, SHAPES):
        yield Value(name, kind(shape, dtype))
    if field.scalar:
        yield from NUMBERS


def _candidates(cls: type[Op], level: Level, field: Field) -> list[Any]:
    if field.kind is Kind.OPERAND:
        return list(_operands(field.name, level, field))
    if field.kind is not Kind.ATTRIBUTE:
        return list(NUMBERS if field.kind is Kind.SCALAR else SCALARS)
    words = set(re.findall(r"\w+", field.annotation.replace("tuple[int, ...]", "tuple")))
    return [value for value in STATIC if type(value).__name__ in words]


def _is_accepted(op: Op) -> bool:
    """Whether the operation infers a type that says something, and its attributes are of a sensible kind."""
    try:
        op.infer()
    except (TilewrightError, TypeError, AttributeError, ValueError, AssertionError, KeyError, IndexError):
        return False
    return True


@cache
def instance(cls: type[Op], level: Level) -> Op | None:
    """One accepted instance with every optional field at its default."""
    required = [field for field in cls.fields if field.required]
    for values in islice(product(*(_candidates(cls, level, field) for field in required)), TRIES):
        given = {field.name: value for field, value in zip(required, values, strict=True)}
        op = cls(**given, level=level)
        if _is_accepted(op):
            return op
    return None


def variants(cls: type[Op], level: Level) -> Iterator[Op]:
    """The instance, its scalar form, and for each optional field one that gives it another value."""
    plain = instance(cls, level)
    if plain is None:
        return
    yield plain
    for field in cls.fields:
        if field.scalar:
            dtype: DType = next(value.dtype for _, value in plain.operand_items())
            for number in (Const(2.0, dtype) if dtype.is_float else Const(2, dtype), Const(float("inf"), FP32)):
                op = plain.replace(**{field.name: number})
                if _is_accepted(op):
                    yield op
        if field.required or level not in field.levels:
            continue
        for value in _candidates(cls, level, field):
            op = plain.replace(**{field.name: value})
            if value != field.default and _is_accepted(op):
                yield op
                break


def program_of(op: Op) -> Program:
    """A function whose parameters are the operands of `op`, and which returns its result."""
    written = getattr(op, op.writes) if op.writes else None
    values = dict.fromkeys(value for _, value in op.operand_items())
    params = tuple(Param(value, Direction.INOUT if value is written else Direction.IN) for value in values)
    target = Value("result", op.infer())
    return Program((Function("main", params, (Let(target, op), Return((target,)))),), "main")
