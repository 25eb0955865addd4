"""Layouts and the multiples that physical shapes must have."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.errors import TargetError
from tilewright.ir.dtypes import BF16, FP16, FP32, INT8, INT32, DType
from tilewright.ir.layout import COL_MAJOR, NZ, NZ_ACC, ROW_MAJOR, ZN, BLayout, Layout, MemorySpace, SLayout
from tilewright.targets import load_target

S = MemorySpace


@pytest.mark.parametrize("name", ["ascend910b", "ascend950"])
@pytest.mark.parametrize(
    ("space", "layout", "dtype", "box"),
    [
        (S.VEC, ROW_MAJOR, FP32, (1, 8)),
        (S.VEC, ROW_MAJOR, FP16, (1, 16)),
        (S.VEC, ROW_MAJOR, INT8, (1, 32)),
        (S.VEC, COL_MAJOR, FP32, (8, 1)),
        (S.VEC, COL_MAJOR, BF16, (16, 1)),
        (S.BIAS, ROW_MAJOR, FP32, (1, 8)),
        (S.MAT, NZ, FP16, (16, 16)),
        (S.MAT, NZ, FP32, (16, 8)),
        (S.MAT, NZ, INT8, (16, 32)),
        (S.MAT, ZN, INT8, (32, 16)),
        (S.LEFT, NZ, BF16, (16, 16)),
        (S.RIGHT, ZN, INT8, (32, 16)),
        (S.RIGHT, ZN, FP32, (8, 16)),
        (S.ACC, NZ_ACC, FP32, (16, 16)),
    ],
)
def test_boxes_of_ascend(name: str, space: MemorySpace, layout: Layout, dtype: DType, box: tuple[int, int]) -> None:
    assert load_target(name).box(space, layout, dtype) == box


@pytest.mark.parametrize(("name", "rows"), [("ascend910b", 32), ("ascend950", 16)])
def test_rows_of_an_int32_accumulator(name: str, rows: int) -> None:
    assert load_target(name).box(S.ACC, NZ_ACC, INT32) == (rows, 16)
    assert load_target(name).physical_shape(S.ACC, (16, 1152), INT32) == (rows, 1152)


def test_scales_have_boxes_of_their_own() -> None:
    target = load_target("ascend950")
    left = Layout(BLayout.ROW_MAJOR, SLayout.ROW_MAJOR, 32)
    right = Layout(BLayout.COL_MAJOR, SLayout.COL_MAJOR, 32)
    assert target.box(S.LEFT_SCALE, left, INT8) == (16, 2)
    assert target.box(S.RIGHT_SCALE, right, INT8) == (2, 16)


@pytest.mark.parametrize("extent", [1, 15, 16, 17, 63, 64, 65, 200])
def test_physical_shapes_of_tails(extent: int) -> None:
    target = load_target("ascend910b")
    up16, up8 = -(-extent // 16) * 16, -(-extent // 8) * 8
    assert target.physical_shape(S.MAT, (extent, extent), FP16) == (up16, up16)
    assert target.physical_shape(S.MAT, (2, extent, extent), FP16) == (2, up16, up16)
    assert target.physical_shape(S.VEC, (3, extent), FP32) == ((3, up8) if extent > 1 else (8, 1))
    assert target.physical_shape(S.VEC, (extent,), FP32) == (up8,)
    assert target.physical_shape(S.VEC, (), FP32) == ()


def test_implied_layouts_of_ascend() -> None:
    target = load_target("ascend910b")
    layouts = [target.layout(space, (64, 64)) for space in (S.MAT, S.LEFT, S.RIGHT, S.ACC, S.VEC)]
    assert layouts == [NZ, NZ, ZN, NZ_ACC, ROW_MAJOR]
    assert target.layout(S.VEC, (64, 1)) is COL_MAJOR


@pytest.mark.parametrize(
    ("name", "space", "dtype", "box"),
    [
        ("x86_amx", S.LEFT, BF16, (16, 32)),
        ("x86_amx", S.LEFT, INT8, (16, 64)),
        ("x86_amx", S.RIGHT, BF16, (32, 16)),
        ("x86_amx", S.RIGHT, INT8, (64, 16)),
        ("x86_amx", S.ACC, FP32, (16, 16)),
        ("x86_amx", S.VEC, FP32, (1, 1)),
        ("x86_avx512", S.LEFT, FP32, (1, 1)),
        ("x86_avx512", S.RIGHT, FP32, (1, 16)),
        ("x86_avx512", S.ACC, FP32, (1, 16)),
        ("x86_avx2", S.ACC, FP32, (1, 8)),
        ("generic", S.ACC, FP32, (1, 4)),
        ("generic", S.MAT, FP32, (1, 1)),
        ("generic", S.VEC, BF16, (1, 1)),
    ],
)
def test_boxes_of_cpus(name: str, space: MemorySpace, dtype: DType, box: tuple[int, int]) -> None:
    target = load_target(name)
    assert target.box(space, target.layout(space, (64, 64)), dtype) == box


def test_an_amx_box_is_one_tile_register() -> None:
    target = load_target("x86_amx")
    for space, dtype in ((S.LEFT, BF16), (S.RIGHT, BF16), (S.ACC, FP32), (S.LEFT, INT8), (S.ACC, INT32)):
        rows, cols = target.box(space, target.layout(space, (64, 64)), dtype)
        assert rows * cols * dtype.nbytes == target.memory(space).register_bytes


def test_the_scratchpad_is_row_major_in_boxes_of_its_own() -> None:
    target = load_target(Path(__file__).parents[2] / "examples/targets/scratchpad.toml")
    for space in (S.MAT, S.LEFT, S.RIGHT, S.VEC, S.ACC):
        assert target.layout(space, (16, 16)) is ROW_MAJOR
        assert target.physical_shape(space, (5, 9), FP32) == (8, 16)
    assert target.physical_shape(S.VEC, (5, 1), FP32) == (8, 1)
    assert target.physical_shape(S.VEC, (1, 9), FP32) == (1, 16)
    assert target.same_memory(S.LEFT, S.VEC)
    assert not target.same_memory(S.LEFT, S.ACC)
    assert target.bandwidth(S.MAT, S.LEFT) == float("inf")


def test_a_role_that_no_memory_plays() -> None:
    with pytest.raises(TargetError) as caught:
        load_target("ascend910b").memory(S.LEFT_SCALE)
    assert caught.value.message == "ascend910b has no memory for LeftScale"
    assert caught.value.help is not None


def test_other_capacities_make_another_target() -> None:
    target = load_target("ascend910b")
    tight = target.with_capacity(Vec=4096, Acc=2048)
    assert (tight.capacity(S.VEC), tight.capacity(S.ACC), tight.capacity(S.MAT)) == (4096, 2048, 512 * 1024)
    assert target.capacity(S.VEC) == 184 * 1024
    assert tight.fingerprint != target.fingerprint
    assert target.capacity(S.DDR) == 1 << 62
