"""Each instruction of the vector unit in the emulator against NumPy, tails included; scalars, control, addresses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from pto.kernels import Array, Kernel, Name, column, integers, up, vec, zeros

from tilewright.codegen.pto.emulate import emulate, launch
from tilewright.codegen.pto.memory import DTYPES

TAILS = [1, 15, 16, 17, 63, 64, 65, 200]


def padded(rows: int, cols: int, dtype: str = "f32") -> str:
    """A tile of whole 32-byte rows with `rows` x `cols` valid."""
    wide = up(cols, 32 // DTYPES[dtype].itemsize)
    return vec(rows, wide, dtype, f"valid={rows}x{cols}" if wide != cols else "")


BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "tadd": np.add, "tsub": np.subtract, "tmul": np.multiply, "tmax": np.maximum, "tmin": np.minimum,
    "tdiv": np.divide,
}  # fmt: skip


@pytest.mark.parametrize("op", BINARY)
@pytest.mark.parametrize("cols", TAILS)
def test_binary(op: str, cols: int) -> None:
    a, b, o = integers((3, cols)), integers((3, cols), low=1, seed=9), zeros((3, cols))
    k = Kernel("f32", "f32", "f32")
    kind = padded(3, cols)
    x, y = k.load(0, (3, cols), kind), k.load(1, (3, cols), kind)
    k.op(op, [x, y], x)
    k.store(x, 2, (3, cols))
    k.run(a, b, o)
    np.testing.assert_array_equal(o, BINARY[op](a, b))


@pytest.mark.parametrize("dtype", ["i16", "i32", "f16"])
@pytest.mark.parametrize("op", ["tadd", "tmul", "tmax"])
def test_binary_keeps_its_element_type(op: str, dtype: str) -> None:
    high = 300
    a, b, o = integers((4, 64), dtype, 0, high), integers((4, 64), dtype, 0, high, 3), zeros((4, 64), dtype)
    k = Kernel(dtype, dtype, dtype)
    x, y = k.load(0, (4, 64), vec(4, 64, dtype)), k.load(1, (4, 64), vec(4, 64, dtype))
    k.op(op, [x, y], x)
    k.store(x, 2, (4, 64))
    k.run(a, b, o)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(o, BINARY[op](a, b))


def test_integer_division_is_toward_zero() -> None:
    a, b, o = integers((8, 8), "i32", -9, 10), integers((8, 8), "i32", 1, 4), zeros((8, 8), "i32")
    k = Kernel("i32", "i32", "i32", arch="a5")
    x, y = k.load(0, (8, 8), vec(8, 8, "i32")), k.load(1, (8, 8), vec(8, 8, "i32"))
    k.op("tdiv", [x, y], x)
    k.store(x, 2, (8, 8))
    k.run(a, b, o)
    np.testing.assert_array_equal(o, np.trunc(a / b).astype(np.int32))


SCALAR: dict[str, Callable[[Array], Array]] = {
    "tadds": lambda a: a + 2, "tsubs": lambda a: a - 2, "tmuls": lambda a: a * 2, "tdivs": lambda a: a / 2,
    "tmaxs": lambda a: np.maximum(a, 2), "tmins": lambda a: np.minimum(a, 2),
    "tlrelu": lambda a: np.where(a > 0, a, a * 2),
}  # fmt: skip


@pytest.mark.parametrize("op", SCALAR)
@pytest.mark.parametrize("cols", [1, 17, 64])
def test_scalar_operand(op: str, cols: int) -> None:
    a, o = integers((5, cols)), zeros((5, cols))
    k = Kernel("f32", "f32")
    x = k.load(0, (5, cols), padded(5, cols))
    k.op(op, [x, k.scalar(2, "f32")], x)
    k.store(x, 1, (5, cols))
    k.run(a, o)
    np.testing.assert_array_equal(o, SCALAR[op](a))


def test_scalar_divided_by_tile() -> None:
    a, o = integers((4, 8), low=1), zeros((4, 8))
    k = Kernel("f32", "f32")
    x = k.load(0, (4, 8), vec(4, 8))
    k.op("tdivs", [k.scalar(12, "f32"), x], x)
    k.store(x, 1, (4, 8))
    k.run(a, o)
    np.testing.assert_array_equal(o, np.float32(12) / a)


UNARY: dict[str, Callable[[Array], Array]] = {
    "texp": np.exp, "tlog": np.log, "tsqrt": np.sqrt, "trsqrt": lambda a: 1 / np.sqrt(a), "trecip": lambda a: 1 / a,
    "tneg": np.negative, "tabs": np.abs, "trelu": lambda a: np.maximum(a, 0),
}  # fmt: skip


@pytest.mark.parametrize("op", UNARY)
@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("cols", [1, 17, 64])
def test_unary(op: str, dtype: str, cols: int) -> None:
    low = -4 if op in ("tneg", "tabs", "trelu") else 1
    a, o = integers((3, cols), dtype, low), zeros((3, cols), dtype)
    k = Kernel(dtype, dtype)
    x, y = k.load(0, (3, cols), padded(3, cols, dtype)), k.tile(padded(3, cols, dtype))
    k.op(op, [x], y)
    k.store(y, 1, (3, cols))
    k.run(a, o)
    np.testing.assert_array_equal(o, UNARY[op](a.astype(np.float32)).astype(DTYPES[dtype]))


ROWS: dict[str, Callable[[Array], Array]] = {
    "trowsum": lambda a: a.sum(1), "trowmax": lambda a: a.max(1), "trowmin": lambda a: a.min(1),
    "trowprod": lambda a: a.prod(1),
}  # fmt: skip


@pytest.mark.parametrize("op", ROWS)
@pytest.mark.parametrize("cols", TAILS)
@pytest.mark.parametrize("dtype", ["f32", "i32"])
def test_row_reduction(op: str, cols: int, dtype: str) -> None:
    a, o = integers((8, cols), dtype, -1 if op == "trowprod" else -4, 2), zeros((8, 1), dtype)
    k = Kernel(dtype, dtype)
    kind = padded(8, cols, dtype)
    x, tmp, c = k.load(0, (8, cols), kind), k.tile(kind), k.tile(column(8, dtype))
    k.op(op, [x, tmp], c)
    k.store(c, 1, (8, 1))
    k.run(a, o)
    np.testing.assert_array_equal(o[:, 0], ROWS[op](a))


COLUMNS: dict[str, Callable[[Array], Array]] = {
    "tcolsum": lambda a: a.sum(0), "tcolmax": lambda a: a.max(0), "tcolmin": lambda a: a.min(0),
    "tcolprod": lambda a: a.prod(0),
}  # fmt: skip


@pytest.mark.parametrize("op", COLUMNS)
@pytest.mark.parametrize("rows", [1, 15, 17, 64])
def test_column_reduction(op: str, rows: int) -> None:
    a, o = integers((rows, 17), low=-1, high=2), zeros((1, 17))
    k = Kernel("f32", "f32")
    x, r = k.load(0, (rows, 17), padded(rows, 17)), k.tile(padded(1, 17))
    k.op(op, [x], r)
    k.store(r, 1, (1, 17))
    k.run(a, o)
    np.testing.assert_array_equal(o[0], COLUMNS[op](a))


def test_column_sum_with_scratch() -> None:
    a, o = integers((9, 64)), zeros((1, 64))
    k = Kernel("f32", "f32")
    x, tmp, r = k.load(0, (9, 64), vec(9, 64)), k.tile(vec(9, 64)), k.tile(vec(1, 64))
    k.op("tcolsum", [x, tmp], r, "isBinary = true")
    k.store(r, 1, (1, 64))
    k.run(a, o)
    np.testing.assert_array_equal(o[0], a.sum(0))


COMBINE: dict[str, Callable[[Array, Array], Array]] = {
    "mul": np.multiply, "div": np.divide, "sub": np.subtract, "add": np.add, "max": np.maximum, "min": np.minimum,
    "expdif": lambda a, b: np.exp(a - b),
}  # fmt: skip


@pytest.mark.parametrize("what", COMBINE)
@pytest.mark.parametrize("axis", ["row", "col"])
def test_expand_and_combine(what: str, axis: str) -> None:
    shape = (16, 1) if axis == "row" else (1, 17)
    a, c, o = integers((16, 17)), integers(shape, low=1), zeros((16, 17))
    k = Kernel("f32", "f32", "f32")
    x = k.load(0, (16, 17), padded(16, 17))
    v = k.load(1, shape, column(16) if axis == "row" else padded(1, 17))
    ins = [x, v]
    if axis == "row" and what in ("mul", "div", "sub"):
        ins.append(k.tile(padded(16, 17)))
    k.op(f"t{axis}expand{what}", ins, x)
    k.store(x, 2, (16, 17))
    k.run(a, c, o)
    np.testing.assert_array_equal(o, COMBINE[what](a, c))


@pytest.mark.parametrize("axis", ["row", "col"])
def test_expand(axis: str) -> None:
    shape = (16, 1) if axis == "row" else (1, 17)
    c, o = integers(shape), zeros((16, 17))
    k = Kernel("f32", "f32")
    v, y = k.load(0, shape, column(16) if axis == "row" else padded(1, 17)), k.tile(padded(16, 17))
    k.op(f"t{axis}expand", [v], y)
    k.store(y, 1, (16, 17))
    k.run(c, o)
    np.testing.assert_array_equal(o, np.broadcast_to(c, (16, 17)))


TESTS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def mask(rows: int, cols: int) -> str:
    """The type of a bit-packed mask."""
    taken = -(-cols // 8)
    return vec(rows, up(taken, 32), "i8", f"valid={rows}x{taken}")


@pytest.mark.parametrize("mode", TESTS)
@pytest.mark.parametrize("cols", TAILS)
def test_compare_and_select(mode: str, cols: int) -> None:
    a, b, o = integers((3, cols), high=0), integers((3, cols), high=0, seed=5), zeros((3, cols))
    k = Kernel("f32", "f32", "f32")
    kind = padded(3, cols)
    wide = up(cols, 8)
    x, y, m, tmp = k.load(0, (3, cols), kind), k.load(1, (3, cols), kind), k.tile(mask(3, wide)), k.tile(kind)
    k.op("tcmp", [x, y], m, f"cmpMode = #pto<cmp {mode}>")
    k.op("tsel", [m, x, y, tmp], x)
    k.store(x, 2, (3, cols))
    k.run(a, b, o)
    np.testing.assert_array_equal(o, np.where(TESTS[mode](a, b), a, b))


@pytest.mark.parametrize("cols", [1, 17, 200])
def test_compare_and_select_with_scalars(cols: int) -> None:
    a, o = integers((3, cols)), zeros((3, cols))
    k = Kernel("f32", "f32")
    kind = padded(3, cols)
    x, m, tmp = k.load(0, (3, cols), kind), k.tile(mask(3, up(cols, 8))), k.tile(kind)
    k.op("tcmps", [x, k.scalar(1, "f32")], m, "cmpMode = #pto<cmp gt>")
    k.op("tsels", [m, x, tmp, k.scalar(7, "f32")], x)
    k.store(x, 1, (3, cols))
    k.run(a, o)
    np.testing.assert_array_equal(o, np.where(a > 1, a, 7))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("CAST_RINT", [-2, -2, 0, 0, 2, 2]), ("RINT", [-2, -2, 0, 0, 2, 2]), ("ROUND", [-3, -2, -1, 1, 2, 3]),
        ("FLOOR", [-3, -2, -1, 0, 1, 2]), ("CEIL", [-2, -1, 0, 1, 2, 3]), ("TRUNC", [-2, -1, 0, 0, 1, 2]),
        ("ODD", [-3, -1, -1, 1, 1, 3]),
    ],
)  # fmt: skip
def test_convert_to_integer(mode: str, expected: list[int]) -> None:
    a = np.array([[-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]], np.float32)
    o = zeros((1, 6), "i32")
    k = Kernel("f32", "i32")
    x, y = k.load(0, (1, 6), padded(1, 6)), k.tile(padded(1, 6, "i32"))
    k.op("tcvt", [x], y, f"rmode = #pto<round_mode {mode}>")
    k.store(y, 1, (1, 6))
    k.run(a, o)
    assert o[0].tolist() == expected


CASTS = [
    ("f32", "f16"), ("f32", "bf16"), ("f32", "i16"), ("f32", "i64"), ("f16", "f32"), ("f16", "i8"), ("bf16", "f32"),
    ("bf16", "i32"), ("i16", "f16"), ("i32", "f32"), ("i32", "i16"), ("i64", "f32"), ("i8", "f16"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target"), CASTS)
def test_convert(source: str, target: str) -> None:
    a, o = integers((4, 64), source, -100, 100), zeros((4, 64), target)
    k = Kernel(source, target)
    x, y = k.load(0, (4, 64), vec(4, 64, source)), k.tile(vec(4, 64, target))
    k.op("tcvt", [x], y)
    k.store(y, 1, (4, 64))
    k.run(a, o)
    np.testing.assert_array_equal(o, a.astype(DTYPES[target]))


@pytest.mark.parametrize(
    ("mode", "low", "high"), [("TRUNC", 1.0, -1.0), ("FLOOR", 1.0, -1.0009765625), ("CEIL", 1.0009765625, -1.0)]
)
def test_convert_rounds_floats_by_mode(mode: str, low: float, high: float) -> None:
    a, o = np.array([[1.0001, -1.0001]], np.float32), zeros((1, 2), "f16")
    k = Kernel("f32", "f16")
    x, y = k.load(0, (1, 2), vec(1, 16, "f32", "valid=1x2")), k.tile(vec(1, 16, "f16", "valid=1x2"))
    k.op("tcvt", [x], y, f"rmode = #pto<round_mode {mode}>")
    k.store(y, 1, (1, 2))
    k.run(a, o)
    assert o[0].tolist() == [low, high]


@pytest.mark.parametrize(("saturation", "expected"), [("ON", [32767, -32768]), ("OFF", [-31072, 31072])])
def test_convert_saturates_unless_told_not_to(saturation: str, expected: list[int]) -> None:
    a, o = np.array([[100000, -100000]], np.int32), zeros((1, 2), "i16")
    k = Kernel("i32", "i16")
    x, y = k.load(0, (1, 2), vec(1, 16, "i32", "valid=1x2")), k.tile(vec(1, 16, "i16", "valid=1x2"))
    k.op("tcvt", [x], y, f"sat_mode = #pto<saturation_mode {saturation}>")
    k.store(y, 1, (1, 2))
    k.run(a, o)
    assert o[0].tolist() == expected


@pytest.mark.parametrize(("pad", "value"), [(1, 0.0), (2, np.inf), (3, -np.inf)])
def test_fill_padding(pad: int, value: float) -> None:
    a, o = integers((3, 13)), zeros((3, 16))
    k = Kernel("f32", "f32")
    x, y = k.load(0, (3, 13), vec(3, 16, "f32", "valid=3x13")), k.tile(vec(3, 16, "f32", f"pad={pad}"))
    k.op("tfillpad", [x], y)
    k.store(y, 1, (3, 16))
    k.run(a, o)
    np.testing.assert_array_equal(o[:, :13], a)
    assert (o[:, 13:] == value).all()


@pytest.mark.parametrize(("descending", "step"), [("false", 1), ("true", -1)])
def test_count(descending: str, step: int) -> None:
    o = zeros((1, 32), "i32")
    k = Kernel("i32")
    y = k.tile(vec(1, 32, "i32"))
    k.op("tci", [k.scalar(5, "i32")], y, f"descending = {descending}")
    k.store(y, 0, (1, 32))
    k.run(o)
    np.testing.assert_array_equal(o[0], 5 + step * np.arange(32))


@pytest.mark.parametrize(("rows", "cols"), [(16, 16), (15, 17), (1, 64), (63, 9)])
def test_transpose(rows: int, cols: int) -> None:
    a, o = integers((rows, cols)), zeros((cols, rows))
    k = Kernel("f32", "f32")
    x, y = k.load(0, (rows, cols), padded(rows, cols)), k.tile(padded(cols, rows))
    k.op("ttrans", [x, k.tile(padded(rows, cols))], y)
    k.store(y, 1, (cols, rows))
    k.run(a, o)
    np.testing.assert_array_equal(o, a.T)


def test_reshape_and_subset() -> None:
    a, o = integers((4, 32)), zeros((2, 16))
    k = Kernel("f32", "f32")
    x = k.load(0, (4, 32), vec(4, 32))
    k.line(f"%r = pto.treshape {x.name} : {x.type} -> {vec(8, 16)}")
    k.line(f"%s = pto.subset %r[{k.const(3)}, {k.const(0)}] sizes [2, 16] : {vec(8, 16)}")
    y = k.tile(vec(2, 16))
    k.op("tabs", [Name("%s", vec(2, 16))], y)
    k.store(y, 1, (2, 16))
    k.run(a, o)
    np.testing.assert_array_equal(o, np.abs(a.reshape(8, 16)[3:5]))


def test_a_row_slice_is_a_second_tile_over_the_same_bytes() -> None:
    a, o = integers((8, 16)), zeros((8, 16))
    k = Kernel("f32", "f32")
    x = k.load(0, (8, 16), vec(8, 16), addr=0)
    part = k.tile(vec(2, 16), addr=3 * 64)
    k.op("tneg", [part], part)
    k.store(x, 1, (8, 16))
    k.run(a, o)
    expected = a.copy()
    expected[3:5] *= -1
    np.testing.assert_array_equal(o, expected)


def test_dynamic_valid_shape_and_offsets() -> None:
    text = f"""
    module {{
      func.func @k(%p: !pto.ptr<f32>, %q: !pto.ptr<f32>, %m: i32) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c16 = arith.constant 16 : index
        %n = arith.index_cast %m : i32 to index
        %rest = arith.subi %c16, %n : index
        %v = pto.make_tensor_view %p, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<?x16xf32>
        %w = pto.make_tensor_view %q, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<?x16xf32>
        %rows = pto.get_tensor_view_dim %v, %c0 : !pto.tensor_view<?x16xf32> -> index
        %x = pto.alloc_tile valid_row = %rows valid_col = %c16 : {vec(16, 16, "f32", "valid=?x?")}
        pto.set_validshape %x, %n, %c16 : {vec(16, 16, "f32", "valid=?x?")}
        %a = pto.partition_view %v, offsets = [%rest, %c0], sizes = [%n, %c16]
          : !pto.tensor_view<?x16xf32> -> !pto.partition_tensor_view<?x16xf32>
        %b = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%n, %c16]
          : !pto.tensor_view<?x16xf32> -> !pto.partition_tensor_view<?x16xf32>
        pto.tload ins(%a : !pto.partition_tensor_view<?x16xf32>) outs(%x : {vec(16, 16, "f32", "valid=?x?")})
        pto.tstore ins(%x : {vec(16, 16, "f32", "valid=?x?")}) outs(%b : !pto.partition_tensor_view<?x16xf32>)
        return
      }}
    }}
    """
    a = integers((16, 16))
    for n in (1, 15, 16):
        o = zeros((16, 16))
        emulate(text, [a, o, n])
        np.testing.assert_array_equal(o[:n], a[16 - n :])
        assert not o[n:].any()


def test_scalars_pointers_and_single_elements() -> None:
    k = Kernel("f32", "f32")
    x = k.load(0, (1, 8), vec(1, 8))
    c3 = k.const(3)
    k.line(f"%f = pto.tgetval ins({x.name}, {c3} : {x.type}, index) outs : f32")
    k.line("%g = arith.addf %f, %f : f32")
    k.line(f"pto.tsetval ins({k.const(0)}, %g : index, f32) outs({x.name} : {x.type})")
    k.store(x, 1, (1, 8))
    k.line(f"%q = pto.addptr %p1, {k.const(4)} : !pto.ptr<f32> -> !pto.ptr<f32>")
    k.line(f"%h = pto.load_scalar %p0[{k.const(7)}] : !pto.ptr<f32> -> f32")
    k.line(f"pto.store_scalar %h, %q[{k.const(1)}] : !pto.ptr<f32>, f32")
    a, o = integers((1, 8)), zeros((1, 8))
    k.run(a, o)
    expected = a.copy()
    expected[0, 0], expected[0, 5] = 2 * a[0, 3], a[0, 7]
    np.testing.assert_array_equal(o, expected)


def test_blocks_calls_while_and_carried_values() -> None:
    text = """
    module {
      func.func @twice(%x: index) -> index {
        %y = arith.addi %x, %x : index
        return %y : index
      }
      func.func @k(%p: !pto.ptr<i32>) attributes {pto.entry} {
        %b = pto.get_block_idx
        %i = arith.index_cast %b : i64 to index
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c5 = arith.constant 5 : index
        %d = func.call @twice(%i) : (index) -> index
        %s:2 = scf.for %k = %c0 to %c5 step %c1 iter_args(%u = %d, %v = %c0) -> (index, index) {
          %n = arith.addi %u, %k : index
          scf.yield %n, %u : index, index
        }
        %w = scf.while (%x = %s#0) : (index) -> index {
          %small = arith.cmpi slt, %x, %c5 : index
          scf.condition(%small) %x : index
        } do {
        ^bb0(%x: index):
          %y = arith.addi %x, %c1 : index
          scf.yield %y : index
        }
        %even = arith.cmpi eq, %d, %c0 : index
        %r = scf.if %even -> (index) {
          scf.yield %w : index
        } else {
          scf.yield %s#1 : index
        }
        %o = arith.index_cast %r : index to i32
        pto.store_scalar %o, %p[%i] : !pto.ptr<i32>, i32
        return
      }
    }
    """
    o = zeros((3,), "i32")
    emulate(text, [o], block_num=3)
    assert o.tolist() == [10, 8, 10]


def test_atomic_add_on_store() -> None:
    a, o = integers((4, 8)), np.full((4, 8), 3, np.float32)
    k = Kernel("f32", "f32")
    x = k.load(0, (4, 8), vec(4, 8))
    k.store(x, 1, (4, 8), "atomicType = #pto<atomic_type atomic_add>")
    k.run(a, o)
    np.testing.assert_array_equal(o, a + 3)


def test_column_major_and_five_dimensional_views() -> None:
    a, o = integers((16, 8)), zeros((8, 16))
    k = Kernel("f32", "f32")
    x = k.tile(vec(8, 16, "f32", "blayout=col_major"))
    k.op("tload", [k.view(0, (8, 16), (1, 8))], x)
    y = k.view(1, (1, 1, 2, 4, 16))
    k.op("tstore", [x], y)
    k.run(a, o)
    np.testing.assert_array_equal(o, a.T)


def test_launch_runs_kernels_in_order_with_workspaces() -> None:
    k = Kernel("f32", "f32")
    x = k.load(0, (4, 8), vec(4, 8))
    k.op("tadds", [x, k.scalar(1, "f32")], x)
    k.store(x, 1, (4, 8))
    kernels = [
        {"file": "one.pto", "entry": "k", "blocks": 1, "arguments": ["a", "ws"]},
        {"file": "one.pto", "arguments": ["ws", "o"]},
    ]
    a, o = integers((4, 8)), zeros((4, 8))
    launch({"kernels": kernels, "workspaces": {"ws": 4 * 8 * 4}}, {"one.pto": k.text()}, {"a": a, "o": o})
    np.testing.assert_array_equal(o, a + 2)
