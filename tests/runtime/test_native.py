"""The way into native code and back: slots, workspaces, fresh results, numbers, guards, and the short way.

The backend here is the reference interpreter behind the backend's interface, working on the raw addresses it is given.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from support import Array, exact_ints, poisoned, surroundings_intact

import tilewright.language as pl
from tilewright.errors import ArgumentError, CodegenError, OutOfBoundsError, TilewrightError
from tilewright.execute.interpreter import interpret
from tilewright.ir import dtypes
from tilewright.ir.function import Program
from tilewright.ir.scalar import Value
from tilewright.ir.storage import output_positions
from tilewright.ir.types import TensorType
from tilewright.runtime.bind import MISS
from tilewright.runtime.jit import JitFunction
from tilewright.runtime.memory import memory_view
from tilewright.runtime.native import native_executable


@dataclass
class Entry:
    """A parameter or result, as a signature describes it."""

    kind: str
    dtype: str
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] | None = None
    index: int | None = None


@dataclass
class Signature:
    params: list[Entry]
    results: list[Entry]
    implicit: int
    workspace_bytes: int = 100
    symbols: tuple[tuple[int, int], ...] = ()

    def extents(self, shape: tuple[int, ...], slots: Sequence[int]) -> tuple[int, ...]:
        return shape


def described(value: Any, position: int | None) -> Entry:
    if isinstance(value, Value) and isinstance(value.type, TensorType):
        strides = value.type.strides
        kind = "tensor" if position is None else "param"
        return Entry(kind, value.dtype.name, value.type.shape, strides, position)  # pyright: ignore[reportArgumentType]
    return Entry("scalar", value.dtype.name if isinstance(value, Value) else "INDEX")


class Kernel:
    """A `NativeKernel` that interprets its program on the memory behind the addresses in its slots."""

    runnable = True
    address = 0

    def __init__(self, program: Program) -> None:
        main = program.main
        positions = output_positions(main, program)
        implicit = main.attr("implicit_outputs", 0)
        assert isinstance(implicit, int)
        self.program = program
        self.signature = Signature(
            [described(param.value, None) for param in main.params],
            [described(value, position) for value, position in zip(main.results, positions, strict=True)],
            implicit,
        )
        self.calls = 0
        self.failing = 0
        self.workspaces: set[int] = set()

    def __call__(self, slots: int, workspace: int) -> int:
        self.calls += 1
        self.workspaces.add(workspace)
        assert workspace % 64 == 0
        count = len(self.signature.params) + len(self.signature.results) + 4
        cells = (ctypes.c_int64 * count).from_address(slots)
        if self.failing:
            cells[count - 4 : count] = [1, 2, 3, 4]
            return self.failing
        values = [self.read(entry, cell) for entry, cell in zip(self.signature.params, cells, strict=False)]
        results = interpret(self.program, values)
        for index, (entry, result) in enumerate(zip(self.signature.results, results, strict=True)):
            at = len(values) + index
            if entry.kind == "tensor":
                self.read(entry, cells[at])[...] = result
            elif entry.kind == "scalar":
                raw = np.array(result, np.dtype(dtypes.by_name(entry.dtype).numpy)).tobytes()
                cells[at] = int.from_bytes(raw + b"\xaa" * (7 - len(raw)), "little")
        return 0

    @staticmethod
    def read(entry: Entry, cell: int) -> Any:
        dtype = np.dtype(dtypes.by_name(entry.dtype).numpy)
        if entry.kind == "scalar":
            return np.frombuffer((cell & (2**64 - 1)).to_bytes(8, "little")[: dtype.itemsize], dtype)[0].item()
        steps = entry.strides or np.empty(entry.shape, np.int8).strides
        strides = tuple(step * dtype.itemsize for step in steps)
        return memory_view(cell, entry.shape, strides, dtype, read_only=False, owner=None)

    def failure(self, code: int, report: Sequence[int]) -> TilewrightError:
        return OutOfBoundsError(f"guard {code} found {list(report)}")


@dataclass
class Backend:
    """The kernels made so far."""

    made: list[Kernel] = field(default_factory=list[Kernel])


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Backend:
    made = Backend()

    def build(self: JitFunction, bound: Any) -> Any:
        kernel: Any = Kernel(self._read(bound))  # pyright: ignore[reportPrivateUsage]
        made.made.append(kernel)
        return native_executable(kernel)

    monkeypatch.setattr(JitFunction, "_build", build)
    return made


def kernels() -> tuple[JitFunction, JitFunction, JitFunction]:
    """New ones, compiled by nobody yet."""

    @pl.jit
    def combine(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = a * 2.0 + b

    @pl.jit
    def combined(a: pl.Tensor, b: pl.Tensor):
        with pl.at(level=pl.Level.CORE_GROUP):
            c = a * 2.0 + b
        return c

    @pl.jit
    def scaled(a: pl.Tensor, count: int, scale: float, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(count):
                out[i : i + 1, :] = a[i : i + 1, :] * scale
        return out, count * 2 - 9, scale

    return combine, combined, scaled


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int32])
def test_outputs_are_written_and_results_made(backend: Backend, dtype: Any) -> None:
    combine, combined, _ = kernels()
    if dtype is np.int32:
        a, b = exact_ints((5, 7), np.float16, seed=1), exact_ints((5, 7), np.float16, seed=2)
    else:
        a, b = poisoned((5, 7), dtype, seed=1), poisoned((5, 7), dtype, seed=2)
    out = poisoned(a.shape, a.dtype, seed=3)
    expected = (2 * a.astype(np.float32) + b.astype(np.float32)).astype(a.dtype)
    for _ in range(2):
        assert combine(a, b, out) is None
        np.testing.assert_array_equal(out, expected)
        assert surroundings_intact(out)
        np.testing.assert_array_equal(combined(a, b), expected)
    assert len(backend.made) == 2
    assert [kernel.calls for kernel in backend.made] == [2, 2]


def test_numbers_go_in_and_come_out(backend: Backend) -> None:
    _, _, scaled = kernels()
    a, out = exact_ints((6, 8), seed=1), np.zeros((6, 8), np.float32)
    for count, scale in ((2, 3.0), (4, -0.5), (0, 1.0)):
        out[...] = 0
        returned, number, again = scaled(a, count, scale, out)
        assert returned is out
        assert (number, again) == (count * 2 - 9, scale)
        np.testing.assert_array_equal(out[:count], a[:count] * scale)
    assert len(backend.made) == 1


def test_a_call_like_the_last_takes_the_short_way(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    combine, _, _ = kernels()
    a, b, out = exact_ints((8, 8), seed=1), exact_ints((8, 8), seed=2), np.zeros((8, 8), np.float32)
    combine(a, b, out)
    monkeypatch.setattr(JitFunction, "_bind", None)
    other, there = exact_ints((8, 8), seed=5), np.zeros((8, 8), np.float32)
    combine(other, a, there)
    np.testing.assert_array_equal(there, 2 * other + a)
    assert backend.made[0].calls == 2


def test_the_short_way_is_for_equal_calls_only(backend: Backend) -> None:
    combine, _, _ = kernels()
    a, b, out = exact_ints((8, 8), seed=1), exact_ints((8, 8), seed=2), np.zeros((8, 8), np.float32)
    combine(a, b, out)
    short: Any = cast("Any", combine._last).short  # pyright: ignore[reportPrivateUsage]
    raw = np.zeros(4 * 64 + 1, np.uint8)
    misaligned = raw[1:].view(np.float32).reshape(8, 8)
    locked = np.zeros((8, 8), np.float32)
    locked.flags.writeable = False
    wide = exact_ints((16, 8), seed=4)
    unlike: list[tuple[Any, ...]] = [
        (a, b),
        (a, b, out, out),
        (a.astype(np.float16), b, out),
        (a.T, b, out),
        (wide[::2], b, out),
        (a[:4], b[:4], out[:4]),
        (misaligned, b, out),
        (a, b, misaligned),
        (a, b, locked),
        (a, b, a),
        (a, wide[:8], wide[4:12]),
        (a, 3, out),
        (a.tolist(), b, out),
        (np.ma.masked_array(a), b, out),
    ]
    for args in unlike:
        assert short(args) is MISS
    assert backend.made[0].calls == 1
    np.testing.assert_array_equal(out, 2 * a + b)
    assert short((a, b, out)) is None
    assert short((wide[:8], wide[:8], out)) is None


def test_other_shapes_dtypes_and_strides_make_other_kernels(backend: Backend) -> None:
    combine, _, _ = kernels()
    wide = exact_ints((16, 8), seed=4)
    for a in (wide[:8], wide[:4], wide[::2], wide[:8].astype(np.float16), wide[:8].T, wide[:8]):
        out = np.zeros(a.shape, a.dtype)
        combine(a, a, out)
        np.testing.assert_array_equal(out, 3 * a)
    assert len(backend.made) == 5


def test_outside_values_are_looked_at_in_the_short_way_too(backend: Backend) -> None:
    factor = 2.0

    @pl.jit
    def kernel(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = a * factor

    a, out = exact_ints((4, 4), seed=1), np.zeros((4, 4), np.float32)
    for factor in (2.0, 2.0, 5.0, 2.0):
        kernel(a, out)
        np.testing.assert_array_equal(out, a * factor)
    assert len(backend.made) == 2


def test_memory_that_cannot_be_walked_is_copied(backend: Backend) -> None:
    combine, _, _ = kernels()
    a, out = exact_ints((8, 8), seed=1), np.zeros((8, 8), np.float32)
    reversed_out = out[::-1]
    for _ in range(2):
        out[...] = 0
        combine(a[::-1], a, reversed_out)
        np.testing.assert_array_equal(reversed_out, 2 * a[::-1] + a)


def test_each_thread_has_a_workspace_of_its_own(backend: Backend) -> None:
    combine, _, _ = kernels()
    a, b = exact_ints((8, 8), seed=1), exact_ints((8, 8), seed=2)
    outs: list[Array] = [np.zeros((8, 8), np.float32) for _ in range(3)]
    combine(a, b, outs[0])
    ready = threading.Barrier(3)

    def call(out: Array) -> None:
        ready.wait()
        combine(a, b, out)
        ready.wait()

    threads = [threading.Thread(target=call, args=(out,)) for out in outs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for out in outs:
        np.testing.assert_array_equal(out, 2 * a + b)
    assert len(backend.made[0].workspaces) == 4


def test_a_failed_guard_is_the_error_of_the_kernel(backend: Backend) -> None:
    combine, _, _ = kernels()
    a, out = exact_ints((4, 4), seed=1), np.zeros((4, 4), np.float32)
    combine(a, a, out)
    backend.made[0].failing = 3
    with pytest.raises(OutOfBoundsError, match=r"guard 3 found \[1, 2, 3, 4\]"):
        combine(a, a, out)


def test_aliasing_is_refused_in_the_short_way_too(backend: Backend) -> None:
    combine, _, _ = kernels()
    a, out = exact_ints((4, 4), seed=1), np.zeros((4, 4), np.float32)
    combine(a, a, out)
    with pytest.raises(ArgumentError, match="do not alias"):
        combine(a, out, out)


def test_code_for_another_processor_is_not_run(backend: Backend) -> None:
    combine, _, _ = kernels()
    a = exact_ints((4, 4), seed=1)
    kernel: Any = Kernel(combine.program(a, a, a.copy()))
    kernel.runnable = False
    with pytest.raises(CodegenError, match="another processor"):
        native_executable(kernel)
