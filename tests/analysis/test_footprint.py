"""matmul R1: bytes of tiles."""

from __future__ import annotations

import pytest

from tilewright.analysis.footprint import footprint
from tilewright.errors import CapacityError, VerifyError
from tilewright.ir.dtypes import BF16, BOOL, FP16, FP32, INT4, INT8, INT32, DType
from tilewright.ir.layout import COL_MAJOR, ZN, MemorySpace
from tilewright.ir.types import TileType, TileView
from tilewright.targets import load_target

MAT, LEFT, RIGHT, ACC, VEC = (
    MemorySpace.MAT, MemorySpace.LEFT, MemorySpace.RIGHT, MemorySpace.ACC, MemorySpace.VEC,
)  # fmt: skip


@pytest.mark.parametrize(
    ("target", "shape", "dtype", "space", "nbytes"),
    [
        ("ascend910b", (16, 1152), INT32, ACC, 147_456),  # rows of an int32 accumulator come in 32s there
        ("ascend950", (16, 1152), INT32, ACC, 73_728),
        ("ascend910b", (272, 144), INT32, ACC, 288 * 144 * 4),
        ("ascend910b", (17, 17), FP32, ACC, 32 * 32 * 4),
        ("ascend910b", (17, 72), FP16, MAT, 32 * 80 * 2),
        ("ascend910b", (17, 72), FP16, LEFT, 32 * 80 * 2),
        ("ascend910b", (72, 17), FP16, RIGHT, 80 * 32 * 2),
        ("ascend910b", (17, 40), INT8, LEFT, 32 * 64),
        ("ascend910b", (40, 17), INT8, RIGHT, 64 * 32),
        ("ascend910b", (17, 9), FP32, VEC, 17 * 16 * 4),
        ("ascend910b", (17, 1), FP32, VEC, 24 * 4),  # a column vector
        ("ascend910b", (1, 17), BF16, VEC, 32 * 2),
        ("ascend910b", (3, 17, 9), FP32, VEC, 3 * 17 * 16 * 4),
        ("ascend910b", (17, 65), INT4, VEC, 17 * 128 // 2),
        ("x86_amx", (16, 32), BF16, LEFT, 1024),
        ("generic", (17, 9), FP32, VEC, 17 * 9 * 4),
    ],
)
def test_bytes(target: str, shape: tuple[int, ...], dtype: DType, space: MemorySpace, nbytes: int) -> None:
    assert footprint(TileType(shape, dtype, space), load_target(target)) == nbytes


@pytest.mark.parametrize(("cols", "nbytes"), [(1, 32), (8, 32), (256, 32), (257, 64), (512, 64), (513, 96)])
def test_masks_are_packed_on_ascend(cols: int, nbytes: int) -> None:
    mask = TileType((5, cols), BOOL, VEC)
    assert footprint(mask, load_target("ascend910b")) == 5 * nbytes
    assert footprint(mask, load_target("generic")) == 5 * cols


def test_a_layout_that_the_type_states_decides_the_box() -> None:
    target = load_target("ascend910b")
    assert footprint(TileType((17, 40), INT8, MAT), target) == 32 * 64
    assert footprint(TileType((17, 40), INT8, MAT, TileView(layout=ZN)), target) == 32 * 48
    assert footprint(TileType((17, 40), FP32, VEC, TileView(layout=COL_MAJOR)), target) == 24 * 40 * 4


def test_the_valid_shape_does_not_matter() -> None:
    kind = TileType((32, 32), FP32, VEC, TileView(valid_shape=(3, 3)))
    assert footprint(kind, load_target("ascend910b")) == 4096


def test_refusals() -> None:
    target = load_target("ascend910b")
    with pytest.raises(VerifyError, match="memory space"):
        footprint(TileType((16, 16), FP32), target)
    with pytest.raises(CapacityError, match="larger than any memory"):
        footprint(TileType((1 << 40, 1 << 40), FP32, VEC), target)
