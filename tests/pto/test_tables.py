"""The tables of the format, cell by cell: every pair of spaces, every element type, on both machines."""

from __future__ import annotations

import itertools

import pytest
from pto.kernels import Kernel, Name, boxed, column, vec

from tilewright.codegen.pto.check import check
from tilewright.codegen.pto.types import LOCATIONS

MOVES = {
    ("tmov", "a3"): "mat-left mat-right mat-bias mat-scaling vec-vec acc-mat acc-vec",
    ("tmov", "a5"): "mat-left mat-right mat-bias mat-scaling vec-vec acc-mat acc-vec vec-mat",
    ("textract", "a3"): "mat-left mat-right",
    ("textract", "a5"): "mat-left mat-right mat-scaling vec-mat vec-vec",
    ("tinsert", "a3"): "acc-mat",
    ("tinsert", "a5"): "acc-mat vec-mat vec-vec",
}


def tile_in(space: str, dtype: str = "f16") -> str:
    if space == "vec":
        return vec(32, 32, dtype)
    if space in ("bias", "scaling"):
        return f"!pto.tile_buf<{space}, 1x32x{dtype}>"
    return boxed(space, 32, 32, "f32" if space == "acc" else dtype)


@pytest.mark.parametrize("arch", ["a3", "a5"])
@pytest.mark.parametrize("op", ["tmov", "textract", "tinsert"])
@pytest.mark.parametrize(("source", "target"), list(itertools.product(LOCATIONS, LOCATIONS)))
def test_pairs_of_spaces(op: str, arch: str, source: str, target: str) -> None:
    k = Kernel(kind=None, arch=arch)
    a, b = k.tile(tile_in(source)), k.tile(tile_in(target))
    at = [Name(k.const(0), "index")] * 2 if op != "tmov" else []
    k.op(op, [a, *at], b)
    refused = f"§4 {op}" in {finding.clause for finding in check(k.text())}
    assert refused == (f"{source}-{target}" not in MOVES[op, arch].split())


@pytest.mark.parametrize("arch", ["a3", "a5"])
@pytest.mark.parametrize("space", LOCATIONS)
def test_spaces_of_load_store_and_fill(arch: str, space: str) -> None:
    k = Kernel("f16", kind=None, arch=arch)
    tile, view = k.tile(tile_in(space)), k.view(0, (32, 32))
    k.op("tload", [view], tile)
    k.op("tstore", [tile], view)
    k.op("texpands", [k.scalar(1, "f16")], tile)
    clauses = {finding.clause for finding in check(k.text())}
    assert ("§4 tload" in clauses) == (space not in ("vec", "mat"))
    assert ("§4 tstore" in clauses) == (space not in (("vec", "mat", "acc") if arch == "a3" else ("vec", "acc")))
    assert ("§4 texpands" in clauses) == (space not in ("vec", "mat"))


ALL = ("i8", "i16", "i32", "i64", "f16", "bf16", "f32")
WORDS = "i16 i32 f16 f32"
ELEMENT_TYPES: dict[str, tuple[str, str]] = {
    "tadd": (WORDS, f"{WORDS} i8 bf16"),
    "tsub tmax tmin": (WORDS, f"{WORDS} i8"),
    "tmul": (WORDS, WORDS),
    "tdiv": ("f16 f32", "f16 f32 i16 i32"),
    "tadds tsubs tmuls tmins": (WORDS, f"{WORDS} i8 bf16"),
    "tdivs tmaxs": (WORDS, f"{WORDS} i8"),
    "texp tlog tsqrt trsqrt trecip tabs": ("f16 f32", "f16 f32"),
    "tneg": (WORDS, WORDS),
    "trelu": ("i32 f16 f32", "i32 f16 f32"),
    "trowsum trowmax trowmin trowprod": (WORDS, WORDS),
    "trowexpandadd trowexpandsub trowexpandmul trowexpandmax": (WORDS, f"{WORDS} i8"),
    "trowexpanddiv": ("f16 f32", "f16 f32"),
}
CELLS = [
    (op, arch, dtype, dtype in legal.split())
    for ops, row in ELEMENT_TYPES.items()
    for op in ops.split()
    for arch, legal in zip(("a3", "a5"), row, strict=True)
    for dtype in ALL
]


@pytest.mark.parametrize(("op", "arch", "dtype", "legal"), CELLS)
def test_element_types(op: str, arch: str, dtype: str, legal: bool) -> None:
    k = Kernel(arch=arch)
    x, y, c = k.tile(vec(32, 32, dtype)), k.tile(vec(32, 32, dtype)), k.tile(column(32, dtype))
    k.op("texpands", [k.scalar(1, dtype)], x)
    k.op("texpands", [k.scalar(1, dtype)], c)
    if op.startswith("trowexpand"):
        k.op(op, [x, c], y)
    elif op.startswith("trow"):
        k.op(op, [x, y], c)
    elif op in ("tadd", "tsub", "tmul", "tdiv", "tmax", "tmin"):
        k.op(op, [x, x], y)
    elif op.endswith("s") and op not in ("tabs",):
        k.op(op, [x, k.scalar(1, dtype)], y)
    else:
        k.op(op, [x], y)
    assert (f"§5 {op} dtype" not in {finding.clause for finding in check(k.text())}) == legal


TRIPLES = {
    "a3": {("i32", "i8", "i8"), ("f32", "f16", "f16"), ("f32", "bf16", "bf16"), ("f32", "f32", "f32")},
}
TRIPLES["a5"] = TRIPLES["a3"] | {("f32", a, b) for a in ("f8E4M3FN", "f8E5M2") for b in ("f8E4M3FN", "f8E5M2")}


@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_element_types_of_matmul(arch: str) -> None:
    kinds = ("i8", "f16", "bf16", "f32", "f8E4M3FN", "f8E5M2")
    for acc, left, right in itertools.product(("i32", "f32"), kinds, kinds):
        k = Kernel(kind="cube", arch=arch)
        a, b = k.tile(boxed("left", 32, 32, left)), k.tile(boxed("right", 32, 32, right))
        k.op("tmatmul", [a, b], k.tile(boxed("acc", 32, 32, acc)))
        legal = "§5 tmatmul dtype" not in {finding.clause for finding in check(k.text())}
        assert legal == ((acc, left, right) in TRIPLES[arch]), (acc, left, right)


CASTS: dict[str, str] = {
    "f32": "f16 bf16 i16 i32 i64", "f16": "f32 i32 i16 i8", "bf16": "f32 i32", "i16": "f16 f32",
    "i32": "f32 i16 i64 f16", "i64": "f32 i32", "i8": "f16",
}  # fmt: skip


@pytest.mark.parametrize("source", ALL)
@pytest.mark.parametrize("target", ALL)
def test_pairs_of_conversion(source: str, target: str) -> None:
    k = Kernel()
    k.op("tcvt", [k.tile(vec(32, 32, source))], k.tile(vec(32, 32, target)))
    refused = "§6 tcvt pair" in {finding.clause for finding in check(k.text())}
    assert refused == (target not in CASTS[source].split())


CAPACITY = {
    "vec": (192, 248), "mat": (512, 512), "left": (64, 64), "right": (64, 64), "acc": (128, 256), "bias": (1, 4),
    "scaling": (2, 4),
}  # fmt: skip


@pytest.mark.parametrize("space", CAPACITY)
@pytest.mark.parametrize(("column_of_table", "arch"), [(0, "a3"), (1, "a5")])
def test_the_last_byte_of_each_space(space: str, arch: str, column_of_table: int) -> None:
    kind = tile_in(space)
    nbytes = {"vec": 2048, "acc": 4096, "bias": 64, "scaling": 64}.get(space, 2048)
    limit = CAPACITY[space][column_of_table] * 1024
    for addr, fits in ((limit - nbytes, True), (limit - nbytes + 512, False)):
        k = Kernel(kind=None, arch=arch)
        k.tile(kind, addr=addr)
        found = {finding.clause for finding in check(k.text())}
        assert (f"§7 {space} capacity {arch}" not in found) == fits
