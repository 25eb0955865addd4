"""The comparison of two programs by running them sees a difference, and only a difference."""

from __future__ import annotations

import numpy as np
import pytest
from meaning import MeaningError, check_same_meaning, draw_arguments, first_difference

from tilewright.ir.dtypes import FP32, INDEX
from tilewright.ir.function import Direction, Function, Param, Program
from tilewright.ir.nodes import Return
from tilewright.ir.scalar import BinaryKind, Scalar, Value, binary
from tilewright.ir.types import ScalarType, TensorType


def program_of(n: Value, rows: Scalar, result: Scalar) -> Program:
    """Takes `n`, a tensor of `rows` x 4 and one to write; returns `result`."""
    params = (
        Param(n),
        Param(Value("x", TensorType((rows, 4), FP32))),
        Param(Value("y", TensorType((rows, 4), FP32)), Direction.OUT),
    )
    return Program((Function("f", params, (Return(values=(result,)),)),), "f")


@pytest.fixture
def n() -> Value:
    return Value("n", ScalarType(INDEX))


def test_arguments_follow_shapes_with_symbols_in_expressions(n: Value) -> None:
    twice = binary(BinaryKind.MUL, n, 2)
    size, x, y = draw_arguments(program_of(n, twice, n), {"n": 5})
    assert (size, x.shape, y.shape) == (5, (10, 4), (10, 4))
    assert not np.isnan(x).any() and np.isnan(y).all()


def test_equal_results_are_equal_and_others_are_not(n: Value) -> None:
    same, other = binary(BinaryKind.ADD, n, 1), binary(BinaryKind.ADD, n, 2)
    check_same_meaning(program_of(n, n, same), program_of(n, n, binary(BinaryKind.ADD, n, 1)))
    with pytest.raises(MeaningError, match=r"output 0 differs.*18 against 19"):
        check_same_meaning(program_of(n, n, same), program_of(n, n, other))


def test_a_difference_is_located() -> None:
    left = np.zeros((2, 3), np.float32)
    right = left.copy()
    assert first_difference(left, right) is None
    right[1, 2] = np.nan
    assert first_difference(left, right) == "1 of 6 elements, first at [1, 2]: 0.0 against nan"
    left[1, 2] = np.nan
    assert first_difference(left, right) is None
    assert first_difference(left, right.astype(np.float64)) is not None
