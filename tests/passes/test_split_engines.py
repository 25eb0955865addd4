"""The engine split keeps meaning: phases, parts of workspaces, trips launched one by one, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
import tilewright.language as pl
from tilewright.compiler import lower
from tilewright.errors import UnsupportedError
from tilewright.execute import interpret
from tilewright.frontend import KernelSource, read_program
from tilewright.ir.dtypes import from_numpy
from tilewright.ir.function import FunctionKind, Program
from tilewright.ir.nodes import Call, For
from tilewright.ir.types import TensorType
from tilewright.ir.verify import verify
from tilewright.passes.tile.split_engines import split_engines

TARGET = tw.load_target("ascend910b")


def program_of(kernel: object, *arrays: np.ndarray) -> Program:
    source = kernel.source  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]
    assert isinstance(source, KernelSource)
    return read_program(source, [TensorType(a.shape, from_numpy(a.dtype)) for a in arrays])


def cores(program: Program) -> list[object]:
    return [f.attr("core") for f in program.functions if f.kind is FunctionKind.INCORE]


def check(program: Program, expected: np.ndarray, *arrays: np.ndarray) -> Program:
    final = lower(program, TARGET)
    verify(final)
    given = [array.copy() for array in arrays]
    interpret(final, given)
    np.testing.assert_array_equal(given[-1], expected)
    return final


def ints(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float32)


@pl.jit
def alternating(a: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Each trip's product needs the last trip's sum."""
    x = pl.load(a, [0, 0], [16, 16])
    for _ in pl.range(0, 3):
        x = pl.relu(pl.matmul(x, pl.load(w, [0, 0], [16, 16])))
    out = pl.store(x, [0, 0], out)
    return out


@pl.jit
def alternating_items(a: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    """The same, for each block of rows on its own."""
    for i in pl.parallel(0, a.shape[0], 16):
        rows = pl.min(16, a.shape[0] - i)
        x = pl.load(a, [i, 0], [16, 16], valid_shape=[rows, 16])
        for _ in pl.range(0, 3):
            x = pl.relu(pl.matmul(x, pl.load(w, [0, 0], [16, 16])))
        out = pl.store(x, [i, 0], out)
    return out


def stepped(a: np.ndarray, w: np.ndarray) -> np.ndarray:
    for _ in range(3):
        a = np.maximum(a @ w, np.float32(0))
    return a


def test_trips_that_alternate_are_launched_one_by_one() -> None:
    a, w = ints(16, 16), ints(16, 16, seed=1)
    out = np.zeros_like(a)
    final = check(program_of(alternating, a, w, out), stepped(a, w), a, w, out)
    loops = [stmt for stmt in final.main.body if isinstance(stmt, For)]
    assert len(loops) == 1 and sum(isinstance(stmt, Call) for stmt in loops[0].body) >= 2
    assert set(cores(final)) == {"cube", "vector"}


@pytest.mark.parametrize("rows", [1, 15, 16, 17, 63, 65])
def test_work_items_stay_inside_the_launches_of_a_trip(rows: int) -> None:
    a, w = ints(rows, 16), ints(16, 16, seed=1)
    out = np.zeros_like(a)
    check(program_of(alternating_items, a, w, out), stepped(a, w), a, w, out)


@pl.jit
def guarded(a: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Only some trips reach the vector core."""
    for i in pl.range(0, 64, 16):
        p = pl.matmul(pl.load(a, [i, 0], [16, 16]), pl.load(w, [0, 0], [16, 16]))
        if i >= 32:
            out = pl.store(pl.neg(pl.move(p, pl.Mem.Vec)), [i, 0], out)
    return out


def test_a_branch_is_kept_in_the_phase_that_stores_under_it() -> None:
    a, w = ints(64, 16), ints(16, 16, seed=1)
    out = np.full_like(a, 5)
    expected = out.copy()
    expected[32:] = -(a @ w)[32:]
    check(program_of(guarded, a, w, out), expected, a, w, out)


@pl.jit
def three_phases(a: pl.Tensor, w: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Matrix, vector, matrix; the last stores itself."""
    for i in pl.parallel(0, 64, 16):
        h = pl.relu(pl.matmul(pl.load(a, [i, 0], [16, 16]), pl.load(w, [0, 0], [16, 16])))
        out = pl.store(pl.matmul(h, pl.load(v, [0, 0], [16, 16])), [i, 0], out)
    return out


def test_phases_alternate_without_a_loop_in_the_caller() -> None:
    a, w, v = ints(64, 16), ints(16, 16, seed=1), ints(16, 16, seed=2)
    out = np.zeros_like(a)
    expected = np.maximum(a @ w, np.float32(0)) @ v
    final = check(program_of(three_phases, a, w, v, out), expected, a, w, v, out)
    assert cores(final) == ["cube", "vector", "cube"]
    assert not any(isinstance(stmt, For) for stmt in final.main.body)


@pl.jit
def nested(a: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    """An alternating loop inside a sequential one whose trips depend on each other: launches cannot be re-ordered."""
    x = pl.load(a, [0, 0], [16, 16])
    for _ in pl.range(0, 2):
        for _ in pl.range(0, 2):
            x = pl.relu(pl.matmul(x, pl.load(w, [0, 0], [16, 16])))
    out = pl.store(x, [0, 0], out)
    return out


def test_a_loop_in_a_loop_is_launched_trip_by_trip() -> None:
    a, w = ints(16, 16), ints(16, 16, seed=1)
    out = np.zeros_like(a)
    expected = a
    for _ in range(4):
        expected = np.maximum(expected @ w, np.float32(0))
    check(program_of(nested, a, w, out), expected, a, w, out)


def test_one_kind_of_core_is_not_split() -> None:
    a = ints(16, 16)
    program = program_of(one_core, a, np.zeros_like(a))
    assert cores(lower(program, TARGET)) == ["vector"]
    assert cores(lower(program, tw.load_target("x86_avx512"))) == [None]


@pl.jit
def one_core(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    out = pl.store(pl.exp(pl.load(a, [0, 0], [16, 16])), [0, 0], out)
    return out


def test_bounds_that_the_caller_cannot_know_are_refused() -> None:
    @pl.jit
    def unknown(a: pl.Tensor, n: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
        for i in pl.range(0, 4):
            for _ in pl.range(0, pl.cast(pl.read(n, [i, 0]), pl.INDEX)):
                p = pl.matmul(pl.load(a, [0, 0], [16, 16]), pl.load(w, [0, 0], [16, 16]))
                out = pl.store(pl.neg(pl.move(p, pl.Mem.Vec)), [0, 0], out)
        return out

    arrays = (ints(16, 16), np.ones((4, 1), np.int32), ints(16, 16), np.zeros((16, 16), np.float32))
    with pytest.raises(UnsupportedError, match="bounds the caller does not know"):
        lower(program_of(unknown, *arrays), TARGET)


def test_a_workspace_that_nothing_reads_is_gone() -> None:
    text = """
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        x = pl.tile.load(a, [0, 0], [16, 16], target_memory=pl.Mem.Vec)
        w = pl.tensor.create([16, 16], pl.FP32)
        w_1 = pl.tile.store(x, [0, 0], w)
        y = pl.tile.load(w_1, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
        out_1 = pl.tile.store(x, [0, 0], out)
        return out_1
"""
    for target in ("ascend910b", "ascend950", "x86_avx512"):
        split = split_engines(tw.parse(text), tw.load_target(target))
        assert "create" not in str(split) and len(split.functions) == 1
