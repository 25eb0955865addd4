"""Every operation, dtype, level, whole and with a tail, against NumPy formulas written a second time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
import pytest
from op_cases import BEYOND, CASES, FULL, TAIL, Case, Draw, Sizes, base_name, choose, wide
from support import exact_ints, poison

from tilewright.execute.interpreter import Data, Interpreter
from tilewright.ir.dtypes import BF16, BOOL, FP16, DType
from tilewright.ir.function import Program
from tilewright.ir.op import Level, registry
from tilewright.ir.scalar import Value
from tilewright.ir.types import TensorType, TileType, TileView

MACHINE = Interpreter(Program((), ""))
EPSILON = {"FP32": 2.0**-23, "FP16": 2.0**-10, "BF16": 2.0**-7}


def walk() -> Iterator[Any]:
    for name, case in CASES.items():
        for level in case.levels:
            for dtype in case.dtypes:
                for size, label in ((FULL, "full"), (TAIL, "tail")):
                    yield pytest.param(case, level, dtype, size, id=f"{level.value}.{name}-{dtype}-{label}")


def operand_of(
    letters: str, dtype: DType, level: Level, sizes: Sizes, seed: int, draw: Draw | None = None
) -> tuple[Value, Data, Any]:
    """A value, its data with poison outside the valid part, and the valid part."""
    physical = tuple(sizes[letter][0] for letter in letters)
    valid = tuple(sizes[letter][1] for letter in letters)
    array = exact_ints(valid, np.dtype(dtype.numpy), seed) if draw is None else draw(valid, seed)
    array = array.astype(np.dtype(dtype.numpy))
    if level is Level.TENSOR:
        return Value(f"a{seed}", TensorType(valid, dtype)), Data(array, np.ones(valid, np.bool_)), array.copy()
    whole, defined = poison(physical, np.dtype(dtype.numpy)), np.zeros(physical, np.bool_)
    corner = tuple(slice(0, extent) for extent in valid)
    whole[corner], defined[corner] = array, True
    return Value(f"a{seed}", TileType(physical, dtype, None, TileView(valid))), Data(whole, defined), array.copy()


def limits(dtype: DType) -> tuple[int, int]:
    """The least and the greatest number; -1 wraps to the greatest one of those without a sign."""
    return (0, -1) if dtype.kind == "uint" else (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1)


def as_dtype(exact: Any, dtype: DType) -> Any:
    """An exact result rounded: narrow floats by way of FP32, infinite padding of integers to their limits."""
    exact = np.asarray(exact)
    if dtype is BOOL:
        return exact != 0
    if dtype in (FP16, BF16):
        return exact.astype(np.float32).astype(dtype.numpy)
    if dtype.is_integer and exact.dtype.kind == "i":
        low, high = limits(dtype)
        exact = choose(exact == BEYOND, high, choose(exact == -BEYOND, low, exact))
    return exact.astype(dtype.numpy)


def comparable(array: Any) -> Any:
    """Floats as float64; integers as they are, since that holds not all of 64 bits."""
    return array if array.dtype.kind in "iu" else array.astype(np.float64)


@pytest.mark.parametrize(("case", "level", "dtype", "sizes"), list(walk()))
def test_meaning(case: Case, level: Level, dtype: DType, sizes: Sizes) -> None:
    with np.errstate(all="ignore"):
        own = case.operand_dtypes or (None,) * len(case.operands)
        draws = case.draw or (None,) * len(case.operands)
        given = [
            operand_of(letters, kind or dtype, Level.TENSOR if i in case.ddr else level, sizes, i, draw)
            for i, (letters, kind, draw) in enumerate(zip(case.operands, own, draws, strict=True))
        ]
        op = case.build(level, dtype, sizes, *(value for value, _, _ in given))
        kind = op.infer()
        found = MACHINE.op(op, kind, {value: data for value, data, _ in given})
        formula = cast("Callable[..., Any]", case.formula)
        arrays = (sizes["M"][1], sizes["N"][1]) if case.sized_formula else [wide(valid) for _, _, valid in given]
        expected: Any = as_dtype(formula(*arrays), case.result(dtype))
    assert kind.dtype is case.result(dtype)
    if not isinstance(found, Data):
        assert found == expected
        return
    assert isinstance(kind, TensorType | TileType)
    valid = kind.valid if isinstance(kind, TileType) else kind.shape
    corner = tuple(slice(0, extent) for extent in valid if isinstance(extent, int))
    assert found.array.shape == kind.shape
    assert found.array.dtype == np.dtype(kind.dtype.numpy)
    assert found.defined[corner].all()
    result = found.array[corner]
    if not case.operands and not case.sized_formula:
        expected = expected + np.zeros_like(result)
    assert result.shape == expected.shape
    if case.tolerance:
        close = case.tolerance * EPSILON[case.result(dtype).name]
        np.testing.assert_allclose(result.astype(np.float64), expected.astype(np.float64), rtol=close, atol=close)
    else:
        np.testing.assert_array_equal(comparable(result), comparable(expected))


def test_every_operation_has_a_case() -> None:
    covered = {base_name(case) for case in CASES}
    assert covered == set(registry())


def test_every_dtype_that_an_operation_takes_is_tried() -> None:
    tried = {(base_name(name), dtype) for name, case in CASES.items() for dtype in case.dtypes}
    missing = [
        f"{name} {dtype}" for name, op in registry().items() for dtype in op.dtypes if (name, dtype) not in tried
    ]
    assert missing == []


def test_every_level_of_an_operation_is_tried() -> None:
    tried = {(base_name(name), level) for name, case in CASES.items() for level in case.levels}
    missing = [
        f"{level.value}.{name}" for name, op in registry().items() for level in op.levels if (name, level) not in tried
    ]
    assert missing == []
