"""What ops refuse and how they say it, how valid shapes pass, what they read and write, and rounding at the edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.errors import (
    AccumulatorError,
    DTypeError,
    OperandError,
    ShapeError,
    SliceError,
    TilewrightError,
    ValidShapeError,
)
from tilewright.ir.dtypes import BF16, BOOL, FP16, FP32, INDEX, INT8, INT32, DType
from tilewright.ir.layout import NZ, ZN, Compact, MemorySpace, Pad
from tilewright.ir.loops import Elementwise, Index, Update
from tilewright.ir.op import Level, Op, lookup, operand_values, registry
from tilewright.ir.scalar import Binary, Const, Scalar, Shape, Value, constant, maximum, minimum, substitute
from tilewright.ir.types import ScalarType, TensorType, TileType, TileView
from tilewright.ops.common import physical_of
from tilewright.ops.shape import reshaped_valid

N = Value("n", ScalarType(INDEX))


def tile(*shape: Scalar, dtype: DType = FP32, valid: Shape | None = None, space: MemorySpace | None = None) -> Value:
    return Value("t", TileType(shape, dtype, space, TileView(valid)))


def tensor(*shape: Scalar, dtype: DType = FP32) -> Value:
    return Value("a", TensorType(shape, dtype))


def make(name: str, *operands: Any, **fields: Any) -> Op:
    made: Any = lookup(name)
    return made(*operands, **fields)


def valid_of(op: Op) -> Shape:
    kind = op.infer()
    assert isinstance(kind, TileType)
    return kind.valid


REFUSED: dict[str, tuple[type[TilewrightError], Op, tuple[str, ...]]] = {
    "shapes differ": (ShapeError, make("add", tile(16, 16), tile(16, 32)), ("[16, 16]", "[16, 32]", "row_expand")),
    "tensor shapes differ": (ShapeError, make("mul", tensor(N, 16), tensor(17, 16)), ("lhs", "rhs")),
    "ranks differ": (ShapeError, make("add", tensor(16), tensor(1, 16)), ("lhs", "rhs")),
    "dtypes differ": (DTypeError, make("add", tile(16, 16), tile(16, 16, dtype=FP16)), ("FP32", "FP16", "pl.cast")),
    "a scalar of another dtype": (DTypeError, make("add", tile(16, 16), Const(1.0, FP16)), ("FP32", "FP16")),
    "an op on floats": (DTypeError, make("exp", tile(16, 16, dtype=INT32)), ("INT32", "FP32 or FP16 or BF16")),
    "no integer quotient": (DTypeError, make("div", tile(16, 16, dtype=INT8), tile(16, 16, dtype=INT8)), ("INT8",)),
    "a tensor for a tile": (OperandError, make("add", tile(16, 16), tensor(16, 16)), ("load",)),
    "a comparison code": (OperandError, make("cmp", tile(16, 16), tile(16, 16), 6), ("0 eq",)),
    "a mask of numbers": (DTypeError, make("sel", tile(16, 16), tile(16, 16), tile(16, 16)), ("BOOL",)),
    "a vector of the other direction": (
        ShapeError, make("row_expand_sub", tile(16, 32), tile(1, 32)), ("[M, 1]", "col_expand"),
    ),
    "a short vector": (ShapeError, make("col_expand_add", tile(16, 32), tile(1, 16)), ("[1, N]",)),
    "reduction of one dimension": (ShapeError, make("row_sum", tile(16)), ("reshape",)),
    "inner sizes": (ShapeError, make("matmul", tensor(16, 32), tensor(16, 32)), ("[M, K]", "b_trans", "[16, 32]")),
    "inner valid sizes": (
        ShapeError, make("matmul", tile(16, 32, valid=(16, 17)), tile(32, 16)), ("valid [16, 17]", "valid extent"),
    ),
    "two operand dtypes": (
        DTypeError, make("matmul", tensor(16, 32, dtype=FP16), tensor(32, 16, dtype=BF16)), ("FP16", "BF16"),
    ),
    "out_dtype": (
        DTypeError, make("matmul", tensor(16, 32), tensor(32, 16), out_dtype=INT32), ("out_dtype", "INT32"),
    ),
    "a narrow accumulator": (
        AccumulatorError, make("matmul_acc", tile(16, 16, dtype=FP16), *[tile(16, 16, dtype=FP16)] * 2), ("FP32",),
    ),
    "accumulator shape": (ShapeError, make("matmul_acc", tile(16, 32), tile(16, 16), tile(16, 16)), ("[16, 16]",)),
    "a bias of two rows": (ShapeError, make("matmul_bias", tile(16, 16), tile(16, 16), tile(2, 16)), ("[1, 16]",)),
    "a load past the end": (SliceError, make("load", tensor(40, 40), (32, 0), (16, 16)), ("valid_shape", "40")),
    "a negative offset": (SliceError, make("load", tensor(40, 40), (-1, 0), (16, 16)), ("offset -1",)),
    "offsets of another rank": (ShapeError, make("load", tensor(40, 40), (0,), (16, 16)), ("2 entries",)),
    "a store past the end": (SliceError, make("store", tile(16, 16), (0, 32), tensor(40, 40)), ("40",)),
    "a store of another dtype": (
        DTypeError, make("store", tile(16, 16), (0, 0), tensor(40, 40, dtype=BF16)), ("BF16", "pl.cast"),
    ),
    "a store of another size": (
        ShapeError, make("store", tile(16, 16), (0, 0, 0), tensor(4, 40, 40), (2, 16, 16)), ("[16, 16]",),
    ),
    "a window outside": (SliceError, make("extract", tile(32, 32), 24, 0, (16, 16)), ("32",)),
    "a slice outside": (SliceError, make("slice", tensor(32, 32), (16, 16), (0, 24)), ("dimension 1",)),
    "dropping a real dimension": (ShapeError, make("slice", tensor(8, 8), (2, 8), (0, 0), None, (0,)), ("extent 1",)),
    "an element outside": (SliceError, make("read", tensor(8, 8), (8, 0)), ("dimension 0",)),
    "an assembly outside": (SliceError, make("assemble", tensor(8, 8), tensor(4, 8), (6, 0)), ("dimension 0",)),
    "an assembly of another dtype": (
        DTypeError, make("assemble", tensor(8, 8), tensor(4, 8, dtype=FP16), (0, 0)), ("FP16",),
    ),
    "another number of elements": (ShapeError, make("reshape", tensor(8, 8), (9, 7)), ("64 elements", "63")),
    "a valid part that is no box": (
        ValidShapeError, make("reshape", tile(8, 8, valid=(8, 5)), (4, 16)), ("valid_shape",),
    ),
    "a valid shape too large": (ValidShapeError, make("set_validshape", tile(8, 8), 9, 8), ("[9, 8]",)),
    "an axis that is not there": (ShapeError, make("transpose", tile(8, 8), 0, 2), ("2 dimensions",)),
    "an empty tile": (OperandError, make("create", (0, 8), FP32, level=Level.TILE), ("[0, 8]",)),
    "a rounding mode": (OperandError, make("cast", tile(8, 8), INT8, "up"), ("rint", "trunc")),
    "a mode from an integer": (OperandError, make("cast", tile(8, 8, dtype=INT32), FP32, "floor"), ("floor", "rint")),
    "a target type": (OperandError, make("cast", tile(8, 8), INDEX), ("INDEX",)),
    "no padding value": (OperandError, make("fillpad", tile(8, 8), Pad.NULL), ("zero",)),
    "shrinking": (ShapeError, make("fillpad_expand", tile(8, 8), (4, 8)), ("[8, 8]",)),
    "a float offset": (DTypeError, make("load", tensor(8, 8), (Const(1.0, FP32), 0), (4, 4)), ("INDEX",)),
}  # fmt: skip


@pytest.mark.parametrize("name", list(REFUSED))
def test_refused_with_a_reason(name: str) -> None:
    error, op, words = REFUSED[name]
    with pytest.raises(error) as caught:
        op.infer()
    assert op.qualified_name.split(".")[1] in str(caught.value) or "valid" in str(caught.value)
    assert caught.value.found is not None
    assert [word for word in words if word not in str(caught.value)] == []


# --- valid shapes -------------------------------------------------------------------------------------------------
M = Value("m", ScalarType(INDEX))


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (make("add", tile(32, 32, valid=(N, 17)), tile(32, 32)), (N, 17)),
        (make("add", tile(32, 32, valid=(N, 17)), tile(32, 32, valid=(M, 20))), (minimum(N, M), 17)),
        (make("cmp", tile(32, 32), tile(32, 32, valid=(3, N))), (3, N)),
        (make("row_sum", tile(32, 32, valid=(N, 17))), (N, 1)),
        (make("col_max", tile(32, 32, valid=(N, 17))), (1, 17)),
        (make("row_expand_sub", tile(32, 32, valid=(N, 17)), tile(32, 1, valid=(N, 1))), (N, 17)),
        (make("row_expand_sub", tile(32, 32), tile(32, 1, valid=(N, 1))), (N, 32)),
        (make("col_expand_mul", tile(32, 32, valid=(N, 17)), tile(1, 32)), (N, 17)),
        (make("matmul", tile(32, 64, valid=(N, 33)), tile(64, 48, valid=(33, M))), (N, M)),
        (make("matmul", tile(32, 64, valid=(N, M)), tile(80, 48, valid=(M, 47))), (N, 47)),
        (make("matmul_acc", tile(32, 48, valid=(N, 48)), tile(32, 64, valid=(N, 64)), tile(64, 48)), (N, 48)),
        (make("cast", tile(32, 32, valid=(N, 1)), BF16), (N, 1)),
        (make("move", tile(32, 32, valid=(N, 1)), MemorySpace.MAT), (N, 1)),
        (make("transpose", tile(32, 48, valid=(N, 1)), 0, 1), (1, N)),
        (make("transpose_view", tile(32, 48, valid=(N, 1))), (1, N)),
        (make("reshape", tile(32, 1, valid=(N, 1)), (1, 32)), (1, N)),
        (make("slice", tile(32, 32), (8, 8), (N, 0)), (8, 8)),
        (make("slice", tile(32, 32, valid=(17, 32)), (8, 8), (16, 0)), (1, 8)),
        (make("slice", tile(32, 32, valid=(N, 32)), (8, 8), (16, 0)), (maximum(minimum(N - 16, 8), 0), 8)),
        (make("extract", tile(32, 32, valid=(32, 20)), 0, 16, (16, 16)), (16, 4)),
        (make("load", tensor(200, 40), (192, 0), (16, 40), clamp=True), (8, 40)),
        (make("load", tensor(200, 40), (0, 0), (16, 40), (16, 7), transpose=True), (7, 16)),
        (make("fillpad", tile(32, 32, valid=(N, 1))), (32, 32)),
        (make("assemble", tile(32, 32, valid=(N, 32)), tile(1, 32), (0, 0)), (N, 32)),
        (make("sel", tile(8, 8, dtype=BOOL), tile(8, 8, valid=(N, 8)), Const(0.0, FP32)), (N, 8)),
    ],
    ids=repr,
)
def test_valid_shape(op: Op, expected: Shape) -> None:
    assert valid_of(op) == expected


@pytest.mark.parametrize(
    ("old", "valid", "new", "expected"),
    [
        ((8, 16), (5, 16), (128, 1), (80, 1)),
        ((8, 16), (N, 16), (16, 8), (N * 2, 8)),
        ((2, 8, 16), (2, 8, 5), (16, 16), (16, 5)),
        ((2, 8, 16), (2, 7, 16), (2, 128), (2, 112)),
        ((8, 16), (4, 16), (2, 64), (1, 64)),
        ((8, 16), (5, 16), (2, 64), None),
        ((1, 8, 16), (1, N, 16), (8, 16), (N, 16)),
        ((8, 16), (8, 3), (8, 1, 16), (8, 1, 3)),
        ((8, 16), (8, 3), (128,), None),
    ],
)
def test_reshape_of_a_valid_part(old: Shape, valid: Shape, new: Shape, expected: Shape | None) -> None:
    assert reshaped_valid(old, valid, new) == expected


def test_a_tensor_takes_the_valid_shape_for_its_shape() -> None:
    part = Value("p", make("slice", tensor(200, 64), (64, 64), (0, 0), (N, 64)).infer())
    assert part.type is TensorType((minimum(N, 64), 64), FP32)
    assert make("add", part, tensor(64, 64)).infer() is part.type


# --- placement facts ----------------------------------------------------------------------------------------------
def placed(op: Op) -> TileType:
    kind = op.infer()
    assert isinstance(kind, TileType)
    return kind


def test_results_are_unplaced_unless_said() -> None:
    vec, mat = MemorySpace.VEC, MemorySpace.MAT
    assert placed(make("add", tile(8, 8, space=vec), tile(8, 8, space=vec))).space is None
    assert placed(make("load", tensor(8, 8), (0, 0), (8, 8))).space is None
    assert placed(make("load", tensor(8, 8), (0, 0), (8, 8), target_memory=mat)).space is mat
    assert placed(make("reshape", tile(8, 8, space=vec), (64, 1))).space is vec
    assert (
        placed(make("matmul_acc", tile(8, 8, space=MemorySpace.ACC), tile(8, 8), tile(8, 8))).space is MemorySpace.ACC
    )


def test_a_transposed_view_turns_the_layout() -> None:
    boxed = Value("t", TileType((32, 64), FP16, MemorySpace.MAT))
    view = placed(make("transpose_view", boxed))
    assert boxed.type is not view
    assert (view.shape, view.layout) == ((64, 32), ZN)
    assert placed(make("transpose_view", Value("v", view))).layout == NZ


def test_a_partial_operand_is_compact() -> None:
    part = make("extract", tile(32, 32, valid=(20, 32)), 16, 0, (16, 16), MemorySpace.LEFT)
    assert placed(part).view.compact is Compact.NORMAL
    whole = make("extract", tile(32, 32), 16, 0, (16, 16), MemorySpace.LEFT)
    assert placed(whole).view.compact is Compact.NULL


def test_padding_is_in_the_type() -> None:
    assert placed(make("load", tensor(9, 9), (0, 0), (16, 16), (9, 9), pad_value=Pad.ZERO)).view.pad is Pad.ZERO
    assert placed(make("move", tile(16, 16, valid=(9, 9)), MemorySpace.MAT, pad_value=Pad.ZERO)).view.pad is Pad.ZERO


@pytest.mark.parametrize("name", sorted(registry()))
def test_scratch_is_a_field_and_a_type(name: str) -> None:
    """What an op wants as scratch is a field that says so, and sits in the vector memory."""
    cls = registry()[name]
    marked = {field.name for field in cls.fields if field.scratch}
    assert all(cls.field(field).default is None and cls.field(field).levels == (Level.TILE,) for field in marked)


def test_scratch_of_a_row_sum_is_like_its_source() -> None:
    assert make("row_sum", tile(8, 16, dtype=FP16)).scratch() == {"tmp_tile": TileType((8, 16), FP16, MemorySpace.VEC)}


@pytest.mark.parametrize(
    ("op", "shape", "valid"),
    [
        (make("load", tensor(20, 20), (0, 0), (17, 20)), (32, 32), (17, 20)),
        (make("load", tensor(20, 20), (0, 0), (17, 20), transpose=True), (32, 48), (20, 17)),
        (make("create", (17, 20), FP32, level=Level.TILE), (32, 32), (17, 20)),
        (make("full", (17, 20), FP32, constant(1, FP32), level=Level.TILE), (32, 32), (17, 20)),
    ],
)
def test_resizing_keeps_the_meaning(op: Op, shape: Shape, valid: Shape) -> None:
    kind = placed(op.resized(shape))
    assert (kind.shape, kind.valid) == (shape, valid)


# --- accesses -------------------------------------------------------------------------------------------------------
def boxes(op: Op) -> list[tuple[str | None, bool, Shape, Shape]]:
    return [(access.field, access.writes, access.offsets, access.extents) for access in op.accesses()]


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (
            make("load", tensor(200, 40), (N, 0), (16, 40), (16, 7)),
            [("tensor", False, (N, 0), (16, 7)), (None, True, (0, 0), (16, 7))],
        ),
        (
            make("load", tensor(4, 200, 40), (2, N, 0), (16, 40), transpose=True),
            [("tensor", False, (2, N, 0), (1, 16, 40)), (None, True, (0, 0), (40, 16))],
        ),
        (
            make("store", tile(16, 40, valid=(M, 40)), (3, N, 0), tensor(4, 200, 40)),
            [("tile", False, (0, 0), (M, 40)), ("output_tensor", True, (3, N, 0), (1, M, 40))],
        ),
        (
            make("store", tile(8, 8), (0, 0), tensor(8, 8), atomic=1),
            [
                ("tile", False, (0, 0), (8, 8)),
                ("output_tensor", False, (0, 0), (8, 8)),
                ("output_tensor", True, (0, 0), (8, 8)),
            ],
        ),
        (
            make("extract", tile(32, 32), N, 16, (16, 16)),
            [("src", False, (N, 16), (16, 16)), (None, True, (0, 0), (16, 16))],
        ),
        (
            make("assemble", tensor(32, 32), tensor(1, 8), (N, 16)),
            [("source", False, (0, 0), (1, 8)), ("target", True, (N, 16), (1, 8))],
        ),
        (
            make("slice", tensor(32, 32), (1, 8), (N, 16), None, (0,)),
            [("tile", False, (N, 16), (1, 8)), (None, True, (0,), (8,))],
        ),
        (make("read", tile(32, 32), (N, 16)), [("tile", False, (N, 16), (1, 1))]),
        (make("write", tile(32, 32), (N, 16), constant(1, FP32)), [("tile", True, (N, 16), (1, 1))]),
        (make("create", (8, 8), FP32, level=Level.TILE), []),
        (
            make("row_expand", tile(8, 8), tile(8, 1)),
            [("row_vec", False, (0, 0), (8, 1)), (None, True, (0, 0), (8, 8))],
        ),
    ],
    ids=repr,
)
def test_accesses(op: Op, expected: list[Any]) -> None:
    assert boxes(op) == expected


# --- edges of arithmetic --------------------------------------------------------------------------------------------
NAN, INF = float("nan"), float("inf")


def run(op: Op, *arrays: Any) -> list[Any]:
    """The result on 1 x n arrays of the operands' dtypes, as a list."""
    given = iter(arrays)
    operands = [
        None if value is None else np.array([next(given)]).astype(value.type.dtype.numpy)
        for field, value in operand_values(op)
        if field.kind.name == "OPERAND"
    ]
    with np.errstate(all="ignore"):
        return np.asarray(op.evaluate(*operands)).astype(np.float64)[0].tolist()


def same(found: list[Any], expected: list[Any]) -> None:
    np.testing.assert_array_equal(found, expected)


def test_nan_passes_through_the_extremes() -> None:
    a, b = [NAN, 1.0, 2.0], [1.0, NAN, 3.0]
    same(run(make("maximum", tile(1, 3), tile(1, 3)), a, b), [NAN, NAN, 3.0])
    same(run(make("minimum", tile(1, 3), tile(1, 3)), a, b), [NAN, NAN, 2.0])
    same(run(make("relu", tile(1, 3)), a), [NAN, 1.0, 2.0])
    same(run(make("row_max", tile(1, 3)), a), [NAN])


def test_nan_is_unequal_and_unordered() -> None:
    a, b = [NAN, 1.0], [NAN, NAN]
    found = [run(make("cmp", tile(1, 2), tile(1, 2), code), a, b) for code in range(6)]
    assert found == [[0, 0], [1, 1], [0, 0], [0, 0], [0, 0], [0, 0]]


def test_integers_wrap() -> None:
    a, b = tile(1, 2, dtype=INT8), tile(1, 2, dtype=INT8)
    same(run(make("add", a, b), [127, -128], [1, -1]), [-128, 127])
    same(run(make("mul", a, b), [64, -128], [2, -1]), [-128, -128])
    same(run(make("neg", a), [-128, 1]), [-128, -1])
    same(run(make("row_sum", a), [127, 127]), [-2])


def test_narrow_floats_round_once() -> None:
    """FP32 keeps 1 + 2^-12, FP16 does not; the sum of three is rounded at the end only."""
    same(run(make("row_sum", tile(1, 4, dtype=FP16)), [2048.0, 1.0, 1.0, 1.0]), [2052.0])
    same(run(make("add", tile(1, 1, dtype=BF16), tile(1, 1, dtype=BF16)), [256.0], [1.0]), [256.0])
    same(run(make("add", tile(1, 1, dtype=BF16), tile(1, 1, dtype=BF16)), [258.0], [1.0]), [260.0])


def test_reductions_of_nothing() -> None:
    empty = np.zeros((2, 0), np.float32)
    for name, expected in (("row_sum", 0.0), ("row_max", -INF), ("row_min", INF)):
        assert make(name, tile(2, 8)).evaluate(empty, None).tolist() == [[expected], [expected]]


@pytest.mark.parametrize(("name", "vector"), [("row_expand_add", (2, 1)), ("col_expand_add", (1, 8))])
def test_an_empty_vector_meets_nothing(name: str, vector: tuple[int, int]) -> None:
    op, axis = make(name, tile(2, 8), tile(*vector)), vector.index(1)
    empty = np.zeros([0 if i == axis else n for i, n in enumerate(vector)], np.float32)
    with pytest.raises(ValidShapeError, match="has no element that has meaning"):
        op.evaluate(np.zeros((2, 8), np.float32), empty)


@pytest.mark.parametrize(
    ("source", "target", "mode", "given", "expected"),
    [
        (FP32, INT8, "round", [0.5, 1.5, -2.5, 300.0, -300.0, NAN, INF], [0, 2, -2, 127, -128, 0, 127]),
        (FP32, INT8, "floor", [0.5, -0.5, 1.9], [0, -1, 1]),
        (FP32, INT8, "ceil", [0.5, -0.5, 1.1], [1, 0, 2]),
        (FP32, INT8, "trunc", [0.9, -0.9, 1.9], [0, 0, 1]),
        (FP32, INT32, "round", [2.0**31, -(2.0**31), 2147483520.0], [2**31 - 1, -(2**31), 2147483520]),
        (FP32, FP16, "round", [2049.0, 2051.0, 70000.0, NAN], [2048, 2052, INF, NAN]),
        (FP32, BF16, "rint", [257.0, 259.0], [256, 260]),
        (FP32, FP16, "floor", [2049.0, -2049.0, 70000.0, -70000.0, -0.0, NAN], [2048, -2050, 65504, -INF, 0, NAN]),
        (FP32, FP16, "ceil", [2049.0, -2049.0, 70000.0, -70000.0, 1e-30], [2050, -2048, INF, -65504, 2.0**-24]),
        (FP32, FP16, "trunc", [2049.0, -2049.0, 70000.0, INF, 1e-30], [2048, -2048, 65504, INF, 0]),
        (FP32, FP16, "odd", [2049.0, -2051.0, 2048.0, 70000.0, 1e-30], [2050, -2050, 2048, 65504, 2.0**-24]),
        (FP32, BF16, "odd", [257.0, 259.0, 258.0], [258, 258, 258]),
        (FP32, INT8, "odd", [0.5, -2.5, 2.0, 3.5, 4.25, -200.0], [1, -3, 2, 3, 5, -128]),
        (INT8, FP16, "floor", [127, -128], [127, -128]),
        (INT32, INT8, "round", [128, -129, 256], [-128, 127, 0]),
        (INT32, FP32, "round", [2**24 + 1, 2**24 + 3], [2**24, 2**24 + 4]),
        (FP32, BOOL, "round", [0.0, -0.0, 0.25, NAN], [0, 0, 1, 1]),
        (BOOL, FP16, "round", [True, False], [1, 0]),
    ],
)
def test_cast(source: DType, target: DType, mode: str, given: list[Any], expected: list[Any]) -> None:
    same(run(make("cast", tile(1, len(given), dtype=source), target, mode), given), expected)


# --- loop forms -------------------------------------------------------------------------------------------------------
def index_pairs(op: Op, form: Index | Update, shape: tuple[int, ...]) -> dict[tuple[int, ...], tuple[Any, ...]]:
    return {ix: tuple(form.map(op, *ix)) for ix in np.ndindex(*shape)}


@pytest.mark.parametrize(
    "op",
    [
        make("load", tensor(3, 9, 9), (1, 2, 3), (4, 5)),
        make("load", tensor(9, 9), (2, 3), (4, 5), transpose=True),
        make("extract", tile(9, 9), 2, 3, (4, 5)),
        make("slice", tile(9, 9), (4, 5), (2, 3)),
        make("slice", tile(9, 9), (1, 5), (2, 3), None, (0,)),
        make("reshape", tile(4, 6), (8, 3)),
        make("reshape", tile(24, 1), (1, 24)),
        make("transpose", tile(4, 6), 0, 1),
        make("transpose_view", tile(4, 6)),
        make("set_validshape", tile(4, 6), 4, 6),
    ],
    ids=repr,
)
def test_index_forms_say_what_evaluate_does(op: Op) -> None:
    form = op.loops
    assert isinstance(form, Index)
    source: Value = getattr(op, form.source)
    shape = tuple(extent for extent in physical_of(source.type) if isinstance(extent, int))
    array = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    values = [array if field.name == form.source else value for field, value in operand_values(op)]
    out = op.evaluate(*values)
    assert {ix: array[at] for ix, at in index_pairs(op, form, out.shape).items()} == {
        ix: out[ix] for ix in np.ndindex(*out.shape)
    }


@pytest.mark.parametrize(
    "op",
    [make("store", tile(4, 5), (1, 2, 3), tensor(3, 9, 9)), make("assemble", tile(9, 9), tile(4, 5), (2, 3))],
    ids=repr,
)
def test_update_forms_say_what_evaluate_does(op: Op) -> None:
    form = op.loops
    assert isinstance(form, Update)
    source = np.arange(20, dtype=np.float32).reshape(4, 5) + 1
    target = np.zeros(getattr(op, form.target).type.shape, np.float32)
    expected = target.copy()
    for ix, at in index_pairs(op, form, source.shape).items():
        expected[at] = source[ix]
    values = [
        source if field.name == form.source else target if field.name == form.target else value
        for field, value in operand_values(op)
    ]
    np.testing.assert_array_equal(op.evaluate(*values), expected)


def test_elementwise_forms_have_expressions() -> None:
    """The form of an addition, applied to two elements, is their sum."""
    a, b = Value("a", ScalarType(FP32)), Value("b", ScalarType(FP32))
    form = make("add", tile(8, 8), tile(8, 8)).loops
    assert isinstance(form, Elementwise)
    found = form.expr(make("add", tile(8, 8), tile(8, 8)), a, b)
    assert isinstance(found, Binary)
    assert substitute(found, lambda v: v) is found
    assert (found.lhs, found.rhs, found.dtype) == (a, b, FP32)
