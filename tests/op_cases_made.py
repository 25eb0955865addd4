"""Cases of the operations that generate, join and multiply in batches.

As in `op_cases`: what NumPy says of them is written here a second time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from op_cases import (
    BOTH,
    CASES,
    NUMBERS,
    TILE,
    Case,
    Pair,
    always,
    bound,
    padded,
    simple,
    sized,
)
from op_cases_more import as_ints

from tilewright.ir.dtypes import BF16, FP16, FP32, INT8, INT32, UINT32, DType
from tilewright.ir.layout import Pad
from tilewright.ir.op import Level, Op, lookup

TENSOR = (Level.TENSOR,)
PITCH = 48
"""Physical columns of a tile [M, N]."""


def generated(
    build: Any, formula: Callable[[int, int], Any], dtypes: tuple[DType, ...], levels: tuple[Level, ...] = BOTH
) -> Case:
    """A case whose result has the valid shape [M, N]; `formula` gives it from its extents."""
    return Case((), sized(build), cast("Any", formula), dtypes, levels, sized_formula=True)


def random_words(rows: int, columns: int, rounds: int, counters: list[int], keys: list[int]) -> Any:
    """Philox 4x32 in plain integers."""
    low = (1 << 32) - 1
    out: list[int] = []
    for block in range(-(-rows * columns // 4)):
        number = sum(c << (32 * k) for k, c in enumerate(counters)) + block
        c = [(number >> (32 * k)) & low for k in range(4)]
        k = list(keys)
        for _ in range(rounds):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(b >> 32) ^ c[1] ^ k[0], b & low, (a >> 32) ^ c[3] ^ k[1], a & low]
            k = [(k[0] + 0x9E3779B9) & low, (k[1] + 0xBB67AE85) & low]
        out += c
    return np.array(out[: rows * columns], np.int64).reshape(rows, columns)


def counting(descending: bool) -> Any:
    def build(level: Level, dtype: DType, physical: Pair, valid: Pair) -> Op:
        return lookup_any("ci")(-3, valid, dtype, descending, level=level)

    return build


def triangle(diagonal: int, upper: bool, tail: bool) -> Any:
    def build(level: Level, dtype: DType, physical: Pair, valid: Pair) -> Op:
        shape = {"shape": physical, "valid_shape": valid} if tail else {"shape": valid}
        return lookup_any("tri")(diagonal, dtype=dtype, upper=upper, level=level, **shape)

    return build


KEYS, COUNTERS = (7, 11), (0xFFFFFFFC, 0xFFFFFFFF, 5, 6)


def drawn(rounds: int) -> Any:
    def build(level: Level, dtype: DType, physical: Pair, valid: Pair) -> Op:
        return lookup_any("random")(*KEYS, *COUNTERS, valid, dtype=dtype, rounds=rounds, level=level)

    return build


def generators() -> None:
    kinds = (INT32, *(kind for kind in NUMBERS if kind is not INT32))

    def up(m: int, n: int) -> Any:
        return (np.arange(m * n) - 3).reshape(m, n)

    def down(m: int, n: int) -> Any:
        return (-3 - np.arange(m * n)).reshape(m, n)

    CASES["ci"] = generated(counting(False), up, kinds)
    CASES["ci_down"] = generated(counting(True), down, kinds)
    CASES["tri"] = generated(triangle(2, False, False), lambda m, n: np.tril(np.ones((m, n)), 2), kinds)
    CASES["tri_upper"] = generated(triangle(2, True, False), lambda m, n: np.triu(np.ones((m, n)), 2), kinds)
    CASES["tri_valid"] = generated(triangle(-1, False, True), lambda m, n: np.tril(np.ones((m, n)), -1), kinds, TILE)
    for rounds in (10, 7):
        CASES[f"random{rounds}"] = generated(drawn(rounds), bound_words(rounds), (UINT32, INT32))


def bound_words(rounds: int) -> Callable[[int, int], Any]:
    return lambda m, n: random_words(m, n, rounds, list(COUNTERS), list(KEYS))


def lookup_any(name: str) -> Any:
    return lookup(name)


def repeated(a: Any, target: Any) -> Any:
    return a + np.zeros(target.shape, a.dtype)


def joined() -> None:
    CASES["concat"] = Case(("MN", "Mn"), simple("concat"), lambda a, b: np.concatenate((a, b), 1), NUMBERS)
    for letters in ("1N", "M1", "11"):
        CASES[f"expand_clone_{letters}"] = Case((letters, "MN"), simple("expand_clone"), repeated, NUMBERS)
    for pad, infinite in ((Pad.ZERO, 0), (Pad.MAX, 1), (Pad.MIN, -1)):
        CASES[f"fillpad_inplace_{pad.name}"] = Case(
            ("MN",), simple("fillpad_inplace", pad_value=pad), bound(padded, infinite), NUMBERS, TILE
        )
    CASES["view"] = Case(
        ("MN",), sized(lambda level, d, p, v, a: lookup_any("view")(a, (v[0] * v[1],))), lambda a: a.reshape(-1),
        NUMBERS, TENSOR,
    )  # fmt: skip
    CASES["reinterpret_view"] = Case(
        ("MN",), simple("reinterpret_view", dtype=INT32), as_ints, (FP32,), result=always(INT32)
    )
    CASES["reinterpret_view_bytes"] = Case(
        ("MN",), simple("reinterpret_view", dtype=INT8), lambda a: a.astype(np.int32).view(np.int8), (INT32,),
        result=always(INT8),
    )  # fmt: skip


def batches() -> None:
    def total(dtype: DType) -> DType:
        return INT32 if dtype is INT8 else FP32

    for accumulator, own in ((FP32, (FP32, FP16, BF16)), (INT32, (INT8,))):
        suffix = "_int" if accumulator is INT32 else ""
        CASES[f"batch_matmul{suffix}"] = Case(
            ("BRR", "BRN"), simple("batch_matmul"), lambda a, b: a @ b, own, TILE, total
        )
        CASES[f"batch_matmul_acc{suffix}"] = Case(
            ("BRN", "BRR", "BRN"), simple("batch_matmul_acc"), lambda c, a, b: c + a @ b, own, TILE, total,
            operand_dtypes=(accumulator, None, None),
        )  # fmt: skip
        CASES[f"gemv{suffix}"] = Case(("1K", "KN"), simple("gemv"), lambda a, b: a @ b, own, TILE, total)
        CASES[f"gemv_acc{suffix}"] = Case(
            ("1N", "1K", "KN"), simple("gemv_acc"), lambda c, a, b: c + a @ b, own, TILE, total,
            operand_dtypes=(accumulator, None, None), products=(0,),
        )  # fmt: skip
        CASES[f"gemv_bias{suffix}"] = Case(
            ("1K", "KN", "1N"), simple("gemv_bias"), lambda a, b, c: a @ b + c, own, TILE, total,
            operand_dtypes=(None, None, accumulator),
        )  # fmt: skip


for add_cases in (generators, joined, batches):
    add_cases()
