"""Multiplications: every tail of m, n and k, near and far rows, both orientations, on every target that runs here."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from native.building import TAILS, Building, compiled, draw
from support import Array

from tilewright.codegen.native import emit_llvm
from tilewright.codegen.native.contract import BLOCKS, FAR, LARGE_ROWS, SMALL_ROWS, Multiplier
from tilewright.codegen.native.llvm import assembly_of, processor_of
from tilewright.ir.dtypes import BF16, FP16, FP32, INT8, INT32, DType
from tilewright.ir.function import Program
from tilewright.ops import Matmul, MatmulAcc
from tilewright.targets import Target, load_target

ROWS, DEPTH = 200, 400
"""Extents of the tensors: more than the largest block along k of any target."""


def targets() -> dict[str, Target]:
    """Those that run on any x86 with AVX2; the last has AVX-512's shapes, which LLVM takes apart again."""
    avx2 = load_target("x86_avx2")
    return {"generic": load_target("generic"), "x86_avx2": avx2, "as_avx512": replace(avx2, vector_bytes=64)}


def program(dtype: DType, pitch: int, turned: tuple[bool, bool] = (False, False), adds: bool = False) -> Program:
    """``out[:m, :n] (+)= a[:m, :k] @ b[:k, :n]``; rows of the operands lie `pitch` elements apart."""
    b = Building()
    m, n, k = b.scalar("m"), b.scalar("n"), b.scalar("k")
    wide = INT32 if dtype is INT8 else FP32
    x = b.tensor("x", DEPTH if turned[0] else ROWS, pitch, dtype=dtype)
    y = b.tensor("y", ROWS if turned[1] else DEPTH, pitch, dtype=dtype)
    out = b.tensor("out", ROWS, ROWS, dtype=wide, out=True)
    a, c = (
        b.load(
            tensor, valid[::-1] if turn else valid, shape=shape[::-1] if turn else shape, transpose=turn,
        )
        for tensor, valid, shape, turn in ((x, (m, k), (ROWS, DEPTH), turned[0]), (y, (k, n), (DEPTH, ROWS), turned[1]))
    )  # fmt: skip
    total = b.let(Matmul(a, c))
    if adds:
        total = b.let(MatmulAcc(total, a, c))
    b.store(total, out)
    return b.program()


def check(kernel: Any, given: tuple[Array, Array], extents: tuple[int, int, int], turned: tuple[bool, bool],
          times: int = 1) -> None:  # fmt: skip
    """The product is exact, and nothing beside it is written."""
    m, n, k = extents
    wide = np.int32 if given[0].dtype == np.int8 else np.float32
    a, b = (x.T if t else x for x, t in zip(given, turned, strict=True))
    expected = np.full((ROWS, ROWS), 77, wide)
    expected[:m, :n] = times * (a[:m, :k].astype(wide) @ b[:k, :n].astype(wide))
    out = np.full((ROWS, ROWS), 77, wide)
    kernel.run([m, n, k, *given, out])
    assert np.array_equal(out, expected), f"m, n, k = {extents}"


@pytest.mark.parametrize("pitch", (DEPTH, FAR + 24))
@pytest.mark.parametrize("name", targets())
def test_every_tail_is_exact(name: str, pitch: int) -> None:
    kernel = compiled(program(FP32, pitch), targets()[name])
    given = draw((ROWS, pitch), FP32, 1), draw((DEPTH, pitch), FP32, 2)
    for extents in product(TAILS, TAILS, (*TAILS, 257, DEPTH)):
        check(kernel, given, extents, (False, False))


@pytest.mark.parametrize("turned", tuple(product((False, True), repeat=2)), ids=("nn", "nt", "tn", "tt"))
@pytest.mark.parametrize("dtype", (FP32, BF16, FP16, INT8), ids=lambda d: d.name)
@pytest.mark.parametrize("name", targets())
def test_every_dtype_and_orientation_is_exact(name: str, dtype: DType, turned: tuple[bool, bool]) -> None:
    kernel = compiled(program(dtype, FAR + 24, turned, adds=True), targets()[name])
    shapes = (DEPTH if turned[0] else ROWS, FAR + 24), (ROWS if turned[1] else DEPTH, FAR + 24)
    given = draw(shapes[0], dtype, 1), draw(shapes[1], dtype, 2)
    for extents in product((1, 16, 17, 65, 200), (1, 17, 64), (1, 65, DEPTH)):
        check(kernel, given, extents, turned, 2)


@pytest.mark.parametrize("m", (SMALL_ROWS - 1, SMALL_ROWS, 16, 18, LARGE_ROWS, 168, 170, 184, 194, 208))
def test_constant_rows_need_only_their_own_blocks(m: int) -> None:
    """The micro-kernels that a call takes are those that were emitted for it, whatever is left over in which block."""
    for target in targets().values():
        b = Building()
        x, y, out = b.tensor("x", m, 70), b.tensor("y", 70, 40), b.tensor("out", m, 40, out=True)
        b.store(b.let(Matmul(b.load(x), b.load(y))), out)
        given = draw((m, 70), FP32, 1), draw((70, 40), FP32, 2)
        result = np.zeros((m, 40), np.float32)
        compiled(b.program(), target).run([*given, result])
        assert np.array_equal(result, given[0] @ given[1])


def test_blocks_in_registers_follow_the_target() -> None:
    """No sum leaves its register inside the loop: nothing is stored but the result."""
    for name, register, sums in (("generic", "xmm", 8), ("x86_avx2", "ymm", 12), ("x86_avx512", "zmm", 28)):
        target = load_target(name)
        processor = processor_of(target)
        owner = Multiplier(processor, FP32, True, True)
        assert 2 * owner.rows[0] == sums
        listing = assembly_of(emit_llvm(program(FP32, DEPTH), target), processor)
        body = listing.split(f"\n{owner.name}.{owner.rows[0]}:\n")[1].split("\n\t.size")[0]
        loops = [part for part in re.split(r"\n\.LBB\w+:", body) if "vfmadd" in part or "mulps" in part]
        inner = loops[0]
        assert register in inner and "rsp" not in inner, f"{name}: {inner}"


def test_left_over_rows_are_shared() -> None:
    """Two rows left over make two blocks of the second size with the last large one, and nothing waits for its sums."""
    avx512 = Multiplier(processor_of(load_target("x86_avx512")), FP32, True, True)
    assert [avx512.cover(count) for count in (16, 128, 28, 14, 2)] == [[8], [14, 8], [14], [14], [2]]
    avx2 = Multiplier(processor_of(load_target("x86_avx2")), FP32, True, True)
    assert [avx2.cover(count) for count in (8, 16, 512)] == [[4], [6, 4], [6, 4]]


def test_blocks_fit_their_micro_kernels() -> None:
    for name in ("generic", "x86_avx2", "x86_avx512"):
        owner = Multiplier(processor_of(load_target(name)), FP32, True, True)
        for _, columns, rows, _ in BLOCKS[owner.processor.registers]:
            assert columns % owner.width == 0
            assert rows % owner.rows[0] == 0
