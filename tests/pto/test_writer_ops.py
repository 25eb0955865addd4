"""Each operation, from a kernel to text, on both machines: legal, and the interpreter's numbers, tails included."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from pto.writing import MACHINES, Array, placed, same
from support import TAILS

import tilewright.language as pl
from tilewright.codegen.pto.writer import emit_pto
from tilewright.errors import UnsupportedError
from tilewright.targets import load_target

BF16 = ml_dtypes.bfloat16
CORE = pl.Level.CORE_GROUP


def integers(*shape: int, dtype: Any = np.float32, low: int = -4, high: int = 5) -> Array:
    return np.random.default_rng(sum(shape)).integers(low, high, shape).astype(dtype)


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    return np.zeros(shape, dtype)


@pl.jit
def arithmetic(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        o[:] = pl.maximum(a + b, a * b) - pl.minimum(a, b) * 2.0 + pl.neg(pl.abs(a)) / 2.0
    return o


@pl.jit
def scaled(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        o[:] = a * a + a
    return o


@pl.jit
def chosen(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        o[:] = pl.sel(pl.cmp(a, b, cmp_type=4), a, b)
    return o


@pl.jit
def chosen_scalar(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        o[:] = pl.sel(pl.cmp(a, 1.0, cmp_type=2), b, 7.0)
    return o


@pl.jit
def there_and_back(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        o[:] = pl.cast(pl.cast(a, pl.FP16) * 3.0, pl.FP32)
    return o


@pl.jit
def down(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        o[:] = pl.cast(a * 0.5, pl.INT32, mode="floor")
    return o


@pl.jit
def nearest(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        o[:] = pl.cast(a * 0.5, pl.INT32)
    return o


@pl.jit
def rows(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        o[:] = pl.row_sum(a) + pl.row_max(a) - pl.row_min(a)
    return o


@pl.jit
def columns(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        o[:] = pl.col_sum(a) + pl.col_max(a) - pl.col_min(a)
    return o


@pl.jit
def spread(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        o[:] = pl.row_expand(a, pl.row_max(a)) + pl.col_expand(a, pl.col_sum(a))
    return o


@pl.jit
def met(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        top = pl.row_max(a)
        side = pl.col_max(a)
        o[:] = pl.col_expand_mul(pl.row_expand_sub(a, top), side) + pl.row_expand_add(a, top)
    return o


@pytest.mark.parametrize("machine", MACHINES)
class TestElementwise:
    @pytest.mark.parametrize("size", TAILS)
    def test_tails(self, size: int, machine: str) -> None:
        a, b = integers(size, 33), integers(size, 33, high=9)
        same(arithmetic, [a, b, zeros(size, 33)], machine)
        same(arithmetic, [a.T.copy(), b.T.copy(), zeros(33, size)], machine)

    @pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16], ids=["f32", "f16", "bf16"])
    def test_element_types(self, dtype: Any, machine: str) -> None:
        a = integers(17, 40, dtype=dtype)
        same(scaled, [a, zeros(17, 40, dtype=dtype)], machine)

    @pytest.mark.parametrize("size", [1, 8, 17, 65, 300])
    @pytest.mark.parametrize("kernel", [chosen, chosen_scalar], ids=["sel", "sels"])
    def test_masks_are_packed(self, kernel: Any, size: int, machine: str) -> None:
        module = same(kernel, [integers(5, size), integers(5, size, low=-3), zeros(5, size)], machine)
        (text,) = module.texts.values()
        taken = (size + 7) // 8
        assert f"x{32 * ((taken + 31) // 32)}xi8" in text

    def test_casts(self, machine: str) -> None:
        a = integers(17, 33, low=-9, high=10)
        same(there_and_back, [a, zeros(17, 33)], machine)
        same(down, [a, zeros(17, 33, dtype=np.int32)], machine)
        same(nearest, [a, zeros(17, 33, dtype=np.int32)], machine)

    @pytest.mark.parametrize("size", [1, 15, 17, 64, 200])
    def test_reductions_and_vectors(self, size: int, machine: str) -> None:
        same(rows, [integers(size, 33), zeros(size, 1)], machine)
        same(columns, [integers(33, size), zeros(1, size)], machine)
        same(spread, [integers(size, 17), zeros(size, 17)], machine)
        same(met, [integers(17, size), zeros(17, size)], machine)


@pl.jit
def slices(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    for _ in pl.parallel(0, 1, 1):
        t = pl.load(a, [0, 0], [32, 64])
        s = pl.slice(t, [16, 64], [8, 0])
        c = pl.slice(t, [16, 32], [8, 32])
        o = pl.store(s * 2.0, [0, 0], o)
        o = pl.store(c + 1.0, [0, 64], o)
    return o


@pl.jit
def slices_in_a_loop(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    for _ in pl.parallel(0, 1, 1):
        x = pl.load(a, [0, 0], [64, 64])
        for j in pl.range(4):
            o = pl.store(pl.slice(x, [16, 64], [j * 16, 0]) * 2.0, [48 - j * 16, 0], o)
    return o


@pl.jit
def parts_of_operands(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    for _ in pl.parallel(0, 1, 1):
        x = pl.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
        y = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
        product = pl.matmul(pl.slice(x, [32, 32], [16, 32]), pl.slice(y, [32, 32], [32, 0]))
        o = pl.store(product, [0, 0], o)
    return o


@pl.jit
def assembled(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    for _ in pl.parallel(0, 1, 1):
        t = pl.load(a, [0, 0], [32, 64])
        u = pl.load(a, [0, 0], [8, 64])
        w = pl.load(a, [0, 0], [8, 32])
        t = pl.assemble(t, u * 3.0, [16, 0])
        t = pl.assemble(t, w * 5.0, [24, 32])
        o = pl.store(t, [0, 0], o)
    return o


@pl.jit
def single_elements(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    for _ in pl.parallel(0, 1, 1):
        t = pl.load(a, [0, 0], [16, 64])
        x = pl.read(t, [3, 5])
        t = pl.write(t, [2, 7], x + 1.0)
        y = pl.read(a, [1, 1])
        o = pl.store(t * y, [0, 0], o)
    return o


@pl.jit
def padded(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    for _ in pl.parallel(0, 1, 1):
        t = pl.load(a, [0, 0], [16, 64], valid_shape=[10, 50])
        o = pl.store(pl.minimum(pl.fillpad(t, pl.PadValue.max), 9.0), [0, 0], o)
    return o


@pl.jit
def padded_load(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    for _ in pl.parallel(0, 1, 1):
        x = pl.load(a, [0, 0], [16, 64], valid_shape=[10, 40], pad_value=pl.PadValue.zero)
        o = pl.store(pl.set_validshape(x, 16, 64) + 1.0, [0, 0], o)
    return o


@pl.jit
def clamped(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, a.shape[0], 16):
        o = pl.store(pl.load(a, [i, 0], [16, 80], clamp=True) + 1.0, [i, 0], o)
    return o


@pl.jit
def turned(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    for _ in pl.parallel(0, 1, 1):
        o = pl.store(pl.transpose(pl.load(a, [0, 0], [16, 32]), 0, 1), [0, 0], o)
    return o


@pl.jit
def one_column(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    for _ in pl.parallel(0, 1, 1):
        x = pl.load(a, [0, 0], [16, 64])
        o = pl.store(pl.row_expand_mul(x, pl.load(a, [0, 3], [16, 1])), [0, 0], o)
    return o


@pl.jit
def three_dimensions(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, a.shape[0], 1):
        o = pl.store(pl.load(a, [i, 0, 0], [1, 16, 64]) + 1.0, [i, 0, 0], o)
    return o


@pl.jit
def five_dimensions(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, a.shape[0], 1):
        for j in pl.range(a.shape[2]):
            t = pl.load(a, [i, 1, j, 3, 0], [1, 1, 1, 5, 24])
            o = pl.store(t + 1.0, [i, 0, j, 0, 8], o)
    return o


@pl.jit
def counted(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, a.shape[0], 16):
        acc = pl.load(a, [i, 0], [16, 64])
        s = 1.0
        for j in pl.range(3):
            if j % 2 == 0:
                s = s + 2.0
            else:
                s = s * 3.0
            acc = acc + s
        o = pl.store(acc * s, [i, 0], o)
    return o


@pl.jit
def changed_in_one_arm(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, a.shape[0], 16):
        acc = pl.load(a, [i, 0], [16, 64])
        for j in pl.range(3):
            if j % 2 == 0:
                acc = acc + 1.0
            else:
                acc = acc * 2.0
        o = pl.store(acc, [i, 0], o)
    return o


@pl.jit
def filled(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    for _ in pl.parallel(0, 1, 1):
        o = pl.store(pl.tile.full([16, 64], pl.FP32, 3.0) + pl.load(a, [0, 0], [16, 64]), [0, 0], o)
    return o


@pl.jit
def joined(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    """Operands of which different parts are valid: the result has what all have."""
    for i in pl.parallel(0, a.shape[0], 16):
        rows = pl.min(16, a.shape[0] - i)
        x = pl.load(a, [i, 0], [16, 64], valid_shape=[rows, 64])
        whole = pl.tile.full([16, 64], pl.FP32, 2.0)
        some = pl.tile.full([16, 64], pl.FP32, 3.0)
        y = pl.maximum(x * whole, pl.set_validshape(some, rows, 50))
        z = pl.sel(pl.cmp(whole, y, cmp_type=2), y, pl.row_expand_add(whole, pl.row_max(x)))
        o = pl.store(pl.col_expand_sub(z, pl.col_max(whole)), [i, 0], o)
    return o


VIEWS: dict[str, tuple[Any, list[Array]]] = {
    "slices": (slices, [integers(32, 64), zeros(16, 96)]),
    "slices in a loop": (slices_in_a_loop, [integers(64, 64), zeros(64, 64)]),
    "parts of operands": (
        parts_of_operands,
        [integers(64, 64, dtype=np.float16), integers(64, 32, dtype=np.float16), zeros(32, 32)],
    ),
    "assembled": (assembled, [integers(32, 64), zeros(32, 64)]),
    "single elements": (single_elements, [integers(16, 64), zeros(16, 64)]),
    "padded": (padded, [integers(16, 64), zeros(16, 64)]),
    "padded load": (padded_load, [integers(16, 64), zeros(16, 64)]),
    "clamped": (clamped, [integers(70, 65), zeros(70, 65)]),
    "turned": (turned, [integers(16, 32), zeros(32, 16)]),
    "one column": (one_column, [integers(16, 64), zeros(16, 64)]),
    "three dimensions": (three_dimensions, [integers(5, 16, 64), zeros(5, 16, 64)]),
    "five dimensions": (five_dimensions, [integers(2, 3, 2, 9, 24), zeros(2, 1, 2, 5, 40)]),
    "counted": (counted, [integers(64, 64), zeros(64, 64)]),
    "changed in one arm": (changed_in_one_arm, [integers(64, 64), zeros(64, 64)]),
    "joined": (joined, [integers(40, 64), zeros(40, 50)]),
    "filled": (filled, [integers(16, 64), zeros(16, 64)]),
}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("options", [{}, {"sync": "explicit"}, {"level": 2}, {"dialect": "newer"}], ids=str)
@pytest.mark.parametrize("name", VIEWS)
def test_views_and_moves(name: str, options: dict[str, Any], machine: str) -> None:
    kernel, args = VIEWS[name]
    same(kernel, list(args), machine, **options)


def test_a_part_of_columns_is_spelled_by_dialect() -> None:
    kernel, args = VIEWS["slices"]
    for dialect, word in (("current", "pto.subset"), ("newer", "pto.subview")):
        (text,) = same(kernel, list(args), "ascend910b", dialect=dialect).texts.values()
        assert word in text


def test_a_slice_of_rows_is_an_allocation_further_on() -> None:
    (text,) = same(slices_in_a_loop, VIEWS["slices in a loop"][1], "ascend910b").texts.values()
    assert "pto.subset" not in text
    assert "arith.index_cast" in text


def test_masks_do_not_leave_the_chip() -> None:
    @pl.jit
    def mask(a: pl.Tensor, o: pl.Out[pl.Tensor]):
        for _ in pl.parallel(0, 1, 1):
            o = pl.store(pl.cmp(pl.load(a, [0, 0], [16, 64]), 1.0), [0, 0], o)
        return o

    program = placed(mask, [integers(16, 64), zeros(16, 64, dtype=np.bool_)], "ascend910b")
    with pytest.raises(UnsupportedError, match="one bit for each element"):
        emit_pto(program, load_target("ascend910b"))
