"""Tensor operations become tile operations: what each emits, and that the two mean the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Array, exact_ints

import tilewright.ops as ops
from tilewright.execute.interpreter import Data, Interpreter
from tilewright.ir.dtypes import BF16, FP32, INDEX, INT8, DType
from tilewright.ir.function import Program
from tilewright.ir.layout import MemorySpace, Pad
from tilewright.ir.op import Level, Op, lookup
from tilewright.ir.scalar import Scalar, Value, constant
from tilewright.ir.types import ScalarType, TensorType, TileType, Type

MAT, VEC = MemorySpace.MAT, MemorySpace.VEC
MACHINE = Interpreter(Program((), ""))
N = Value("n", ScalarType(INDEX))


class Context:
    """Collects what is emitted, and runs it at once."""

    def __init__(self, env: dict[Value, Any], space: MemorySpace | None = None, transpose: bool = False) -> None:
        self.env = env
        self._space = space
        self._transpose = transpose
        self.emitted: list[Op] = []

    @property
    def space(self) -> MemorySpace | None:
        return self._space

    @property
    def transpose(self) -> bool:
        return self._transpose

    def emit(self, op: Op, name: str | None = None) -> Value:
        self.emitted.append(op)
        value = Value(name or "v", op.infer())
        self.env[value] = MACHINE.op(op, value.type, self.env)
        return value


def data(array: Array) -> Data:
    return Data(array.copy(), np.ones(array.shape, np.bool_))


def valid_part(value: Value, env: dict[Value, Any]) -> Any:
    found = env[value]
    if not isinstance(found, Data):
        return found
    extents: tuple[Scalar, ...] = value.type.valid if isinstance(value.type, TileType) else found.array.shape
    corner = tuple(slice(0, extent) for extent in MACHINE.extents(extents, env))
    assert found.defined[corner].all()
    return found.array[corner]


def given(types: tuple[Type, ...], env: dict[Value, Any]) -> list[Value]:
    """Values of the given types, with small integers in them."""
    values: list[Value] = []
    for seed, kind in enumerate(types):
        assert isinstance(kind, TensorType | TileType)
        shape = tuple(extent for extent in kind.shape if isinstance(extent, int))
        value = Value(f"a{seed}", kind)
        env[value] = data(exact_ints(shape, np.dtype(kind.dtype.numpy), seed))
        values.append(value)
    return values


def tensor(*shape: Scalar, dtype: DType = FP32) -> TensorType:
    return TensorType(shape, dtype)


def tile(*shape: Scalar, dtype: DType = FP32) -> TileType:
    return TileType(shape, dtype)


Case = tuple[str, tuple[Type, ...], dict[str, Any], MemorySpace | None, bool, list[str]]
CASES: list[Case] = [
    ("add", (tile(8, 8), tile(8, 8)), {}, None, False, ["tile.add"]),
    ("matmul", (tile(8, 16), tile(16, 8)), {}, None, False, ["tile.matmul"]),
    ("matmul", (tile(8, 16, dtype=BF16), tile(16, 8, dtype=BF16)), {}, None, False, ["tile.matmul", "tile.cast"]),
    (
        "matmul", (tile(8, 16, dtype=BF16), tile(16, 8, dtype=BF16)), {"out_dtype": FP32}, None, False,
        ["tile.matmul"],
    ),
    ("matmul", (tile(8, 16, dtype=INT8), tile(16, 8, dtype=INT8)), {}, None, False, ["tile.matmul"]),
    ("slice", (tensor(40, 40),), {"shape": (8, 16), "offset": (3, 5)}, MAT, False, ["tile.load"]),
    ("slice", (tensor(40, 40),), {"shape": (8, 16), "offset": (3, 5)}, MAT, True, ["tile.load"]),
    (
        "slice", (tensor(40, 40),),
        {"shape": (16, 16), "offset": (32, 0), "valid_shape": (8, N), "pad_value": Pad.ZERO}, VEC, False, ["tile.load"],
    ),
    ("slice", (tensor(40, 40),), {"shape": (16, 16), "offset": (35, 30), "clamp": True}, None, False, ["tile.load"]),
    (
        "slice", (tensor(3, 40, 40),), {"shape": (1, 8, 16), "offset": (2, 3, 5), "drop_dims": (0,)}, None, True,
        ["tile.load"],
    ),
    (
        "slice", (tensor(9, 4, 40),), {"shape": (8, 1, 16), "offset": (1, 3, 5), "drop_dims": (1,)}, None, False,
        ["tile.load", "tile.reshape"],
    ),
    (
        "slice", (tensor(9, 4, 40),), {"shape": (8, 1, 16), "offset": (1, 3, 5), "drop_dims": (1,)}, None, True,
        ["tile.load", "tile.reshape", "tile.transpose"],
    ),
    ("slice", (tile(40, 40),), {"shape": (8, 16), "offset": (3, 5)}, None, False, ["tile.slice"]),
    ("reshape", (tensor(8, 6),), {"shape": (4, 12)}, VEC, False, ["tile.load", "tile.reshape"]),
    (
        "reshape", (tensor(8, 6),), {"shape": (4, 12)}, MAT, True, ["tile.load", "tile.reshape", "tile.transpose_view"],
    ),
    ("reshape", (tile(8, 6),), {"shape": (4, 12)}, None, False, ["tile.reshape"]),
    ("transpose", (tensor(8, 6),), {"axis1": 0, "axis2": 1}, VEC, False, ["tile.load"]),
    ("transpose", (tensor(8, 6),), {"axis1": 0, "axis2": 1}, MAT, True, ["tile.load"]),
    ("transpose", (tensor(2, 8, 6),), {"axis1": 0, "axis2": 1}, VEC, False, ["tile.load", "tile.transpose"]),
    ("transpose", (tile(8, 6),), {"axis1": 0, "axis2": 1}, VEC, False, ["tile.transpose"]),
    ("transpose", (tile(8, 6),), {"axis1": 0, "axis2": 1}, MAT, False, ["tile.transpose_view"]),
    ("set_validshape", (tensor(8, 6),), {"valid_rows": 5, "valid_cols": N}, VEC, False, ["tile.load"]),
    ("set_validshape", (tensor(8, 6),), {"valid_rows": 5, "valid_cols": N}, MAT, True, ["tile.load"]),
    ("set_validshape", (tile(8, 6),), {"valid_rows": 8, "valid_cols": N}, None, False, ["tile.set_validshape"]),
    ("set_validshape", (tile(8, 6),), {"valid_rows": 5, "valid_cols": N}, None, False, ["tile.slice"]),
    ("assemble", (tensor(40, 40), tile(8, 8)), {"offset": (3, N)}, None, False, ["tile.store"]),
    ("assemble", (tensor(40, 40), tensor(8, 8)), {"offset": (3, N)}, None, False, ["tile.load", "tile.store"]),
    ("assemble", (tensor(40, 40), tile(8, 8)), {"offset": (3, N), "atomic": 1}, None, False, ["tile.store"]),
    ("assemble", (tensor(4, 40, 40), tile(8, 8)), {"offset": (2, 3, N)}, None, False, ["tile.store"]),
    ("assemble", (tile(40, 40), tile(8, 8)), {"offset": (3, N)}, None, False, ["tile.assemble"]),
    ("fillpad_expand", (tile(8, 6),), {"shape": (8, 6)}, None, False, ["tile.fillpad"]),
    ("fillpad_expand", (tile(8, 6),), {"shape": (16, 8)}, None, False, ["tile.fillpad_expand"]),
    ("read", (tensor(8, 8),), {"indices": (3, N)}, None, False, ["tensor.read"]),
    ("read", (tile(8, 8),), {"indices": (3, N)}, None, False, ["tile.read"]),
    ("write", (tensor(8, 8),), {"indices": (3, N), "value": constant(1, FP32)}, None, False, ["tensor.write"]),
    ("write", (tile(8, 8),), {"indices": (3, N), "value": constant(1, FP32)}, None, False, ["tile.write"]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {case[1]} {case[3]} {case[4]}")
def test_lowering(case: Case) -> None:
    """The tile operations are those named, and give what the tensor operation gives (transposed when wanted so)."""
    name, types, fields, space, transpose, expected = case
    env: dict[Value, Any] = {N: 5}
    operands = given(types, env)
    made: Any = lookup(name)
    op: Op = made(*operands, **fields, level=Level.TENSOR)

    before: dict[Value, Any] = {N: 5}
    originals = given(tuple(as_tensor(kind) for kind in types), before)
    reference: Op = made(*originals, **fields, level=Level.TENSOR)
    whole = MACHINE.op(reference, reference.infer(), before)
    wanted = whole.array if isinstance(whole, Data) else whole

    context = Context(env, space, transpose)
    result = op.lower(context)
    assert [emitted.qualified_name for emitted in context.emitted] == expected
    found = valid_part(result, env)
    np.testing.assert_array_equal(found, np.swapaxes(wanted, -1, -2) if transpose else wanted)
    placed = result.type.space if isinstance(result.type, TileType) else None
    assert placed is None or placed is space


def as_tensor(kind: Type) -> Type:
    assert isinstance(kind, TensorType | TileType)
    return TensorType(kind.shape, kind.dtype)


@pytest.mark.parametrize(("init", "expected"), [(None, "tile.create"), (constant(2, FP32), "tile.full")])
def test_creation_on_chip(init: Scalar | None, expected: str) -> None:
    context = Context({})
    made = ops.Create((8, 8), FP32, None, init, level=Level.TENSOR).lower(context)
    assert [op.qualified_name for op in context.emitted] == [expected]
    assert made.type is TileType((8, 8), FP32)


def test_a_load_for_a_matmul_reads_where_it_is_wanted() -> None:
    env: dict[Value, Any] = {}
    (source,) = given((tensor(40, 40),), env)
    context = Context(env, MAT, True)
    loaded = ops.Slice(source, (8, 16), (0, 0)).lower(context)
    assert loaded.type is TileType((16, 8), FP32, MAT)
