"""The engine split keeps meaning: launches, parts of workspaces, and both kinds of core in one function."""

from __future__ import annotations

import numpy as np
import pytest
from meaning import outcome
from properties.judges import judge_pto

import tilewright as tw
import tilewright.language as pl
from tilewright.compiler import lower
from tilewright.execute import interpret
from tilewright.frontend import KernelSource, read_program
from tilewright.ir.dtypes import from_numpy
from tilewright.ir.function import FunctionKind, Program
from tilewright.ir.nodes import Call, Let
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
    """The placed program, right in the interpreter and, with either way of ordering, in the emulator."""
    final = lower(program, TARGET)
    verify(final)
    given = [array.copy() for array in arrays]
    interpret(final, given)
    wanted = outcome(program, list(arrays))
    np.testing.assert_array_equal(given[-1], expected)
    for sync in ("auto", "explicit"):
        judge_pto(final, TARGET, list(arrays), wanted, sync=sync)
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


def calls(program: Program) -> int:
    return sum(isinstance(stmt, Call) for stmt in program.main.walk())


def test_trips_that_alternate_are_one_launch() -> None:
    a, w = ints(16, 16), ints(16, 16, seed=1)
    out = np.zeros_like(a)
    final = check(program_of(alternating, a, w, out), stepped(a, w), a, w, out)
    assert calls(final) == 1 and cores(final) == [None]


@pytest.mark.parametrize("rows", [1, 15, 16, 17, 63, 65])
def test_work_items_of_which_each_alternates(rows: int) -> None:
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


def test_only_some_trips_cross() -> None:
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


def test_matrix_and_vector_work_of_an_item_is_one_launch() -> None:
    a, w, v = ints(64, 16), ints(16, 16, seed=1), ints(16, 16, seed=2)
    out = np.zeros_like(a)
    expected = np.maximum(a @ w, np.float32(0)) @ v
    final = check(program_of(three_phases, a, w, v, out), expected, a, w, v, out)
    assert calls(final) == 1 and cores(final) == [None]


@pl.jit
def nested(a: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    """An alternating loop inside a sequential one whose trips depend on each other."""
    x = pl.load(a, [0, 0], [16, 16])
    for _ in pl.range(0, 2):
        for _ in pl.range(0, 2):
            x = pl.relu(pl.matmul(x, pl.load(w, [0, 0], [16, 16])))
    out = pl.store(x, [0, 0], out)
    return out


def test_a_loop_in_a_loop() -> None:
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


def test_trips_that_are_known_at_run_time_only() -> None:
    @pl.jit
    def unknown(a: pl.Tensor, n: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
        for i in pl.range(0, 4):
            for _ in pl.range(0, pl.cast(pl.read(n, [i, 0]), pl.INDEX)):
                p = pl.matmul(pl.load(a, [0, 0], [16, 16]), pl.load(w, [0, 0], [16, 16]))
                out = pl.store(pl.neg(pl.move(p, pl.Mem.Vec)), [i * 16, 0], out)
        return out

    a, w, n = ints(16, 16), ints(16, 16, seed=1), np.asarray([[2], [0], [1], [3]], np.int32)
    out = np.full((64, 16), 7, np.float32)
    expected = out.copy()
    for i in (0, 2, 3):
        expected[i * 16 : i * 16 + 16] = -(a @ w)
    check(program_of(unknown, a, n, w, out), expected, a, n, w, out)


@pl.jit
def turned(a: pl.Tensor, between: pl.Out[pl.Tensor], out: pl.Out[pl.Tensor]):
    """Items of the second loop read what all items of the first one wrote."""
    for i in pl.parallel(0, 64, 16):
        between = pl.store(pl.relu(pl.load(a, [i, 0], [16, 64])), [i, 0], between)
    for j in pl.parallel(0, 64, 16):
        out = pl.store(pl.neg(pl.load(between, [0, j], [64, 16])), [0, j], out)
    return out


@pytest.mark.parametrize("target", ["ascend910b", "ascend950"])
def test_what_needs_all_items_of_a_loop_is_another_launch(target: str) -> None:
    a, between, out = ints(64, 64), np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32)
    program = program_of(turned, a, between, out)
    final = lower(program, tw.load_target(target))
    assert calls(final) == 2 and cores(final) == ["vector", "vector"]
    check(program, -np.maximum(a, 0), a, between, out)


@pl.jit
def many_items(a: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, a.shape[0], 16):
        rows = pl.min(16, a.shape[0] - i)
        product = pl.matmul(pl.load(a, [i, 0], [16, 16], valid_shape=[rows, 16]), pl.load(w, [0, 0], [16, 16]))
        out = pl.store(pl.relu(product), [i, 0], out)
    return out


@pytest.mark.parametrize(("items", "parts"), [(1, 1), (3, 3), (48, 48), (49, 48), (100, 48)])
def test_a_workspace_has_a_part_for_each_item_that_runs_at_once(items: int, parts: int) -> None:
    """24 matrix and 48 vector cores: items 48 apart are on one core, whatever kind runs them."""
    a, w = ints(items * 16 - 3, 16), ints(16, 16, seed=1)
    out = np.zeros_like(a)
    final = check(program_of(many_items, a, w, out), np.maximum(a @ w, np.float32(0)), a, w, out)
    (space,) = [s.target for s in final.main.body if isinstance(s, Let) and isinstance(s.target.type, TensorType)]
    assert isinstance(space.type, TensorType) and space.type.shape[0] == parts * 16


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
