"""The interpreter of loops: numbers, poison, bounds, vectors, threads, aliases, whole operations, calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tilewright.errors import ArgumentError, OutOfBoundsError, TilewrightError, UndefinedReadError, VerifyError
from tilewright.execute.loops import interpret_loops
from tilewright.ir.buffers import AddressOf, Broadcast, Extern, IfThenElse, Ramp, row_strides
from tilewright.ir.dtypes import FP32, INDEX, INT32
from tilewright.ir.loop_builder import LoopBuilder
from tilewright.ir.loop_level import LoopKind
from tilewright.ir.op import Level
from tilewright.ir.scalar import BinaryKind, Const, Scalar, Select, Value, binary, cast
from tilewright.ir.types import ScalarType, TileType
from tilewright.ops.elementwise import Add
from tilewright.ops.reduce import RowSum

Array = npt.NDArray[Any]


def less(lhs: Scalar, rhs: Scalar) -> Scalar:
    return binary(BinaryKind.LT, lhs, rhs)


def twice(value: Any) -> Any:
    return 2 * value


def numbers(*shape: int) -> Array:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) - 3


def test_a_nest_with_a_predicate_and_a_symbol() -> None:
    f = LoopBuilder()
    n = Value("n", ScalarType(INDEX))
    a, b, limit = f.buffer("A", (n, 4)), f.buffer("B", (n, 4)), f.scalar("limit")
    with f.loop("i", n) as i, f.loop("j", 0, 4, 2) as j, f.block("copy", where=less(i, limit)):
        f.store(b, (i, j), f.load(a, i, j) + f.load(a, i, j + 1))
    source, out = numbers(5, 4), np.zeros((5, 4), np.float32)
    interpret_loops(f.build(), [source, out, 3])
    expected = np.zeros((5, 4), np.float32)
    expected[:3, ::2] = source[:3, ::2] + source[:3, 1::2]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("use", ["parameter", "index", "condition", "bound", "local"])
def test_what_nothing_wrote_may_be_moved_and_not_used(use: str) -> None:
    f = LoopBuilder()
    b = f.buffer("B", (4,), INT32)
    t, u = f.alloc("t", (4,), INT32), f.alloc("u", (4,), INT32)
    f.store(u, (0,), f.load(t, 1) + f.load(t, 2))
    seen = f.load(u, 0)
    match use:
        case "parameter":
            f.store(b, (0,), seen)
        case "index":
            f.store(b, (cast(seen, INDEX),), 1)
        case "condition":
            with f.when(less(seen, 3)):
                f.store(b, (0,), 1)
        case "bound":
            with f.loop("i", cast(seen, INDEX)):
                f.store(b, (0,), 1)
        case _:
            interpret_loops(f.build(), [np.zeros(4, np.int32)])
            return
    with pytest.raises(UndefinedReadError, match=r"parameter 'B'|undefined element of u"):
        interpret_loops(f.build(), [np.zeros(4, np.int32)])


@pytest.mark.parametrize(("index", "at"), [((2, 0), 0), ((0, 3), 1), ((-1, 0), 0)])
def test_bounds_are_those_of_each_dimension(index: tuple[int, int], at: int) -> None:
    f = LoopBuilder()
    a, b = f.buffer("A", (2, 3)), f.buffer("B", (1,))
    f.store(b, (0,), f.load(a, *index))
    out = np.full(1, 7, np.float32)
    with pytest.raises(OutOfBoundsError, match=rf"0 <= index {at} <"):
        interpret_loops(f.build(), [numbers(2, 3), out])
    assert out[0] == 7


def test_if_then_else_takes_one_side_and_select_both() -> None:
    def program(choose: type[IfThenElse | Select]) -> LoopBuilder:
        f = LoopBuilder()
        a, b = f.buffer("A", (4,)), f.buffer("B", (4,))
        with f.loop("i", 4) as i:
            f.store(b, (i,), choose(less(0, i), f.load(a, i - 1), Const(9.0, FP32)))
        return f

    out = np.zeros(4, np.float32)
    interpret_loops(program(IfThenElse).build(), [numbers(4), out])
    np.testing.assert_array_equal(out, [9, -3, -2, -1])
    with pytest.raises(OutOfBoundsError, match="A"):
        interpret_loops(program(Select).build(), [numbers(4), out])


def test_vectors_lane_by_lane() -> None:
    f = LoopBuilder()
    a, b = f.buffer("A", (8,)), f.buffer("B", (8,))
    lanes = f.let("lanes", Ramp(6, -2, 4))
    f.store(b, (Ramp(0, 2, 4),), f.load(a, lanes) + Broadcast(Const(1.0, FP32), 4))
    f.store(b, (Ramp(1, 1, 3),), f.load(b, Ramp(0, 1, 3)))  # overlapping: all lanes are read first
    out = np.zeros(8, np.float32)
    interpret_loops(f.build(), [numbers(8), out])
    np.testing.assert_array_equal(out, [4, 4, 0, 2, 0, 0, -2, 0])


def test_threads_are_loops_and_a_nested_launch_is_the_same_thread() -> None:
    f = LoopBuilder()
    b = f.buffer("B", (3, 3))
    with f.launch("core", "c", 3) as c, f.launch("core", "d") as d:
        f.store(b, (c, d), 1.0)
    out = np.zeros((3, 3), np.float32)
    interpret_loops(f.build(), [out])
    np.testing.assert_array_equal(out, np.eye(3))
    f = LoopBuilder()
    with f.launch("core", "c"):
        pass
    with pytest.raises(VerifyError, match="how many threads 'core'"):
        interpret_loops(f.build(), [])


def test_a_parallel_loop_that_depends_on_order_is_seen() -> None:
    f = LoopBuilder()
    b = f.buffer("B", (1,), INT32)
    with f.loop("i", 4, kind=LoopKind.PARALLEL) as i:
        f.store(b, (0,), cast(i, INT32))
    out = np.zeros(1, np.int32)
    interpret_loops(f.build(), [out])
    assert out[0] == 0


def test_a_while_that_counts_in_a_cell() -> None:
    f = LoopBuilder()
    b, n = f.buffer("B", (4,), INT32), f.alloc("n", (1,), INT32)
    f.store(n, (0,), 0)
    with f.repeat(less(f.load(n, 0), 4)):
        f.store(b, (cast(f.load(n, 0), INDEX),), f.load(n, 0) + 1)
        f.store(n, (0,), f.load(n, 0) + 1)
    out = np.zeros(4, np.int32)
    interpret_loops(f.build(), [out])
    np.testing.assert_array_equal(out, [1, 2, 3, 4])


def test_matched_buffers_and_aliases_are_the_same_memory() -> None:
    f = LoopBuilder()
    a, b = f.buffer("A", (4, 4)), f.buffer("B", (4,), INT32)
    with f.block("inner") as own:
        m = own.match("m", f.region(a, (1, 2), (2, 2)))
        row = own.match("row", f.region(a, (3, 0), (1, 4)))
        f.store(m, (1, 1), 50.0)
        f.store(row, (0, 0), 60.0)
    bits = f.alias("bits", a, (4,), INT32, offset=12)
    f.store(b, (0,), f.load(bits, 0))
    source, out = numbers(4, 4), np.zeros(4, np.int32)
    interpret_loops(f.build(), [source, out])
    assert source[2, 3] == 50 and source[3, 0] == 60
    assert out[0] == np.float32(60).view(np.int32)


def test_an_alias_stays_in_its_memory() -> None:
    f = LoopBuilder()
    f.alias("over", f.alloc("t", (4,)), (4,), offset=1)
    with pytest.raises(OutOfBoundsError, match="'over' reaches outside"):
        interpret_loops(f.build(), [])


def test_aligned_strides_separate_rows() -> None:
    assert row_strides((16, 8, 3), ((1, 4, 1), (0, 8, 0))) == (40, 5, 1)
    f = LoopBuilder()
    b, t = f.buffer("B", (2, 3)), f.alloc("t", (2, 3), dim_align=((0, 8, 0),))
    flat = f.alias("flat", t, (11,))
    with f.loop("i", 2) as i, f.loop("j", 3) as j:
        f.store(t, (i, j), 1.0)
        f.store(b, (i, j), f.load(flat, i * 8 + j))
    out = np.zeros((2, 3), np.float32)
    interpret_loops(f.build(), [out])
    assert (out == 1).all()


def test_an_operation_whole() -> None:
    f = LoopBuilder()
    a, b, rows = f.buffer("A", (4, 8)), f.buffer("B", (4, 8)), f.buffer("R", (4, 1))
    x, y = (Value(name, TileType((2, 4), FP32)) for name in "xy")
    top, other = f.region(a, (0, 0), (2, 4)), f.region(a, (1, 2), (2, 4))
    f.op(Add(x, y, level=Level.TILE), [(x, other), (y, top)], f.region(b, (2, 4), (2, 4)))
    f.op(RowSum(x, level=Level.TILE), [(x, top)], f.region(rows, (1, 0), (2, 1)))
    source, out, sums = numbers(4, 8), np.zeros((4, 8), np.float32), np.zeros((4, 1), np.float32)
    interpret_loops(f.build(), [source, out, sums])
    np.testing.assert_array_equal(out[2:, 4:], source[1:3, 2:6] + source[:2, :4])
    np.testing.assert_array_equal(sums[1:3, 0], source[:2, :4].sum(1))
    assert (out[:2] == 0).all()


def test_functions_outside_get_checked_pointers() -> None:
    f = LoopBuilder()
    b, t = f.buffer("B", (4,)), f.alloc("t", (4,))
    f.evaluate(Extern("fill", (AddressOf(t, 1, 2), 2), FP32))
    f.store(b, (0,), f.load(t, 2) + Extern("twice", (f.load(t, 1),), FP32, pure=True))

    def fill(pointer: Any, count: int) -> None:
        for position in range(count):
            pointer[position] = 5.0 + position

    out = np.zeros(4, np.float32)
    interpret_loops(f.build(), [out], {"fill": fill, "twice": twice})
    assert out[0] == 6 + 10

    def too_far(pointer: Any, count: int) -> None:
        pointer[count] = 0.0

    def unwritten(pointer: Any, _: int) -> None:
        pointer[0] = pointer[1]

    for name, wrong in (("outside", too_far), ("never written", unwritten)):
        with pytest.raises(TilewrightError, match=name):
            interpret_loops(f.build(), [out], {"fill": wrong, "twice": twice})
    with pytest.raises(ArgumentError, match="no function 'fill'"):
        interpret_loops(f.build(), [out])


def test_arguments_must_match() -> None:
    f = LoopBuilder()
    f.buffer("A", (4,))
    for wrong in (np.zeros(5, np.float32), np.zeros(4, np.float64), 3):
        with pytest.raises(ArgumentError, match="'A' does not match"):
            interpret_loops(f.build(), [wrong])
    with pytest.raises(ArgumentError, match="takes 1 arguments"):
        interpret_loops(f.build(), [])


def test_division_by_zero_is_an_error() -> None:
    f = LoopBuilder()
    a, n = f.buffer("A", (4,)), f.scalar("n")
    f.store(a, (binary(BinaryKind.MOD, 3, n),), 1.0)
    with pytest.raises(OutOfBoundsError, match="divided by 0"):
        interpret_loops(f.build(), [numbers(4), 0])
