"""Products, their operands' layouts and pitches, chains over both cores: exact in every column, tails included."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from pto.writing import MACHINES, Array, same
from support import TAILS

import tilewright.language as pl

BF16 = ml_dtypes.bfloat16
CORE = pl.Level.CORE_GROUP


def integers(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(sum(shape)).integers(-3, 4, shape).astype(dtype)


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    return np.zeros(shape, dtype)


@pl.jit
def product(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        o[:] = pl.matmul(a, b)
    return o


@pl.jit
def product_f32(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        o[:] = pl.matmul(a, b, out_dtype=pl.FP32)
    return o


@pl.jit
def right_turned(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        o[:] = pl.matmul(a, b, b_trans=True, out_dtype=pl.FP32)
    return o


@pl.jit
def left_turned(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        o[:] = pl.matmul(a, b, a_trans=True, out_dtype=pl.FP32)
    return o


@pl.jit
def right_turned_i8(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        o[:] = pl.matmul(a, b, b_trans=True)
    return o


@pl.jit
def left_turned_i8(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        o[:] = pl.matmul(a, b, a_trans=True)
    return o


@pl.jit
def biased(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        o[:] = pl.matmul_bias(a, b, c, out_dtype=pl.FP32)
    return o


@pl.jit
def put_together(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, o: pl.Out[pl.Tensor]):
    """Two products fill the halves of a tile in L1, which the third product reads."""
    for _ in pl.parallel(0, 1, 1):
        y = pl.load(b, [0, 0], [32, 64])
        t = pl.tile.create([64, 64], pl.FP32, target_memory=pl.Mem.Mat)
        t = pl.assemble(t, pl.matmul(pl.load(a, [0, 0], [32, 32]), y), [0, 0])
        t = pl.assemble(t, pl.matmul(pl.load(a, [32, 0], [32, 32]), y), [32, 0])
        o = pl.store(pl.matmul(t, pl.load(c, [0, 0], [64, 16])), [0, 0], o)
    return o


@pl.jit
def two_layers(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        o[:] = pl.relu(a @ b) @ c
    return o


@pl.jit
def chain(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        o[:] = a @ b @ c
    return o


@pl.jit
def row_blocks(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    """The last block has as many rows as are left: known at run time only."""
    for i in pl.parallel(0, a.shape[0], 64):
        rows = pl.min(64, a.shape[0] - i)
        x = pl.load(a, [i, 0], [64, 64], valid_shape=[rows, 64])
        o = pl.store(pl.matmul(x, pl.load(b, [0, 0], [64, 48])), [i, 0], o)
    return o


@pl.jit
def summed(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, a.shape[0], 32):
        acc = pl.tile.full([32, 64], pl.FP32, 0.0)
        for k in pl.range(0, a.shape[1], 32):
            acc = pl.matmul_acc(acc, pl.load(a, [i, k], [32, 32]), pl.load(b, [k, 0], [32, 64]))
        o = pl.store(acc, [i, 0], o)
    return o


@pl.jit
def summed_atomically(a: pl.Tensor, o: pl.InOut[pl.Tensor]):
    for i in pl.parallel(0, a.shape[0], 16):
        o = pl.store(pl.load(a, [i, 0], [16, 64]), [0, 0], o, atomic=1)
    return o


@pl.jit
def through_memory(a: pl.Tensor, b: pl.Tensor, t: pl.Out[pl.Tensor], o: pl.Out[pl.Tensor]):
    """What the vector core stored is loaded by the cube core, trip by trip."""
    with pl.at(level=CORE):
        for i in pl.range(0, 64, 32):
            t = pl.store(pl.load(a, [i, 0], [32, 64]) + 1.0, [i, 0], t)
            x = pl.load(t, [i, 0], [32, 64], target_memory=pl.Mem.Mat)
            o = pl.store(pl.matmul(x, pl.load(b, [0, 0], [64, 32])), [i, 0], o)
    return t, o


@pytest.mark.parametrize("machine", MACHINES)
class TestProducts:
    @pytest.mark.parametrize("size", TAILS)
    def test_tails_of_every_extent(self, size: int, machine: str) -> None:
        a, b = integers(size, 40, dtype=np.float16), integers(40, 33, dtype=np.float16)
        same(product, [a, b, zeros(size, 33, dtype=np.float16)], machine)
        same(product_f32, [a.T.copy(), integers(size, 33, dtype=np.float16), zeros(40, 33)], machine)
        same(product_f32, [b.T.copy(), integers(40, size, dtype=np.float16), zeros(33, size)], machine)

    @pytest.mark.parametrize(
        ("dtype", "made"), [(np.float32, np.float32), (BF16, BF16), (np.int8, np.int32)], ids=["f32", "bf16", "i8"]
    )
    @pytest.mark.parametrize("size", [1, 17, 64, 65])
    def test_element_types(self, size: int, dtype: Any, made: Any, machine: str) -> None:
        a, b = integers(size, 72, dtype=dtype), integers(72, 33, dtype=dtype)
        if dtype is BF16:
            same(product_f32, [a, b, zeros(size, 33)], machine)
        same(product, [a, b, zeros(size, 33, dtype=made)], machine)

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8], ids=["f16", "f32", "i8"])
    @pytest.mark.parametrize("size", [1, 16, 17, 65])
    def test_turned_operands(self, size: int, dtype: Any, machine: str) -> None:
        a, b = integers(size, 72, dtype=dtype), integers(33, 72, dtype=dtype)
        if dtype is np.int8:
            made = zeros(size, 33, dtype=np.int32)
            same(right_turned_i8, [a, b, made], machine)
            same(left_turned_i8, [a.T.copy(), b.T.copy(), made], machine)
            return
        same(right_turned, [a, b, zeros(size, 33)], machine)
        same(left_turned, [a.T.copy(), b.T.copy(), zeros(size, 33)], machine)

    @pytest.mark.parametrize("rows", [1, 15, 16, 17, 63, 64, 65, 200])
    @pytest.mark.parametrize("options", [{}, {"sync": "explicit"}, {"level": 2}], ids=str)
    def test_rows_known_at_run_time(self, rows: int, options: dict[str, Any], machine: str) -> None:
        """R15: the pitch with which the cube wrote is the one that the store reads."""
        args = [integers(rows, 64, dtype=np.float16), integers(64, 48, dtype=np.float16), zeros(rows, 48)]
        module = same(row_blocks, args, machine, **options)
        (text,) = module.texts.values()
        assert "compact=1" in text

    @pytest.mark.parametrize("options", [{}, {"sync": "explicit"}, {"level": 2}], ids=str)
    def test_an_accumulator_that_starts_as_zeros(self, options: dict[str, Any], machine: str) -> None:
        args = [integers(64, 96, dtype=np.float16), integers(96, 64, dtype=np.float16), zeros(64, 64)]
        (text,) = same(summed, args, machine, **options).texts.values()
        assert "pto.tmatmul.acc" in text

    @pytest.mark.parametrize("columns", [1, 16, 33, 64])
    def test_bias(self, columns: int, machine: str) -> None:
        a, b = integers(17, 72, dtype=np.float16), integers(72, columns, dtype=np.float16)
        (text,) = same(biased, [a, b, integers(1, columns), zeros(17, columns)], machine).texts.values()
        assert "pto.tmatmul.bias" in text

    def test_atomic_stores(self, machine: str) -> None:
        (text,) = same(summed_atomically, [integers(64, 64), integers(16, 64)], machine).texts.values()
        assert "atomic_add" in text


LARGE: dict[str, tuple[Any, tuple[int, int], tuple[int, int], Any]] = {
    "int8 in K blocks": (product, (16, 1024), (1024, 1152), np.int8),
    "grid of f32": (product_f32, (320, 64), (64, 320), np.float32),
    "grid of bf16": (product_f32, (320, 64), (64, 320), BF16),
    "K stays whole": (product_f32, (16, 128), (128, 512), BF16),
    "K tail 72": (product_f32, (64, 200), (200, 128), np.float16),
    "K 100": (product_f32, (64, 100), (100, 64), np.float16),
    "32 K blocks": (right_turned, (16, 16384), (32, 16384), np.float16),
    "every extent a tail": (product_f32, (500, 300), (300, 700), np.float16),
}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("options", [{}, {"sync": "explicit"}, {"level": 2}], ids=str)
@pytest.mark.parametrize("name", LARGE)
def test_products_that_are_cut(name: str, options: dict[str, Any], machine: str) -> None:
    kernel, left, right, dtype = LARGE[name]
    made = (left[0], right[0] if kernel is right_turned else right[1])
    out = zeros(*made, dtype=np.int32 if dtype is np.int8 else np.float32)
    same(kernel, [integers(*left, dtype=dtype), integers(*right, dtype=dtype), out], machine, **options)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("options", [{}, {"sync": "explicit"}, {"level": 2}], ids=str)
class TestBothCores:
    @pytest.mark.parametrize("size", [1, 16, 17, 65])
    @pytest.mark.parametrize("inner", [32, 33])
    def test_layers(self, size: int, inner: int, options: dict[str, Any], machine: str) -> None:
        args = [integers(size, 72), integers(72, inner), integers(inner, 17), zeros(size, 17)]
        same(two_layers, args, machine, **options)

    @pytest.mark.parametrize("size", [1, 17, 65])
    def test_chain(self, size: int, options: dict[str, Any], machine: str) -> None:
        shapes = ((size, 40), (40, 24), (24, 33))
        args = [*(integers(*shape, dtype=np.float16) for shape in shapes), zeros(size, 33, dtype=np.float16)]
        same(chain, args, machine, **options)

    def test_memory_that_both_cores_use(self, options: dict[str, Any], machine: str) -> None:
        same(through_memory, [integers(64, 64), integers(64, 32), zeros(64, 64), zeros(64, 32)], machine, **options)


@pytest.mark.parametrize("options", [{}, {"sync": "explicit"}, {"level": 2}], ids=str)
def test_products_put_together_in_l1(options: dict[str, Any]) -> None:
    """The 910B has no f32 in L1 that comes from an accumulator."""
    args = [integers(64, 32), integers(32, 64), integers(64, 16), zeros(64, 16)]
    (text,) = same(put_together, args, "ascend950", **options).texts.values()
    assert "pto.tinsert" in text


def test_the_950_joins_both_cores_in_one_function() -> None:
    args = [integers(17, 64), integers(64, 32), integers(32, 17), zeros(17, 17)]
    module = same(two_layers, args, "ascend950")
    (text,) = module.texts.values()
    assert text.count("pto.section.") == 2
    assert text.count("pto.sync.set") == text.count("pto.sync.wait") > 0
    assert [kernel["core"] for kernel in module.manifest["kernels"]] == ["mixed"]


def test_the_910b_joins_both_cores_in_one_function_that_meet_in_ddr() -> None:
    args = [integers(17, 64), integers(64, 32), integers(32, 17), zeros(17, 17)]
    module = same(two_layers, args, "ascend910b")
    (text,) = module.texts.values()
    assert [kernel["core"] for kernel in module.manifest["kernels"]] == ["mixed"]
    assert module.manifest["workspaces"] and text.count("pto.section.") == 2
    assert text.count("pto.sync.set") == text.count("pto.sync.wait") > 0
    assert "%ffts: memref<256xi64>" in text and "pto.set_ffts %ffts : memref<256xi64>" in text
