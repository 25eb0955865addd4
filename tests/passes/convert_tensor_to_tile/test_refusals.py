"""What the conversion refuses, at the guilty line."""

from __future__ import annotations

import pytest
from ir_builder import Builder, program
from tilewright.errors import ShapeError, UnsupportedError
from tilewright.ir.dtypes import INDEX
from tilewright.ir.function import Direction
from tilewright.ops.elementwise import Add
from tilewright.ops import Assemble
from tilewright.ops.shape import Reshape, Slice
from tilewright.passes.tensor.convert_tensor_to_tile import convert_tensor_to_tile
from tilewright.targets import load_target

TARGET = load_target("ascend910b")


def test_a_view_is_not_written_through() -> None:
    b = Builder()
    x, out = b.tensor("x", 4, 8), b.tensor("out", 8, 8, direction=Direction.INOUT)
    view = b.let("view", Reshape(out, (64,)))
    row = b.let("row", Reshape(x, (32,)))
    b.let("written", Assemble(view, row, (0,)))
    with pytest.raises(UnsupportedError, match="written through") as caught:
        convert_tensor_to_tile(program(b.returns()), TARGET)
    assert "view, a view of out" in str(caught.value)


def test_the_caller_must_know_the_size_of_a_result() -> None:
    b = Builder()
    n, x = b.scalar("n", INDEX), b.tensor("x", 64, 64)
    half = b.let("half", n // 2)
    part = b.let("part", Slice(x, (64, 64), (0, 0), (half, 64)))
    total = b.let("total", Add(part, part))
    with pytest.raises(ShapeError, match="worked out inside the section") as caught:
        convert_tensor_to_tile(program(b.returns(total)), TARGET)
    assert "half" in str(caught.value)


def test_tiles_of_two_types_do_not_flow_together() -> None:
    """Equal in meaning, but one lies in a larger tile than the other."""
    b = Builder()
    x, y = b.tensor("x", 8, 8), b.tensor("y", 16, 8)
    large = b.let("large", Slice(y, (16, 8), (0, 0), (8, 8)))
    (carried,) = b.loop(2, (x,), lambda i, c: (b.let("next", Add(large, large)),))
    total = b.let("total", Add(carried, carried))
    with pytest.raises(ShapeError, match="two types where paths join"):
        convert_tensor_to_tile(program(b.returns(total)), TARGET)
