"""Types are interned, canonical, and follow substitution."""

from __future__ import annotations

import pytest

from tilewright.errors import ValidShapeError
from tilewright.ir.dtypes import BF16, FP32, INDEX
from tilewright.ir.layout import COL_MAJOR, NZ, NZ_ACC, ROW_MAJOR, ZN, MemorySpace, implied_layout
from tilewright.ir.scalar import Value
from tilewright.ir.types import MemRef, ScalarType, TensorType, TileType, TileView

VEC, MAT, ACC = MemorySpace.VEC, MemorySpace.MAT, MemorySpace.ACC


def test_equal_types_are_one_object() -> None:
    assert TensorType((4, 8), FP32) is TensorType((4, 8), FP32)
    assert TileType((4, 8), FP32, VEC) is TileType((4, 8), FP32, VEC)
    assert TileType((4, 8), FP32, VEC) is not TileType((4, 8), BF16, VEC)


def test_a_view_that_repeats_what_is_implied_is_no_view() -> None:
    plain = TileType((16, 16), FP32, MAT)
    assert TileType((16, 16), FP32, MAT, TileView(valid_shape=(16, 16), layout=NZ)) is plain
    assert TileType((16, 16), FP32, MAT, TileView(layout=ZN)) is not plain


@pytest.mark.parametrize(
    ("space", "shape", "layout"),
    [
        (VEC, (16, 16), ROW_MAJOR),
        (VEC, (16, 1), COL_MAJOR),
        (VEC, (1, 1), ROW_MAJOR),
        (MAT, (16, 1), NZ),
        (ACC, (16, 16), NZ_ACC),
        (MemorySpace.RIGHT, (16, 16), ZN),
    ],
)
def test_implied_layout(space: MemorySpace, shape: tuple[int, ...], layout: object) -> None:
    assert implied_layout(space, shape) == layout
    assert TileType(shape, FP32, space).layout == layout


def test_a_new_space_drops_the_old_layout() -> None:
    odd = TileType((16, 16), FP32, MAT, TileView(layout=ZN))
    assert odd.with_(space=VEC).layout == ROW_MAJOR
    assert odd.with_(valid=(3, 16)).layout == ZN


def test_valid_shape_larger_than_the_tile_is_refused() -> None:
    with pytest.raises(ValidShapeError, match="larger than the tile"):
        TileType((16, 16), FP32, view=TileView(valid_shape=(17, 16)))


def test_substitution_reaches_valid_extents() -> None:
    rows = Value("rows", ScalarType(INDEX))
    tile = TileType((64, 64), FP32, VEC, TileView(valid_shape=(rows, 64)), MemRef("b"))
    assert tile.substitute(lambda _: 5).valid == (5, 64)
    assert tile.substitute(lambda _: 64).view.valid_shape is None
    assert list(tile.values()) == [rows]
