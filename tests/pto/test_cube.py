"""Matmul, moves and boxes in the emulator against NumPy; the accumulator's pitch by the hardware's rule."""

from __future__ import annotations

import numpy as np
import pytest
from pto.kernels import Array, Kernel, Name, boxed, integers, up, vec, zeros

from tilewright.codegen.pto.check import check
from tilewright.codegen.pto.memory import DTYPES, Layout, offsets
from tilewright.codegen.pto.types import TileType, parse_type
from tilewright.errors import PTOError

ROWS = [1, 15, 16, 17, 63, 64]
TRIPLES = [("f16", "f32"), ("bf16", "f32"), ("f32", "f32"), ("i8", "i32")]


def product(a: Array, b: Array, dtype: str) -> Array:
    wide = np.int32 if dtype == "i32" else np.float32
    return a.astype(wide) @ b.astype(wide)


def load_operands(k: Kernel, m: int, kk: int, n: int, dtype: str) -> tuple[Name, Name]:
    """Left [m, kk] of %p0 and right [kk, n] of %p1, through L1, in whole boxes of their own."""
    unit = 32 // DTYPES[dtype].itemsize
    mp, kp, np_ = up(m, 32), up(kk, max(unit, 16)), up(n, max(unit, 16))
    valid = {"l": f"valid={m}x{kk}, compact=1", "r": f"valid={kk}x{n}, compact=1"}
    ml = k.tile(boxed("mat", mp, kp, dtype, f"valid={m}x{kk}"))
    mr = k.tile(boxed("mat", kp, np_, dtype, f"valid={kk}x{n}"))
    k.op("tload", [k.view(0, (m, kk))], ml)
    k.op("tload", [k.view(1, (kk, n))], mr)
    left, right = k.tile(boxed("left", mp, kp, dtype, valid["l"])), k.tile(boxed("right", kp, np_, dtype, valid["r"]))
    k.op("tmov", [ml], left)
    k.op("tmov", [mr], right)
    return left, right


@pytest.mark.parametrize(("dtype", "acc"), TRIPLES)
@pytest.mark.parametrize("arch", ["a3", "a5"])
@pytest.mark.parametrize(("m", "kk", "n"), [(32, 64, 32), (1, 16, 16), (17, 33, 65), (63, 100, 15), (64, 200, 17)])
def test_matmul_of_every_type_and_tail(dtype: str, acc: str, arch: str, m: int, kk: int, n: int) -> None:
    a, b, o = integers((m, kk), dtype), integers((kk, n), dtype, seed=4), zeros((m, n), acc)
    k = Kernel(dtype, dtype, acc, kind="cube", arch=arch)
    left, right = load_operands(k, m, kk, n, dtype)
    c = k.tile(boxed("acc", up(m, 32), up(n, 32 if dtype == "i8" else 16), acc, f"valid={m}x{n}, compact=1"))
    k.op("tmatmul", [left, right], c)
    k.op("tmatmul.acc", [c, left, right], c)
    k.store(c, 2, (m, n))
    k.run(a, b, o)
    np.testing.assert_array_equal(o, 2 * product(a, b, acc))


def test_matmul_with_bias() -> None:
    a, b, bias, o = integers((16, 32), "f16"), integers((32, 48), "f16"), integers((1, 48)), zeros((16, 48))
    k = Kernel("f16", "f16", "f32", "f32", kind="cube")
    left, right = load_operands(k, 16, 32, 48, "f16")
    row, held = k.load(2, (1, 48), "!pto.tile_buf<mat, 1x48xf32>"), k.tile(boxed("bias", 1, 48, "f32"))
    k.op("tmov", [row], held)
    c = k.tile(boxed("acc", 32, 48, "f32", "valid=16x48, compact=1"))
    k.op("tmatmul.bias", [left, right, held], c)
    k.store(c, 3, (16, 48))
    k.run(a, b, bias, o)
    np.testing.assert_array_equal(o, product(a, b, "f32") + bias)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "i32"])
def test_store_converts_and_activates(dtype: str) -> None:
    source, acc = ("i8", "i32") if dtype == "i32" else ("f16", "f32")
    a, b, o = integers((32, 32), source), integers((32, 32), source, seed=1), zeros((32, 32), dtype)
    k = Kernel(source, source, dtype, kind="cube")
    left, right = load_operands(k, 32, 32, 32, source)
    c = k.tile(boxed("acc", 32, 32, acc))
    k.op("tmatmul", [left, right], c)
    k.store(c, 2, (32, 32), "reluPreMode = #pto<relu_pre_mode normal_relu>")
    k.run(a, b, o)
    np.testing.assert_array_equal(o, np.maximum(product(a, b, acc), 0).astype(DTYPES[dtype]))


def test_atomic_store_of_two_halves_of_k() -> None:
    a, b, o = integers((16, 64), "f16"), integers((64, 16), "f16"), zeros((16, 16))
    k = Kernel("f16", "f16", "f32", kind="cube")
    for half in (0, 32):
        ml, mr = k.tile(boxed("mat", 16, 32)), k.tile(boxed("mat", 32, 16))
        k.op("tload", [k.view(0, (16, 64), at=(0, half), sizes=(16, 32))], ml)
        k.op("tload", [k.view(1, (64, 16), at=(half, 0), sizes=(32, 16))], mr)
        left, right = k.tile(boxed("left", 16, 32)), k.tile(boxed("right", 32, 16))
        c = k.tile(boxed("acc", 16, 16, "f32"))
        k.op("tmov", [ml], left)
        k.op("tmov", [mr], right)
        k.op("tmatmul", [left, right], c)
        k.store(c, 2, (16, 16), "atomicType = #pto<atomic_type atomic_add>")
    k.run(a, b, o)
    np.testing.assert_array_equal(o, product(a, b, "f32"))


@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_transposed_right_operand_through_a_column_major_view(arch: str) -> None:
    a, bt, o = integers((32, 64), "f16"), integers((48, 64), "f16"), zeros((32, 48))
    k = Kernel("f16", "f16", "f32", kind="cube", arch=arch)
    ml, mr = k.load(0, (32, 64), boxed("mat", 32, 64)), k.tile(boxed("zn", 64, 48))
    k.op("tload", [k.view(1, (64, 48), (1, 64))], mr)
    left, right = k.tile(boxed("left", 32, 64)), k.tile(boxed("right", 64, 48))
    k.op("tmov", [ml], left)
    k.op("tmov", [mr], right)
    c = k.tile(boxed("acc", 32, 48, "f32"))
    k.op("tmatmul", [left, right], c)
    k.store(c, 2, (32, 48))
    k.run(a, bt, o)
    np.testing.assert_array_equal(o, product(a, bt.T, "f32"))


def test_extract_steps_over_k_and_a_partial_last_one() -> None:
    a, b, o = integers((32, 80), "f16"), integers((80, 32), "f16"), zeros((32, 32))
    k = Kernel("f16", "f16", "f32", kind="cube")
    ml, mr = k.load(0, (32, 80), boxed("mat", 32, 80)), k.load(1, (80, 32), boxed("mat", 80, 32))
    c = k.tile(boxed("acc", 32, 32, "f32"))
    for start, extent in ((0, 64), (64, 16)):
        left, right = k.tile(boxed("left", 32, extent)), k.tile(boxed("right", extent, 32))
        at = [Name(k.const(v), "index") for v in (0, start)]
        k.op("textract", [ml, *at], left)
        k.op("textract", [mr, *reversed(at)], right)
        k.op("tmatmul" if start == 0 else "tmatmul.acc", [left, right] if start == 0 else [c, left, right], c)
    k.store(c, 2, (32, 32))
    k.run(a, b, o)
    np.testing.assert_array_equal(o, product(a, b, "f32"))


def test_insert_and_chained_matmul() -> None:
    a, b, d = (integers((32, 32), "f16", -2, 3, s) for s in range(3))
    o = zeros((32, 32))
    k = Kernel("f16", "f16", "f16", "f32", kind="cube")
    left, right = load_operands(k, 32, 32, 32, "f16")
    c = k.tile(boxed("acc", 32, 32, "f32"))
    k.op("tmatmul", [left, right], c)
    wide, moved = k.tile(boxed("mat", 32, 64)), k.tile(boxed("mat", 32, 32))
    at = [Name(k.const(v), "index") for v in (0, 32)]
    k.op("tinsert", [c, *at], wide)
    k.op("tmov", [c], moved)
    second, third = k.tile(boxed("left", 32, 32)), k.tile(boxed("left", 32, 32))
    k.op("textract", [wide, *at], second)
    k.op("tmov", [moved], third)
    md, right2 = k.load(2, (32, 32), boxed("mat", 32, 32)), k.tile(boxed("right", 32, 32))
    k.op("tmov", [md], right2)
    e = k.tile(boxed("acc", 32, 32, "f32"))
    k.op("tmatmul", [second, right2], e)
    k.op("tmatmul.acc", [e, third, right2], e)
    k.store(e, 3, (32, 32))
    k.run(a, b, d, o)
    np.testing.assert_array_equal(o, 2 * product(product(a, b, "f32"), d, "f32"))


def test_accumulator_to_vec_and_vec_to_l1_on_a5() -> None:
    a, b, o = integers((32, 32), "f16", -2, 3), integers((32, 32), "f16", -2, 3, 1), zeros((32, 32))
    k = Kernel("f16", "f16", "f32", kind=None, arch="a5")
    left, right = load_operands(k, 32, 32, 32, "f16")
    c, x, h = k.tile(boxed("acc", 32, 32, "f32")), k.tile(vec(32, 32)), k.tile(vec(32, 32, "f16"))
    k.op("tmatmul", [left, right], c)
    k.op("tmov", [c], x)
    k.op("tcvt", [x], h)
    back, again = k.tile(boxed("mat", 32, 32)), k.tile(boxed("left", 32, 32))
    k.op("tmov", [h], back)
    k.op("tmov", [back], again)
    k.op("tmatmul", [again, right], c)
    k.store(c, 2, (32, 32))
    k.run(a, b, o)
    np.testing.assert_array_equal(o, product(product(a, b, "f32"), b, "f32"))


def test_padding_of_k_with_zeros_on_both_operands() -> None:
    a, b, o = integers((16, 20), "f16"), integers((20, 16), "f16"), zeros((16, 16))
    k = Kernel("f16", "f16", "f32", kind="cube")
    operands: list[Name] = []
    for i, (loc, shape, valid) in enumerate((("left", (16, 32), "16x20"), ("right", (32, 16), "20x16"))):
        whole = k.tile(boxed("mat", *shape), addr=i * 4096)
        part = k.tile(boxed("mat", *shape, "f16", f"valid={valid}"), addr=i * 4096)
        k.op("texpands", [k.scalar(0, "f16")], whole)
        k.op("tload", [k.view(i, (16, 20) if i == 0 else (20, 16))], part)
        tile = k.tile(boxed(loc, *shape), addr=0)
        k.op("tmov", [whole], tile)
        operands.append(tile)
    c = k.tile(boxed("acc", 16, 16, "f32"), addr=0)
    k.op("tmatmul", operands, c)
    k.store(c, 2, (16, 16))
    k.run(a, b, o)
    np.testing.assert_array_equal(o, product(a, b, "f32"))


# --- the accumulator's pitch -----------------------------------------------------------------------------------------
def pitched(rows: int, *, compact: bool, arch: str = "a3", acc: str = "f32") -> tuple[Array, Array, Kernel]:
    """[rows, 48] of a 64-row accumulator, with the rows known at run time only; what it should be, and what it is."""
    dtype = "i8" if acc == "i32" else "f16"
    a, b, o = integers((rows, 32), dtype), integers((32, 64), dtype, seed=2), np.full((rows, 64), 99, DTYPES[acc])
    k = Kernel(dtype, dtype, acc, kind="cube", arch=arch, scalars="%m: i32")
    k.line("%rows = arith.index_cast %m : i32 to index")
    cols = {32: k.const(32), 64: k.const(64)}
    extra = "valid=?x?, compact=1"
    ml = k.tile(boxed("mat", 64, 32, dtype, "valid=?x?"), valid=("%rows", cols[32]))
    mr = k.load(1, (32, 64), boxed("mat", 32, 64, dtype))
    k.line(f"%w = pto.make_tensor_view %p0, shape = [%rows, {cols[32]}], strides = [{cols[32]}, {k.const(1)}]"
           f" : !pto.tensor_view<?x32x{dtype}>")  # fmt: skip
    k.line(f"%v = pto.partition_view %w, offsets = [{k.const(0)}, {k.const(0)}], sizes = [%rows, {cols[32]}]"
           f" : !pto.tensor_view<?x32x{dtype}> -> !pto.partition_tensor_view<?x32x{dtype}>")  # fmt: skip
    k.op("tload", [Name("%v", f"!pto.partition_tensor_view<?x32x{dtype}>")], ml)
    left = k.tile(boxed("left", 64, 32, dtype, extra), valid=("%rows", cols[32]))
    right = k.tile(boxed("right", 32, 64, dtype))
    k.op("tmov", [ml], left)
    k.op("tmov", [mr], right)
    c = k.tile(boxed("acc", 64, 64, acc, extra if compact else "valid=?x?"), valid=("%rows", cols[64]))
    k.op("tmatmul", [left, right], c)
    k.line(f"%wo = pto.make_tensor_view %p2, shape = [%rows, {cols[64]}], strides = [{cols[64]}, {k.const(1)}]"
           f" : !pto.tensor_view<?x64x{acc}>")  # fmt: skip
    k.line(f"%vo = pto.partition_view %wo, offsets = [{k.const(0)}, {k.const(0)}], sizes = [%rows, {cols[64]}]"
           f" : !pto.tensor_view<?x64x{acc}> -> !pto.partition_tensor_view<?x64x{acc}>")  # fmt: skip
    k.op("tstore", [c], Name("%vo", f"!pto.partition_tensor_view<?x64x{acc}>"))
    k.run(a, b, o, rows, legal=compact)
    return product(a, b, acc), o, k


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("arch", "acc"), [("a3", "f32"), ("a3", "i32"), ("a5", "f32"), ("a5", "i32")])
def test_a_compact_accumulator_is_exact_for_every_number_of_rows(rows: int, arch: str, acc: str) -> None:
    expected, found, _ = pitched(rows, compact=True, arch=arch, acc=acc)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("arch", "acc", "unit"), [("a3", "f32", 16), ("a3", "i32", 32), ("a5", "i32", 16)])
def test_without_compact_the_physical_pitch_reads_other_columns(rows: int, arch: str, acc: str, unit: int) -> None:
    """The cube wrote block (i, j) at j * pitch / 16 + i; the store reads it at j * 64 / 16 + i."""
    expected, found, kernel = pitched(rows, compact=False, arch=arch, acc=acc)
    pitch = up(rows, unit)
    np.testing.assert_array_equal(found[:, :16], expected[:, :16])
    if pitch == 64:
        np.testing.assert_array_equal(found, expected)
    else:
        for block in range(1, 4):
            row, held = (block * 4) % (pitch // 16) * 16, (block * 4) // (pitch // 16)
            here = found[: min(rows, 16), 16 * block : 16 * block + 16]
            if held < 4 and row + len(here) <= rows:
                there = expected[row : row + len(here), 16 * held : 16 * held + 16]
                np.testing.assert_array_equal(here, there)
            assert not np.array_equal(here, expected[: min(rows, 16), 16 * block : 16 * block + 16])
    assert "R15 acc pitch" in {finding.clause for finding in check(kernel.text())}


def test_an_operand_that_the_cube_would_misread_raises() -> None:
    k = Kernel("f16", "f16", kind="cube")
    ml, mr = k.load(0, (32, 64), boxed("mat", 32, 64)), k.load(1, (64, 32), boxed("mat", 64, 32))
    left, right = k.tile(boxed("left", 32, 64)), k.tile(boxed("right", 64, 32, "f16", "valid=64x16"))
    k.op("tmov", [ml], left)
    k.op("tmov", [mr], right)
    k.op("tmatmul", [left, right], k.tile(boxed("acc", 32, 32, "f32", "valid=32x16")))
    with pytest.raises(PTOError, match="compact=1"):
        k.run(integers((32, 64), "f16"), integers((64, 32), "f16"), legal=False)


@pytest.mark.parametrize("name", ["textract", "tinsert"])
def test_an_offset_that_cuts_a_box_raises(name: str) -> None:
    k = Kernel("f16", kind="cube")
    ml = k.load(0, (32, 64), boxed("mat", 32, 64))
    at = [Name(k.const(v), "index") for v in (0, 8)]
    if name == "textract":
        k.op(name, [ml, *at], k.tile(boxed("left", 32, 32)))
    else:
        k.op(name, [k.tile(boxed("acc", 32, 32, "f32")), *at], ml)
    with pytest.raises(PTOError, match="cuts a box"):
        k.run(integers((32, 64), "f16"), legal=False)


# --- where elements lie ----------------------------------------------------------------------------------------------
def place(text: str) -> Array:
    kind = parse_type(text)
    assert isinstance(kind, TileType)
    return offsets(Layout.of(kind), 0, 0, kind.rows, kind.cols)


@pytest.mark.parametrize(
    ("text", "row", "col", "offset"),
    [
        (vec(4, 16), 2, 3, 2 * 16 + 3),
        (vec(8, 1, "f32", "blayout=col_major"), 5, 0, 5),
        (boxed("mat", 32, 64), 17, 35, ((35 // 16) * 2 + 1) * 256 + 1 * 16 + 3),
        (boxed("mat", 32, 64, "i8"), 17, 35, (1 * 2 + 1) * 512 + 1 * 32 + 3),
        (boxed("zn", 32, 64), 17, 35, (1 * 4 + 2) * 256 + 3 * 16 + 1),
        (boxed("right", 64, 32, "i8"), 33, 17, (1 * 2 + 1) * 512 + 1 * 32 + 1),
        (boxed("acc", 32, 48, "f32"), 17, 33, (2 * 2 + 1) * 256 + 1 * 16 + 1),
    ],
)
def test_the_place_of_an_element(text: str, row: int, col: int, offset: int) -> None:
    where = place(text)
    assert where[row, col] == offset
    assert sorted(where.ravel().tolist()) == list(range(where.size))


def test_an_nz_view_is_read_as_rows_and_columns() -> None:
    a, o = integers((32, 64), "f16"), zeros((32, 64), "f16")
    packed = np.ascontiguousarray(a.reshape(2, 16, 4, 16).transpose(2, 0, 1, 3))
    k = Kernel("f16", "f16", kind="cube")
    x = k.tile(boxed("mat", 32, 64))
    k.op("tload", [k.view(0, (1, 4, 2, 16, 16), layout="nz")], x)
    k.store(x, 1, (32, 64))
    k.run(packed, o)
    np.testing.assert_array_equal(o, a)


def test_fp8_matmul_on_a5() -> None:
    a, b, o = integers((32, 64), "f8E4M3FN"), integers((64, 32), "f8E5M2", seed=1), zeros((32, 32))
    k = Kernel("f8E4M3FN", "f8E5M2", "f32", kind="cube", arch="a5")
    ml, mr = k.load(0, (32, 64), boxed("mat", 32, 64, "f8E4M3FN")), k.load(1, (64, 32), boxed("mat", 64, 32, "f8E5M2"))
    left, right = k.tile(boxed("left", 32, 64, "f8E4M3FN")), k.tile(boxed("right", 64, 32, "f8E5M2"))
    k.op("tmov", [ml], left)
    k.op("tmov", [mr], right)
    c = k.tile(boxed("acc", 32, 32, "f32"))
    k.op("tmatmul", [left, right], c)
    k.store(c, 2, (32, 32))
    k.run(a, b, o)
    np.testing.assert_array_equal(o, product(a, b, "f32"))
