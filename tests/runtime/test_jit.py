"""Kernels called with arrays: outputs in place or fresh, any strides, wrong arguments refused with a way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import TAILS, Array, exact_ints, poisoned, surroundings_intact

import tilewright.language as pl
from tilewright.errors import ArgumentError, TilewrightError, UnknownOpError
from tilewright.runtime.jit import JitFunction

FACTOR = 2.0


@pl.jit
def combine(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = a * FACTOR + b


@pl.jit
def combined(a: pl.Tensor, b: pl.Tensor):
    with pl.at(level=pl.Level.CORE_GROUP):
        c = a * FACTOR + b
    return c


@pl.jit
def both(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        total = a + b
        out[:] = a - b
    return total, out


@pl.jit
def rows(a: pl.Tensor, count: int, scale: float, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(count):
            out[i : i + 1, :] = a[i : i + 1, :] * scale
    return out


@pl.jit
def blocked(a: pl.Tensor, block: int, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, 64, block):
        out[i : i + block, :] = pl.exp(a[i : i + block, :] * 0.0)


@pl.jit
def typed(a: pl.Tensor[[8, 8], pl.FP32], k: pl.Scalar[pl.INT8], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = a + pl.cast(k, pl.FP32)


@pl.jit
def accumulate(a: pl.Tensor, total: pl.InOut[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        total[:] = total + a


Run = Callable[..., Any]


@pytest.fixture(params=["reference", "native"])
def run(request: pytest.FixtureRequest) -> Run:
    """Calls a kernel: in the interpreter, or natively on this CPU."""

    def call(kernel: JitFunction, *args: Any, **named: Any) -> Any:
        return kernel.reference(*args, **named) if request.param == "reference" else kernel(*args, **named)

    return call


@pytest.mark.parametrize("rows_", TAILS)
@pytest.mark.parametrize("columns", [1, 17, 64])
def test_outputs_are_written_in_place(run: Run, rows_: int, columns: int) -> None:
    a, b = poisoned((rows_, columns), seed=1), poisoned((rows_, columns), seed=2)
    out = poisoned((rows_, columns), seed=3)
    assert run(combine, a, b, out) is None
    np.testing.assert_array_equal(out, 2 * a + b)
    assert surroundings_intact(out)


def test_results_are_returned_fresh(run: Run) -> None:
    a, b = exact_ints((17, 65), seed=1), exact_ints((17, 65), seed=2)
    c = run(combined, a, b)
    assert type(c) is np.ndarray
    np.testing.assert_array_equal(c, 2 * a + b)
    assert not np.shares_memory(c, a)


def test_an_output_that_is_returned_is_the_array_that_was_passed(run: Run) -> None:
    a, b, out = exact_ints((8, 8), seed=1), exact_ints((8, 8), seed=2), np.zeros((8, 8), np.float32)
    total, returned = run(both, a, b, out)
    assert returned is out
    np.testing.assert_array_equal(total, a + b)
    np.testing.assert_array_equal(out, a - b)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_element_types(run: Run, dtype: Any) -> None:
    a, b = exact_ints((16, 17), dtype, seed=1), exact_ints((16, 17), dtype, seed=2)
    c = run(combined, a, b)
    assert c.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(c, (2 * a.astype(np.float32) + b.astype(np.float32)).astype(dtype))


def views() -> list[Array]:
    base = exact_ints((12, 40), seed=4)
    raw = np.zeros(4 * 48 + 1, np.uint8)
    misaligned = raw[1:].view(np.float32).reshape(6, 8)
    misaligned[...] = exact_ints((6, 8), seed=5)
    return [
        base[:6, :8],
        base[::2, ::5],
        base[:8, :6].T,
        base[5::-1, 8:16],
        np.broadcast_to(base[0, :8], (6, 8)),
        np.broadcast_to(base[:6, :1], (6, 8)),
        misaligned,
    ]


@pytest.mark.parametrize("a", views(), ids=lambda view: str(view.strides))
def test_strides_of_every_kind(run: Run, a: Array) -> None:
    b = exact_ints((6, 8), seed=2)
    np.testing.assert_array_equal(run(combined, a, b), 2 * a + b)
    if a.flags.writeable:
        before = a.copy()
        other = exact_ints((6, 8), seed=7)
        run(combine, b, other, a)
        np.testing.assert_array_equal(a, 2 * b + other)
        a[...] = before


def test_numbers_are_given_at_run_time(run: Run) -> None:
    a, out = exact_ints((8, 16), seed=1), np.zeros((8, 16), np.float32)
    for count, scale in ((3, 2.0), (8, -1.0), (0, 4.0)):
        out[...] = 0
        run(rows, a, count, scale, out)
        np.testing.assert_array_equal(out[:count], a[:count] * scale)
        assert not out[count:].any()
    program = rows.program(a, 3, 2.0, out)
    assert "count: pl.Scalar[pl.INDEX], scale: pl.Scalar[pl.FP32]" in str(program)


def test_a_number_that_the_source_needs_becomes_a_constant(run: Run) -> None:
    a, out = exact_ints((64, 8), seed=1), np.zeros((64, 8), np.float32)
    for block in (16, 32):
        out[...] = 0
        run(blocked, a, block, out)
        assert (out == 1).all()


def test_outside_values_belong_to_the_kernel(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = exact_ints((8, 8), seed=1), exact_ints((8, 8), seed=2)
    for factor in (2.0, -3.0, 2.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        np.testing.assert_array_equal(run(combined, a, b), factor * a + b)


def test_arguments_by_name(run: Run) -> None:
    a, b, out = exact_ints((8, 8), seed=1), exact_ints((8, 8), seed=2), np.zeros((8, 8), np.float32)
    run(combine, out=out, b=b, a=a)
    np.testing.assert_array_equal(out, 2 * a + b)


def test_an_output_with_a_full_type_may_be_left_out(run: Run) -> None:
    a = exact_ints((8, 8), seed=1)
    np.testing.assert_array_equal(run(typed, a, 3), a + 3)


def test_what_is_read_and_written_keeps_what_it_held(run: Run) -> None:
    a, total = exact_ints((8, 8), seed=1), exact_ints((8, 8), seed=2)
    expected = total + a
    run(accumulate, a, total)
    np.testing.assert_array_equal(total, expected)


def array(*shape: int, dtype: Any = np.float32) -> Array:
    return np.zeros(shape, dtype)


def locked(*shape: int) -> Array:
    made = array(*shape)
    made.flags.writeable = False
    return made


WRONG: list[tuple[JitFunction, Any, str, str | None]] = [
    (combine, (array(8, 8),), "combine needs a value for 'b'", None),
    (combine, [array(8, 8)] * 4, "combine takes 3 arguments", "pass a, b, out"),
    (combine, (array(8, 8), 3, array(8, 8)), "'b' is not an array", "numpy.asarray"),
    (combine, (array(8, 8), array(8, 8), locked(8, 8)), "'out' is read-only", None),
    (combine, (array(8, 8), array(8, 8), np.broadcast_to(array(1), (8, 8))), "'out' is read-only", None),
    (combine, (array(8, 8, dtype=np.float64), array(8, 8), array(8, 8)), "'a' has elements", "astype"),
    (combine, (array(0, 8), array(0, 8), array(0, 8)), "'a' has no elements", None),
    (combine, (array(8, 8, dtype=np.complex64), array(8, 8), array(8, 8)), "'a' has elements", None),
    (rows, (array(8, 8), array(8, 8), 2.0, array(8, 8)), "'count' is an array", "item"),
    (rows, (array(8, 8), object, 2.0, array(8, 8)), "count", None),
    (rows, (array(8, 8), {}, 2.0, array(8, 8)), "'count' is nothing that a kernel takes", None),
    (typed, (array(8, 8), 300), "'k' is no number of its parameter's dtype", None),
    (typed, (array(8, 8), 2.5), "'k' is no number of its parameter's dtype", None),
    (typed, (array(8, 9), 2), "a", None),
    (typed, (array(8, 8, dtype=np.int32), 2), "a", None),
]


@pytest.mark.parametrize(("kernel", "args", "message", "way_out"), WRONG)
def test_arguments_that_do_not_fit(run: Run, kernel: JitFunction, args: Any, message: str, way_out: str | None) -> None:
    with pytest.raises(TilewrightError, match=message) as raised:
        run(kernel, *args)
    if way_out is not None:
        assert way_out in (raised.value.help or "")


def test_names_of_arguments_that_do_not_fit(run: Run) -> None:
    a = array(8, 8)
    with pytest.raises(ArgumentError, match="no parameter 'c'") as raised:
        run(combine, a, a, c=a)
    assert "a, b, out" in (raised.value.help or "")
    with pytest.raises(ArgumentError, match="'a' twice"):
        run(combine, a, a=a)


def test_an_output_may_not_share_memory_with_another_argument(run: Run) -> None:
    a, b = exact_ints((8, 8), seed=1), exact_ints((8, 8), seed=2)
    with pytest.raises(ArgumentError, match="output 'out' shares memory with argument 'a'") as raised:
        run(combine, a, b, a)
    assert raised.value.required == "parameters do not alias"
    with pytest.raises(ArgumentError, match="shares memory with argument 'b'"):
        run(combine, a[:4], b[2:6], b[:4])
    run(combine, a[:4], b[4:], b[:4])
    run(combined, a, a)


def test_a_wrong_kernel_is_refused_at_its_line(run: Run) -> None:
    @pl.jit
    def wrong(a: pl.Tensor):
        return pl.exq(a)

    with pytest.raises(UnknownOpError, match=r"return pl\.exq\(a\)"):
        run(wrong, array(8, 8))


def test_a_kernel_shows_what_it_is() -> None:
    assert repr(combine) == "<kernel combine>"
    assert combine.__name__ == "combine"


@pl.program
class Doubled:
    """Twice the input."""

    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        x = pl.load(a, [0, 0], [16, 16])
        out = pl.store(pl.add(x, x), [0, 0], out)
        return out


def test_a_class_is_a_program() -> None:
    assert Doubled.program.entry == "main"
    assert "pl.tile.add(x, x)" in str(Doubled)
    assert repr(Doubled) == "<program Doubled>"
    assert Doubled.__doc__ == "Twice the input."
    assert pl.parse(str(Doubled)) == Doubled.program


@pl.jit.incore
def shifted(a: pl.Tensor, by: float, out: pl.Out[pl.Tensor]):
    tile = pl.load(a, [0, 0], [8, 8])
    out = pl.store(pl.add(tile, by), [0, 0], out)
    return out


@pl.jit.inline
def twice(x: pl.Tensor):
    return x + x


@pl.jit
def entry(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    out = shifted(twice(a), 3.0, out)
    return out


def test_kernels_call_kernels(run: Run) -> None:
    a, out = exact_ints((8, 8), seed=1), np.zeros((8, 8), np.float32)
    assert run(entry, a, out) is out
    np.testing.assert_array_equal(out, 2 * a + 3)


def test_a_device_kernel_may_be_called_alone(run: Run) -> None:
    a, out = exact_ints((8, 8), seed=1), np.zeros((8, 8), np.float32)
    run(shifted, a, 5.0, out)
    np.testing.assert_array_equal(out, a + 5)


def test_what_a_kernel_becomes_can_be_seen() -> None:
    a, out = exact_ints((8, 8), seed=1), np.zeros((8, 8), np.float32)
    assert "pl.tensor.muls(a, 2.0)" in str(combine.lower(a, a.copy(), out, after="frontend"))
    placed = combine.lower(a, a.copy(), out, target="ascend910b")
    assert "pl.MemRef(" in str(placed)
    assert combine.compile(a, a.copy(), out, target="ascend910b").program == placed
    assert "Vec" in str(combine.explain(a, a.copy(), out, target="ascend910b"))
    assert not out.any()


def test_a_kernel_of_a_declared_target_is_lowered_for_it() -> None:
    @pl.jit(target="ascend950", cache=False)
    def kernel(a: pl.Tensor):
        return a + a

    a = exact_ints((8, 8), seed=1)
    assert kernel.lower(a) == kernel.lower(a, target="ascend950")
    np.testing.assert_array_equal(kernel(a), a + a)
