"""The interpreter is hostile: what is undefined is found where it matters, and what leaves its array is an error."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from run.running import incore
from support import exact_ints, poison

from tilewright import parse
from tilewright.errors import (
    ArgumentError,
    OutOfBoundsError,
    TilewrightError,
    UndefinedReadError,
    ValidShapeError,
)
from tilewright.execute import interpret
from tilewright.execute.interpreter import Data, pad_constant
from tilewright.execute.interpreter import poison as undefined
from tilewright.ir.layout import Pad

A = "a: pl.Tensor[[8, 8], pl.FP32]"
OUT = "o: pl.Out[pl.Tensor[[8, 8], pl.FP32]]"


def run(parameters: str, body: str, *args: Any) -> tuple[Any, ...]:
    return interpret(parse(incore(parameters, body)), args)


def test_memory_that_nothing_wrote() -> None:
    assert np.isnan(undefined((2,), np.dtype(np.float32))).all()
    assert np.isnan(undefined((2,), np.dtype(ml_dtypes.bfloat16)).astype(np.float32)).all()
    assert (undefined((2,), np.dtype(np.int8)) == -128).all()
    assert (undefined((2,), np.dtype(np.int32)).view(np.uint32) == 0x80808080).all()
    assert undefined((2,), np.dtype(np.bool_)).all()


def test_pad_values() -> None:
    assert pad_constant(Pad.ZERO, np.dtype(np.float32)) == 0
    assert pad_constant(Pad.MAX, np.dtype(np.float32)) == np.inf
    assert pad_constant(Pad.MIN, np.dtype(np.int8)) == -128


def test_undefined_elements_may_be_moved_and_computed_on() -> None:
    """Only the valid part is stored, so what lies outside does not matter."""
    a, out = exact_ints((8, 8)), poison((8, 8))
    run(
        f"{A}, {OUT}",
        """
        x = pl.tile.load(a, [0, 0], [8, 8], valid_shape=[5, 3])
        y = pl.tile.set_validshape(x, 8, 8)
        z = pl.tile.add(y, y)
        w = pl.tile.set_validshape(z, 5, 3)
        o_1 = pl.tile.store(w, [0, 0], o)
        return o_1
        """,
        a, out,
    )  # fmt: skip
    np.testing.assert_array_equal(out[:5, :3], 2 * a[:5, :3])
    assert np.isnan(out[5:]).all() and np.isnan(out[:, 3:]).all()


@pytest.mark.parametrize(
    "body",
    [
        "y = pl.tile.set_validshape(x, 8, 8)\no_1 = pl.tile.store(y, [0, 0], o)",
        "y = pl.tile.set_validshape(x, 8, 8)\nz = pl.tile.row_sum(y)\nw = pl.tile.row_expand_add(y, z)\n"
        "v = pl.tile.set_validshape(w, 5, 3)\no_1 = pl.tile.store(v, [0, 0], o)",
        "y = pl.tile.set_validshape(x, 8, 8)\nz = pl.tile.matmul(y, y)\nv = pl.tile.set_validshape(z, 1, 1)\n"
        "o_1 = pl.tile.store(v, [0, 0], o)",
        "y = pl.tile.set_validshape(x, 8, 8)\ns = pl.tile.read(y, [7, 7])\nz = pl.tile.muls(x, s)\n"
        "o_1 = pl.tile.store(z, [0, 0], o)",
        "y = pl.tile.create([8, 8], pl.FP32)\no_1 = pl.tile.store(y, [0, 0], o)",
    ],
)
def test_an_undefined_element_that_matters(body: str) -> None:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    text = f"""
        x = pl.tile.load(a, [0, 0], [8, 8], valid_shape=[5, 3])
{lines}
        return o_1
        """
    with pytest.raises(UndefinedReadError):
        run(f"{A}, {OUT}", text, exact_ints((8, 8)), poison((8, 8)))


def test_reading_an_output_that_nothing_wrote() -> None:
    with pytest.raises(UndefinedReadError):
        run(
            f"{A}, {OUT}",
            """
            x = pl.tile.load(o, [0, 0], [8, 8])
            o_1 = pl.tile.store(x, [0, 0], o)
            return o_1
            """,
            exact_ints((8, 8)), poison((8, 8)),
        )  # fmt: skip


def test_a_column_reduction_of_what_is_partly_undefined_is_defined_where_it_is_whole() -> None:
    out = poison((1, 8))
    run(
        f"{A}, o: pl.Out[pl.Tensor[[1, 8], pl.FP32]]",
        """
        x = pl.tile.load(a, [0, 0], [8, 8], valid_shape=[8, 3])
        y = pl.tile.set_validshape(x, 8, 8)
        z = pl.tile.col_sum(y)
        w = pl.tile.set_validshape(z, 1, 3)
        o_1 = pl.tile.store(w, [0, 0], o)
        return o_1
        """,
        np.ones((8, 8), np.float32), out,
    )  # fmt: skip
    np.testing.assert_array_equal(out[0, :3], [8, 8, 8])


@pytest.mark.parametrize("start", [-1, 1, 8])
def test_an_access_outside(start: int) -> None:
    text = """
        x = pl.tile.load(a, [n, 0], [8, 8])
        o_1 = pl.tile.store(x, [0, 0], o)
        return o_1
        """
    with pytest.raises(OutOfBoundsError, match="outside 'a'") as caught:
        run(f"n: pl.Scalar[pl.INDEX], {A}, {OUT}", text, start, exact_ints((8, 8)), poison((8, 8)))
    assert caught.value.span is not None and caught.value.span.line == 7


def test_a_valid_shape_larger_than_its_tile() -> None:
    text = """
        x = pl.tile.load(a, [0, 0], [8, 8], valid_shape=[n, 8])
        o_1 = pl.tile.store(x, [0, 0], o)
        return o_1
        """
    with pytest.raises((ValidShapeError, OutOfBoundsError)):
        run(f"n: pl.Scalar[pl.INDEX], {A}, {OUT}", text, 9, exact_ints((8, 8)), poison((8, 8)))


def test_arguments() -> None:
    text = "x = pl.tile.load(a, [0, 0], [8, 8])\n        o_1 = pl.tile.store(x, [0, 0], o)\n        return o_1"
    program = parse(incore(f"{A}, {OUT}", "        " + text))
    good, out = exact_ints((8, 8)), poison((8, 8))
    for bad in ([good], [good[:7], out], [good.astype(np.float16), out], [good, out, 3]):
        with pytest.raises(ArgumentError):
            interpret(program, bad)
    (result,) = interpret(program, [good, out])
    assert result is out or np.shares_memory(result, out)
    np.testing.assert_array_equal(out, good)


def test_a_parallel_loop_runs_last_trip_first() -> None:
    """No order may matter, so another one than the obvious is taken."""
    seen: list[int] = []
    text = incore(
        f"{A}, {OUT}",
        """
        for i, (out,) in pl.parallel(0, 2, 1, init_values=(o,)):
            x = pl.tile.load(a, [i * 4, 0], [4, 8])
            out_1 = pl.tile.store(x, [i * 4, 0], out)
            r = pl.yield_(out_1)
        return r
        """,
    )
    a, out = exact_ints((8, 8)), poison((8, 8))

    def watch(value: Any, result: Any) -> None:
        if value.name == "x":
            assert isinstance(result, Data)
            seen.append(int(np.array_equal(result.array, a[4:])))

    interpret(parse(text), [a, out], observe=watch)
    assert seen == [1, 0]
    np.testing.assert_array_equal(out, a)


def test_calls_hand_tensors_on() -> None:
    text = """import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def twice(self, a: pl.Tensor[[8, 8], pl.FP32], o: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [8, 8])
        o_1 = pl.tile.store(pl.tile.add(x, x), [0, 0], o)
        return o_1

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[8, 8], pl.FP32], o: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        t = pl.tensor.create([8, 8], pl.FP32)
        t_1 = self.twice(a, t)
        o_1 = self.twice(t_1, o)
        return o_1
"""
    a, out = exact_ints((8, 8)), poison((8, 8))
    interpret(parse(text), [a, out])
    np.testing.assert_array_equal(out, 4 * a)


def test_scalars_round_to_their_dtype() -> None:
    text = incore(
        "s: pl.Scalar[pl.FP16], i: pl.Scalar[pl.INT8], o: pl.Out[pl.Tensor[[1, 2], pl.FP32]]",
        """
        t = s + s
        j = i + i
        z = pl.tile.full([1, 2], pl.FP32, pl.cast(t, pl.FP32))
        w = pl.tile.write(z, [0, 1], pl.cast(j, pl.FP32))
        o_1 = pl.tile.store(w, [0, 0], o)
        return o_1
        """,
    )
    out = poison((1, 2))
    interpret(parse(text), [1024.4, 100, out])
    np.testing.assert_array_equal(out, [[2048, -56]])


def test_errors_are_the_compiler_s_own() -> None:
    assert all(issubclass(e, TilewrightError) for e in (ArgumentError, OutOfBoundsError, UndefinedReadError))
