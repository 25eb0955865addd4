"""Cases of the operations that pick, place, sort and search, and of those that are made of others.

As in `op_cases`: what NumPy says of them is written here a second time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from op_cases import (
    CASES,
    FLOATS,
    INTEGERS,
    NUMBERS,
    TILE,
    Case,
    Two,
    always,
    bound,
    choose,
    simple,
    with_scalar,
)
from support import Array, exact_ints

from tilewright.ir.dtypes import FP32, INT32, DType
from tilewright.ir.op import Level, lookup
from tilewright.ir.scalar import constant

TENSOR = (Level.TENSOR,)
PITCH = 48
"""Physical columns of a tile [M, N]."""


def index(limit: int) -> Callable[[tuple[int, ...], int], Array]:
    """Draws indices below `limit`."""
    return lambda shape, seed: np.random.default_rng(seed).integers(0, limit, shape).astype(np.int32)


def flat(rows: int, columns: int, size: int = 1) -> Callable[[tuple[int, ...], int], Array]:
    """Draws positions, times `size`, in the first rows and columns of a tile with `PITCH` columns, none of them twice
    among the first ones."""

    def draw(shape: tuple[int, ...], seed: int) -> Array:
        draws = np.random.default_rng(seed)
        places = np.add.outer(np.arange(rows) * PITCH, np.arange(columns)).reshape(-1)
        count = int(np.prod(shape))
        found = np.concatenate([draws.permutation(places) for _ in range(-(-count // len(places)))])[:count]
        return (found * size).reshape(shape).astype(np.int32)

    return draw


def signs(shape: tuple[int, ...], seed: int) -> Array:
    """Ones, minus ones and a few twos, of which any product is exact."""
    draws = np.random.default_rng(seed)
    found = draws.choice([1, -1], shape)
    found.reshape(-1)[:3] = 2
    return found


def left(a: Any, b: Any) -> Any:
    return choose(b >= 0, a * 2 ** np.maximum(b, 0), 0)


def right(a: Any, b: Any) -> Any:
    return choose(b >= 0, np.floor_divide(a, 2 ** np.maximum(b, 0)), choose(a < 0, -1, 0))


def integers() -> None:
    table: tuple[tuple[str, Two], ...] = (
        ("and", lambda a, b: a & b), ("or", lambda a, b: a | b), ("xor", lambda a, b: a ^ b),
        ("shl", left), ("shr", right),
    )  # fmt: skip
    for name, formula in table:
        CASES[name] = Case(("MN", "MN"), simple(name), formula, INTEGERS)
        number = 1 if name in ("shl", "shr") else 3
        CASES[name + "s"] = Case(("MN",), with_scalar(name, number), bound(formula, number), INTEGERS)
    CASES["not"] = Case(("MN",), simple("not"), lambda a: -1 - a, INTEGERS)


def rest(rounding: Callable[[Any], Any]) -> Two:
    def formula(a: Any, b: Any) -> Any:
        if np.asarray(a).dtype.kind == "i":
            safe = choose(b == 0, 1, b)
            return choose(b == 0, 0, a - rounding(a / safe).astype(np.int64) * b)
        return a - rounding(a / b) * b

    return formula


def sums(a: Any, b: Any, c: Any) -> Any:
    return a + b + c


def differences(a: Any, b: Any, c: Any) -> Any:
    return a - b + c


def leaky(a: Any, slope: Any) -> Any:
    return choose(a > 0, a, a * slope)


def functions() -> None:
    for name, rounding in (("fmod", np.trunc), ("rem", np.floor)):
        CASES[name] = Case(("MN", "MN"), simple(name), rest(rounding), NUMBERS)
        CASES[name + "s"] = Case(("MN",), with_scalar(name, 3), bound(rest(rounding), 3), NUMBERS)
    for name, formula in (("addc", sums), ("subc", differences)):
        CASES[name] = Case(("MN", "MN", "MN"), simple(name), formula, NUMBERS)
        CASES[name.removesuffix("c") + "sc"] = Case(
            ("MN", "MN"), middle_scalar(name, 3), lambda a, c, f=formula: f(a, 3, c), NUMBERS
        )
    CASES["lrelu"] = Case(("MN",), with_scalar("lrelu", 3), bound(leaky, 3), FLOATS)
    CASES["prelu"] = Case(("MN", "MN"), simple("prelu"), leaky, FLOATS)
    CASES["sin"] = Case(("MN",), simple("sin"), np.sin, FLOATS, tolerance=4)
    CASES["cos"] = Case(("MN",), simple("cos"), np.cos, FLOATS, tolerance=4)


def middle_scalar(name: str, number: int) -> Any:
    def build(level: Level, dtype: DType, sizes: Any, *values: Any) -> Any:
        made: Any = lookup(name)
        return made(values[0], constant(number, dtype), values[1], level=level)

    return build


def searches() -> None:
    for axis, prefix in ((1, "row"), (0, "col")):
        for name, search in (("argmax", np.argmax), ("argmin", np.argmin)):
            CASES[f"{prefix}_{name}"] = Case(
                ("MN",), simple(f"{prefix}_{name}"), bound(search, axis=axis, keepdims=True), NUMBERS,
                result=always(INT32),
            )  # fmt: skip
        CASES[f"{prefix}_prod"] = Case(
            ("MN",), simple(f"{prefix}_prod"), bound(np.prod, axis=axis, keepdims=True), NUMBERS, draw=(signs,)
        )


def part_of(combine: Two) -> Two:
    def formula(a: Any, b: Any) -> Any:
        out = np.array(a)
        out[: b.shape[0], : b.shape[1]] = combine(a[: b.shape[0], : b.shape[1]], b)
        return out

    return formula


def partials() -> None:
    table: tuple[tuple[str, Two], ...] = (
        ("add", lambda a, b: a + b), ("mul", lambda a, b: a * b),
        ("max", lambda a, b: choose(a > b, a, b)), ("min", lambda a, b: choose(a < b, a, b)),
    )  # fmt: skip
    for name, formula in table:
        CASES[f"part_{name}"] = Case(("MN", "mn"), simple(f"part_{name}"), part_of(formula), NUMBERS)
        CASES[f"part_{name}_alike"] = Case(("MN", "MN"), simple(f"part_{name}"), part_of(formula), NUMBERS)


def along_rows(a: Any, i: Any) -> Any:
    return np.take_along_axis(a, i, 1)


def along_columns(a: Any, i: Any) -> Any:
    return np.take_along_axis(a[:, : i.shape[1]], i, 0)


def masked(first: int, step: int) -> Callable[[Any], Any]:
    return lambda a: a[:, first::step]


def as_ints(a: Any) -> Any:
    return a.astype(np.float32).view(np.int32)


def gathers() -> None:
    own = (None, INT32)
    CASES["gather"] = Case(
        ("MN", "mn"), simple("gather"), lambda a, i: a[i // PITCH, i % PITCH], NUMBERS, TILE, operand_dtypes=own,
        draw=(None, flat(17, 15)),
    )  # fmt: skip
    CASES["gather_rows"] = Case(
        ("MN", "Mn"), simple("gather", dim=-1), along_rows, NUMBERS, operand_dtypes=own, draw=(None, index(15))
    )
    CASES["gather_columns"] = Case(
        ("MN", "mn"), simple("gather", dim=0), along_columns, NUMBERS, operand_dtypes=own, draw=(None, index(17))
    )
    for dtype in NUMBERS:
        CASES[f"gatherb_{dtype}"] = Case(
            ("MN", "mn"), simple("gatherb"),
            lambda a, i, n=dtype.nbytes: a[i // n // PITCH, i // n % PITCH], (dtype,), TILE,
            operand_dtypes=own, draw=(None, flat(17, 15, dtype.nbytes)),
        )  # fmt: skip
    for pattern, (first, step) in enumerate(((0, 2), (1, 2), (0, 4), (1, 4), (2, 4), (3, 4), (0, 1)), 1):
        CASES[f"gather_mask{pattern}"] = Case(
            ("MN",), simple("gather_mask", mask_pattern=pattern), masked(first, step), NUMBERS
        )
    CASES["gather_mask_bits"] = Case(
        ("MN",), simple("gather_mask", mask_pattern=2, output_dtype=INT32), lambda a: as_ints(a[:, 1::2]), (FP32,),
        result=always(INT32),
    )  # fmt: skip
    for code, mode in enumerate(("eq", "ne", "lt", "le", "gt", "ge")):
        for name, formula in (("indices", found_columns), ("count", counted)):
            CASES[f"gather_compare_{name}_{mode}"] = Case(
                ("MN",), compared(f"gather_compare_{name}", mode), bound(formula, code), NUMBERS, result=always(INT32)
            )


COMPARISONS: tuple[Two, ...] = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


def compared(name: str, mode: str) -> Any:
    def build(level: Level, dtype: DType, sizes: Any, *values: Any) -> Any:
        made: Any = lookup(name)
        return made(values[0], constant(0, dtype), cmp_mode=mode, offset=2, out_cols=6, level=level)

    return build


def found_columns(array: Any, code: int) -> Any:
    out = np.zeros((array.shape[0], 6), np.int64)
    for row, line in zip(out, COMPARISONS[code](array, 0), strict=True):
        places = [j + 2 for j, holds in enumerate(line) if holds][:6]
        row[: len(places)] = places
    return out


def counted(array: Any, code: int) -> Any:
    return np.sum(COMPARISONS[code](array, 0), axis=1)[None]


def put_flat(d: Any, s: Any, i: Any) -> Any:
    d[i // PITCH, i % PITCH] = s
    return d


def put_rows(d: Any, s: Any, i: Any) -> Any:
    for row in range(s.shape[0]):
        for column in range(s.shape[1]):
            d[row, i[row, column]] = s[row, column]
    return d


def put_columns(d: Any, s: Any, i: Any) -> Any:
    for row in range(s.shape[0]):
        for column in range(s.shape[1]):
            d[i[row, column], column] = s[row, column]
    return d


def updated(d: Any, i: Any, s: Any) -> Any:
    for row, line in zip(i.reshape(-1), s, strict=True):
        d[row] = line
    return d


def masked_put(pattern: int) -> Any:
    def build(level: Level, dtype: DType, sizes: Any, *values: Any) -> Any:
        made: Any = lookup("scatter_mask")
        return made(values[0], pattern, values[1], level=level)

    return build


def dealt(first: int, step: int) -> Two:
    def formula(d: Any, s: Any) -> Any:
        d[: s.shape[0], first : first + step * s.shape[1] : step] = s
        return d

    return formula


def stored_rows(s: Any, i: Any, t: Any) -> Any:
    return updated(t, i, s)


def stored_elements(s: Any, i: Any, t: Any) -> Any:
    t.reshape(-1)[i] = s
    return t


def scatters() -> None:
    own = (None, None, INT32)
    CASES["scatter"] = Case(
        ("MN", "mn", "mn"), simple("scatter"), put_flat, NUMBERS, TILE, operand_dtypes=own,
        draw=(None, None, flat(17, 15)),
    )  # fmt: skip
    CASES["scatter_rows"] = Case(
        ("MN", "Mn", "Mn"), simple("scatter", dim=1), put_rows, NUMBERS, operand_dtypes=own,
        draw=(None, None, index(15)),
    )  # fmt: skip
    CASES["scatter_columns"] = Case(
        ("MN", "mn", "mn"), simple("scatter", dim=-2), put_columns, NUMBERS, operand_dtypes=own,
        draw=(None, None, index(17)),
    )  # fmt: skip
    for pattern, (first, step) in enumerate(((0, 2), (1, 2), (0, 4), (1, 4), (2, 4), (3, 4), (0, 1)), 1):
        CASES[f"scatter_mask{pattern}"] = Case(("MN", "mj"), masked_put(pattern), dealt(first, step), NUMBERS)
    CASES["scatter_update"] = Case(
        ("MN", "1m", "mN"), simple("scatter_update"), updated, NUMBERS, operand_dtypes=(None, INT32, None),
        draw=(None, index(17), None),
    )  # fmt: skip
    CASES["mscatter_rows"] = Case(
        ("mN", "1m", "MN"), simple("mscatter"), stored_rows, NUMBERS, TILE, operand_dtypes=(None, INT32, None),
        ddr=(2,), draw=(None, index(17), None),
    )  # fmt: skip
    CASES["mscatter"] = Case(
        ("mn", "mn", "MN"), simple("mscatter"), stored_elements, NUMBERS, TILE, operand_dtypes=(None, INT32, None),
        ddr=(2,), draw=(None, flat(5, 15), None),
    )  # fmt: skip


def rows() -> None:
    own = (None, INT32)
    CASES["mgather"] = Case(
        ("MN", "1m"), simple("mgather"), lambda a, i: a[i[0]], NUMBERS, operand_dtypes=own, ddr=(0,),
        draw=(None, index(17)),
    )  # fmt: skip
    CASES["mgather_elem"] = Case(
        ("MN", "mn"), simple("mgather", coalesce="elem"), lambda a, i: a.reshape(-1)[i], NUMBERS, operand_dtypes=own,
        ddr=(0,), draw=(None, index(255)),
    )  # fmt: skip
    modes: tuple[tuple[str, Two], ...] = (
        ("clamp", lambda a, i: a[np.clip(i[0], 0, len(a) - 1)]),
        ("wrap", lambda a, i: a[i[0] % len(a)]),
    )
    for mode, formula in modes:
        CASES[f"mgather_{mode}"] = Case(
            ("MN", "1m"), simple("mgather", gather_oob=mode), formula, NUMBERS, operand_dtypes=own, ddr=(0,),
            draw=(None, lambda shape, seed: index(99)(shape, seed) - 20),
        )  # fmt: skip
    CASES["gather_row"] = Case(
        ("MN", "MN"), simple("gather_row", dst_offset=(2, 1), src_offset=(3, 0), shapes=(4, 8)), window_put, NUMBERS,
        ddr=(1,),
    )  # fmt: skip
    CASES["gather_row_turned"] = Case(
        ("MN", "MN"),
        simple("gather_row", dst_offset=(2, 1), src_offset=(3, 0), shapes=(4, 8), transpose=True), turned_put, NUMBERS,
        ddr=(1,),
    )  # fmt: skip
    paged = {"block_size": 3, "size": 8, "max_indices": 16, "col_off": 2}
    for name, turned in (("paged_gather", False), ("paged_gather_turned", True)):
        CASES[name] = Case(
            ("MN", "1m", "1n"), simple("paged_gather", is_trans=turned, **paged),
            lambda a, i, t, turned=turned: paged_rows(a, i[0], t[0], turned), NUMBERS,
            operand_dtypes=(None, INT32, INT32), ddr=(0, 1, 2), draw=(None, index(21), index(5)),
        )  # fmt: skip


def window_put(d: Any, s: Any) -> Any:
    d[2:6, 1:9] = s[3:7, 0:8]
    return d


def turned_put(d: Any, s: Any) -> Any:
    d[2:10, 1:5] = s[3:7, 0:8].swapaxes(0, 1)
    return d


def paged_rows(a: Any, i: Any, t: Any, turned: bool) -> Any:
    found = np.stack([a[t[k // 3] * 3 + k % 3, 2:10] for k in i])
    return found.swapaxes(0, 1) if turned else found


def sorted_by(blocks: list[slice]) -> Callable[[Any, Any], Any]:
    """Pairs of values and indices, largest first within each block of pairs, one pair after another."""

    def formula(values: Any, indices: Any) -> Any:
        out = np.zeros((values.shape[0], 2 * values.shape[1]), np.float32)
        for i, line in enumerate(values):
            for block in blocks:
                places = range(*block.indices(values.shape[1]))
                ranked = sorted(places, key=lambda j: (-line[j], j))
                for at, j in zip(places, ranked, strict=True):
                    out[i, 2 * at] = line[j]
                    out[i, 2 * at + 1] = np.int32(indices[0 if len(indices) == 1 else i, j]).view(np.float32)
        return out

    return formula


def sorted_runs(length: int) -> Callable[[tuple[int, ...], int], Array]:
    """Draws pairs, sorted in runs of `length` places."""

    def draw(shape: tuple[int, ...], seed: int) -> Array:
        values = exact_ints((shape[0], shape[1] // 2), np.float32, seed)
        numbers = np.broadcast_to(np.arange(shape[1] // 2, dtype=np.int32), values.shape)
        half = length // 2
        runs = [slice(start, start + half) for start in range(0, values.shape[1], half)]
        return sorted_by(runs)(values, numbers)

    return draw


def merged(whole: int) -> Callable[..., Any]:
    """Pairs sorted in blocks of `whole` places."""

    def formula(*sources: Any) -> Any:
        pairs = np.concatenate(sources, axis=1).astype(np.float32)
        half = whole // 2
        blocks = [slice(start, start + half) for start in range(0, pairs.shape[1] // 2, half)]
        return sorted_by(blocks)(pairs[:, 0::2], np.ascontiguousarray(pairs[:, 1::2]).view(np.int32))

    return formula


def sorts() -> None:
    blocks = [slice(0, 32), slice(32, 64)]
    for name, letters in (("sort32", "MN"), ("sort32_shared", "1N")):
        CASES[name] = Case(
            ("MN", letters), simple("sort32"), sorted_by(blocks), (FP32,), operand_dtypes=(None, INT32),
            draw=(None, index(1000)),
        )  # fmt: skip
    CASES["mrgsort_format1"] = Case(
        ("mQ",), simple("mrgsort_format1", block_len=8), merged(32), (FP32,), draw=(sorted_runs(8),)
    )
    for count in (2, 3, 4):
        CASES[f"mrgsort_format2_{count}"] = Case(
            ("1Q", "1q", "1Q", "1q")[:count], simple("mrgsort_format2"), merged(1 << 20), (FP32,),
            draw=(sorted_runs(1 << 20),) * count,
        )  # fmt: skip


for add_cases in (integers, functions, searches, partials, gathers, scatters, rows, sorts):
    add_cases()
