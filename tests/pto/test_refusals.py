"""What the emulator makes of wrong texts: poison that shows in the result, or an error with the line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pto.kernels import Array, Kernel, column, integers, vec, zeros

from tilewright.codegen.pto.emulate import launch
from tilewright.errors import PTOError


def test_memory_that_nothing_wrote_is_nan_and_no_plausible_integer() -> None:
    for dtype in ("f32", "f16", "bf16", "i32"):
        o = zeros((2, 16), dtype)
        k = Kernel(dtype)
        k.store(k.tile(vec(2, 16, dtype)), 0, (2, 16))
        k.run(o, legal=False)
        assert np.isnan(o.astype(np.float32)).all() if dtype != "i32" else (o < -1000).all()


def test_a_scratch_tile_over_live_bytes_shows() -> None:
    a, o = integers((8, 16)), zeros((8, 1))
    k = Kernel("f32", "f32")
    x, tmp, c = k.load(0, (8, 16), vec(8, 16), addr=0), k.tile(vec(8, 16), addr=0), k.tile(column(8), addr=4096)
    k.op("trowsum", [x, tmp], c)
    k.store(c, 1, (8, 1))
    k.run(a, o, legal=False)
    assert np.isnan(o).all()


@pytest.mark.parametrize(("message", "rows", "start"), [("leaves its view", 4, 2), ("leaves the memory", 9, 0)])
def test_an_access_outside_memory_raises(message: str, rows: int, start: int) -> None:
    k = Kernel("f32")
    k.op("tload", [k.view(0, (rows, 8), at=(start, 0), sizes=(rows, 8))], k.tile(vec(rows, 8)))
    with pytest.raises(PTOError, match=message):
        k.run(zeros((8, 8)), legal=False)


def test_a_view_of_another_shape_than_the_tile_raises() -> None:
    k = Kernel("f32")
    k.op("tload", [k.view(0, (4, 16))], k.tile(vec(4, 8)))
    with pytest.raises(PTOError, match="valid shape"):
        k.run(zeros((4, 16)), legal=False)


def test_a_tile_outside_its_space_raises() -> None:
    k = Kernel("f32")
    k.tile(vec(16, 64), addr=192 * 1024 - 32)
    with pytest.raises(PTOError, match="outside vec"):
        k.run(zeros((1,)), legal=False)


def test_a_destination_over_a_source_raises_unless_elementwise() -> None:
    k = Kernel("f32")
    x, y = k.load(0, (4, 8), vec(4, 8), addr=0), k.tile(vec(4, 8), addr=32)
    k.op("tadd", [x, x], y)
    with pytest.raises(PTOError, match="still reads"):
        k.run(zeros((4, 8)), legal=False)


def test_a_full_size_mask_raises() -> None:
    k = Kernel("f32")
    x, m = k.load(0, (4, 32), vec(4, 32)), k.tile(vec(4, 32, "i8"))
    k.op("tcmp", [x, x], m, "cmpMode = #pto<cmp eq>")
    with pytest.raises(PTOError, match="mask"):
        k.run(zeros((4, 32)), legal=False)


def test_the_error_shows_the_line() -> None:
    k = Kernel("f32")
    k.op("tload", [k.view(0, (9, 8))], k.tile(vec(9, 8)))
    with pytest.raises(PTOError) as caught:
        k.run(zeros((8, 8)), legal=False)
    assert caught.value.span is not None
    assert "pto.tload" in str(caught.value) and "^" in str(caught.value)


@pytest.mark.parametrize("argument", [np.zeros((4, 8), np.float64), np.zeros((8, 4), np.float32).T, 3])
def test_an_argument_of_another_kind_raises(argument: Array | int) -> None:
    k = Kernel("f32")
    k.load(0, (4, 8), vec(4, 8))
    with pytest.raises(PTOError, match="takes another"):
        k.run(argument)


def test_an_index_is_32_bits() -> None:
    k = Kernel("f32")
    k.line("%big = arith.constant 65536 : index")
    k.line("%bigger = arith.muli %big, %big : index")
    with pytest.raises(PTOError, match="32 bits"):
        k.run(zeros((1,)))


MANIFESTS: list[dict[str, Any]] = [
    {},
    {"kernels": [{"file": "missing.pto", "arguments": []}]},
    {"kernels": [{"file": "one.pto", "arguments": ["nobody"]}]},
    {"kernels": [{"file": "one.pto", "arguments": ["a"], "blocks": "many"}]},
    {"kernels": 3},
]


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_a_manifest_of_another_form_raises(manifest: dict[str, Any]) -> None:
    with pytest.raises(PTOError, match="manifest"):
        launch(manifest, {"one.pto": Kernel("f32").text()}, {"a": zeros((1,))})


def test_an_empty_reduction_raises() -> None:
    k = Kernel("f32")
    x, tmp = k.tile(vec(8, 8, "f32", "valid=8x0")), k.tile(vec(8, 8))
    k.op("trowmax", [x, tmp], k.tile(column(8)))
    with pytest.raises(PTOError, match="nothing to reduce"):
        k.run(zeros((1,)), legal=False)


def test_a_layout_that_is_not_modelled_raises() -> None:
    k = Kernel("f32")
    k.tile(vec(8, 8, "f32", "compact=2"))
    with pytest.raises(PTOError, match="not modelled"):
        k.run(zeros((1,)))


def test_a_wrong_number_of_operands_raises() -> None:
    k = Kernel("f32")
    x = k.tile(vec(8, 8))
    k.op("tadd", [x], x)
    with pytest.raises(PTOError, match="number of operands"):
        k.run(zeros((1,)), legal=False)
