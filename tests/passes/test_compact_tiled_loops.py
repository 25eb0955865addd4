"""Tiles of larger programs: pooling and matmuls with padding, alone and after their loops are divided."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.execute.loops import interpret_loops
from tilewright.frontend import parse_loops
from tilewright.ir.buffers import buffer_type
from tilewright.ir.loop_level import Allocate, LoopFunction
from tilewright.ir.scalar import Scalar
from tilewright.passes.loop.compact_buffers import compact_buffers
from tilewright.passes.loop.partition_loops import partition_loops


def read(params: str, body: str) -> LoopFunction:
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    return parse_loops(f"import tilewright.language as pl\n\n@pl.loop.function\ndef main({params}):\n{lines}\n")


def shapes(function: LoopFunction) -> list[tuple[str, tuple[Scalar, ...]]]:
    """Each allocation, in order."""
    buffers = [stmt.buffer for stmt in function.walk() if isinstance(stmt, Allocate)]
    return [(buffer.name, buffer_type(buffer).shape) for buffer in buffers]


POOLING = read(
    "X: pl.loop.Buffer[[112, 112, 64], pl.FP32], Y: pl.loop.Buffer[[56, 56, 64], pl.FP32]",
    """
for ho in pl.loop.serial(0, 14):
    for wo in pl.loop.serial(0, 14):
        T = pl.loop.alloc([112, 112, 64], pl.FP32)
        for a in pl.loop.serial(0, 9):
            for b in pl.loop.serial(0, 9):
                for c in pl.loop.serial(0, 64):
                    if ho * 8 + a >= 1 and wo * 8 + b >= 1:
                        T[ho * 8 + a - 1, wo * 8 + b - 1, c] = X[ho * 8 + a - 1, wo * 8 + b - 1, c]
        for h in pl.loop.serial(0, 4):
            for w in pl.loop.serial(0, 4):
                for kh in pl.loop.serial(0, 3):
                    for kw in pl.loop.serial(0, 3):
                        for c in pl.loop.serial(0, 64):
                            Y[ho * 4 + h, wo * 4 + w, c] = Y[ho * 4 + h, wo * 4 + w, c] + pl.loop.if_then_else(
                                ho * 8 + h * 2 + kh >= 1 and wo * 8 + w * 2 + kw >= 1,
                                T[ho * 8 + h * 2 + kh - 1, wo * 8 + w * 2 + kw - 1, c], 0.0)
""",
)
PADDING = read(
    "A: pl.loop.Buffer[[20, 20], pl.FP32], C: pl.loop.Buffer[[20, 20], pl.FP32]",
    """
B = pl.loop.alloc([20, 20], pl.FP32)
for i in pl.loop.serial(0, 16):
    for j in pl.loop.serial(0, 16):
        B[i + 2, j + 2] = A[i, j]
for i in pl.loop.serial(0, 20):
    for j in pl.loop.serial(0, 20):
        C[i, j] = pl.loop.if_then_else(2 <= i and i < 18 and 2 <= j and j < 18, B[i, j], 0.0)
""",
)
LAST_TILE = read(
    "C: pl.loop.Buffer[[1024], pl.FP32]",
    """
for b in pl.loop.serial(0, 144):
    B = pl.loop.alloc([1024], pl.FP32)
    for k in pl.loop.serial(0, 960 - pl.max(b // 18 * 128, 832)):
        B[k] = 1.0
        C[k] = B[k]
""",
)


def matmul(size: int, tile: int, padded: int, guard: bool) -> LoopFunction:
    """C = A @ B in tiles that stand over the edge where `tile` does not divide `size`."""
    tiles = -(-size // tile)
    rows, columns = f"if i0 * {tile} + i < {size}:", f"if j0 * {tile} + j < {size}:"
    rows, columns = (rows, columns) if guard else ("if 0 < 1:", "if 0 < 1:")
    square = f"pl.loop.Buffer[[{size}, {size}], pl.FP32]"
    return read(
        f"A: {square}, B: {square}, C: {square}",
        f"""
for i0 in pl.loop.serial(0, {tiles}):
    for j0 in pl.loop.serial(0, {tiles}):
        TA = pl.loop.alloc([{size}, {size}], pl.FP32)
        TB = pl.loop.alloc([{size}, {size}], pl.FP32)
        TC = pl.loop.alloc([{size}, {size}], pl.FP32)
        for i in pl.loop.serial(0, {tile}):
            for k in pl.loop.serial(0, {padded}):
                {rows}
                    TA[i0 * {tile} + i, k] = A[i0 * {tile} + i, k]
        for k in pl.loop.serial(0, {padded}):
            for j in pl.loop.serial(0, {tile}):
                {columns}
                    TB[k, j0 * {tile} + j] = B[k, j0 * {tile} + j]
        for i in pl.loop.serial(0, {tile}):
            for j in pl.loop.serial(0, {tile}):
                {rows}
                    {columns}
                        TC[i0 * {tile} + i, j0 * {tile} + j] = 0.0
                        for k in pl.loop.serial(0, {padded}):
                            TC[i0 * {tile} + i, j0 * {tile} + j] = (TC[i0 * {tile} + i, j0 * {tile} + j]
                                + TA[i0 * {tile} + i, k] * TB[k, j0 * {tile} + j])
                        C[i0 * {tile} + i, j0 * {tile} + j] = TC[i0 * {tile} + i, j0 * {tile} + j]
""",
    )


@pytest.mark.parametrize(("function", "expected"), [(POOLING, (9, 9, 64)), (PADDING, (16, 16)), (LAST_TILE, (128,))])
def test_known_tiles(function: LoopFunction, expected: tuple[int, ...]) -> None:
    small = compact_buffers(function)
    assert [shape for _, shape in shapes(small)] == [expected]
    assert compact_buffers(small) == small


def test_padding_moves_by_its_width_and_keeps_the_result() -> None:
    small = compact_buffers(PADDING)
    assert "B[i, j] = A[i, j]" in str(small) and "[i_1 - 2, j_1 - 2]" in str(small)
    image, made = np.arange(400, dtype=np.float32).reshape(20, 20), np.ones((20, 20), np.float32)
    interpret_loops(small, [image, made])
    assert np.array_equal(made, np.pad(image[:16, :16], 2))


def test_a_padded_matmul_without_strict() -> None:
    small = compact_buffers(matmul(127, 32, 128, guard=False), strict=False)
    assert [shape for _, shape in shapes(small)] == [(32, 128), (128, 32), (32, 32)]


def test_tiles_of_divided_loops() -> None:
    small = compact_buffers(partition_loops(matmul(128, 26, 128, guard=True)))
    made = [shape for _, shape in shapes(small)]
    assert made == [
        shape for rows in (26, 24) for columns in (26, 24) for shape in ((rows, 128), (128, columns), (rows, columns))
    ]


@pytest.mark.parametrize(("size", "tile"), [(1, 2), (7, 3), (9, 4)])
def test_divided_and_compacted_tiles_multiply(size: int, tile: int) -> None:
    function = matmul(size, tile, size, guard=True)
    small = compact_buffers(partition_loops(function))
    a, b = (np.arange(size * size, dtype=np.float32).reshape(size, size) % m for m in (5, 7))
    made = np.zeros((size, size), np.float32)
    interpret_loops(small, [a, b, made])
    assert np.array_equal(made, a @ b)
