"""Every operation with operands to try it on, and what NumPy says of them, written here a second time.

The formulas know nothing of the op classes. They compute in float64 (integers: int64) and round once at the end; where
an op rounds in between, or NumPy's own function is not exact, the case has a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

import tilewright.ops as ops
from tilewright.ir.dtypes import (
    BF16,
    BOOL,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DType,
)  # fmt: skip
from tilewright.ir.layout import MemorySpace, Pad
from tilewright.ir.op import Level, Op, lookup, registry
from tilewright.ir.scalar import Value, constant
from tilewright.ops.collective import SITE

FLOATS = (FP32, FP16, BF16)
INTEGERS = (INT8, INT32, INT16, INT64, UINT8, UINT16, UINT32, UINT64)
NUMBERS = (*FLOATS, *INTEGERS)
ELEMENTS = (*NUMBERS, BOOL)
BOTH = (Level.TENSOR, Level.TILE)
TILE = (Level.TILE,)
FULL = {
    "M": (32, 32), "N": (48, 48), "K": (64, 64), "1": (1, 1), "B": (2, 2),
    "m": (16, 16), "n": (32, 32), "j": (12, 12), "Q": (64, 64), "q": (24, 24), "R": (16, 16),
}  # fmt: skip
TAIL = {
    "M": (32, 17), "N": (48, 15), "K": (64, 33), "1": (1, 1), "B": (2, 2),
    "m": (16, 9), "n": (32, 7), "j": (12, 3), "Q": (64, 42), "q": (24, 6), "R": (16, 16),
}  # fmt: skip
"""(physical, valid) extents by letter."""
Sizes = dict[str, tuple[int, int]]
Pair = tuple[int, int]
Formula = Callable[[], Any] | Callable[[Any], Any] | Callable[[Any, Any], Any] | Callable[[Any, Any, Any], Any]
Build = Callable[..., Op]
SizedBuild = (
    Callable[[Level, DType, Pair, Pair], Op]
    | Callable[[Level, DType, Pair, Pair, Value], Op]
    | Callable[[Level, DType, Pair, Pair, Value, Value], Op]
)


def same(dtype: DType) -> DType:
    return dtype


def boolean(dtype: DType) -> DType:
    return BOOL


Draw = Callable[[tuple[int, ...], int], Any]


@dataclass(frozen=True)
class Case:
    """`operands`: for each, its dimensions by letter and its dtype (None: the one under test; `ddr`: a tensor at
    every level). `build` makes the op, `formula` gives the valid part of its result."""

    operands: tuple[str, ...]
    build: Callable[..., Op]
    formula: Formula
    dtypes: tuple[DType, ...] = NUMBERS
    levels: tuple[Level, ...] = BOTH
    result: Callable[[DType], DType] = same
    tolerance: float = 0.0
    operand_dtypes: tuple[DType | None, ...] = ()
    ddr: tuple[int, ...] = ()
    draw: tuple[Draw | None, ...] = ()
    """for each operand, what draws it from a shape and a seed; None: small integers"""
    products: tuple[int, ...] = ()
    """operands that come out of a product: nothing else gets into an accumulator"""
    chips: bool = True
    """whether a chip can do it with tiles that come from DDR and go there"""
    sized_formula: bool = False
    """whether `formula` takes the valid rows and columns, for want of an operand"""


def wide(array: Any) -> Any:
    """Floats as float64, integers as int64; booleans, and integers that do not fit, as they are."""
    array = np.asarray(array)
    if array.dtype.kind == "b" or (array.dtype == np.uint64 and np.any(array >> 63)):
        return array
    return array.astype(np.int64 if array.dtype.kind in "iu" else np.float64)


def simple(name: str, **fixed: Any) -> Build:
    """Builds the op `name` from its operands."""

    def build(level: Level, dtype: DType, sizes: Sizes, *values: Value) -> Op:
        made: Any = lookup(name)
        return made(*values, level=level, **fixed)

    return build


def with_scalar(name: str, number: int, **fixed: Any) -> Build:
    """The scalar form with the constant `number`."""

    def build(level: Level, dtype: DType, sizes: Sizes, *values: Value) -> Op:
        made: Any = lookup(name)
        return made(*values, constant(number, dtype), level=level, **fixed)

    return build


def sized(build: SizedBuild) -> Build:
    """`build` from the level, the dtype, the physical and the valid [M, N], and the operands."""
    made = cast("Callable[..., Op]", build)

    def wrapped(level: Level, dtype: DType, sizes: Sizes, *values: Value) -> Op:
        (rows, valid_rows), (columns, valid_columns) = sizes["M"], sizes["N"]
        return made(level, dtype, (rows, columns), (valid_rows, valid_columns), *values)

    return wrapped


def bound(formula: Callable[..., Any], *rest: Any, **options: Any) -> Callable[[Any], Any]:
    """`formula` of one array and of what is fixed."""
    return lambda array: formula(array, *rest, **options)


def always(dtype: DType) -> Callable[[DType], DType]:
    return lambda _: dtype


Two = Callable[[Any, Any], Any]


def choose(condition: Any, then: Any, otherwise: Any) -> Any:
    return cast("Any", np.where(condition, then, otherwise))


CASES: dict[str, Case] = {}


def pairs() -> None:
    table: tuple[tuple[str, Two, tuple[DType, ...]], ...] = (
        ("add", lambda a, b: a + b, NUMBERS),
        ("sub", lambda a, b: a - b, NUMBERS),
        ("mul", lambda a, b: a * b, NUMBERS),
        ("div", lambda a, b: a / b, FLOATS),
        ("maximum", lambda a, b: choose(a > b, a, b), NUMBERS),
        ("minimum", lambda a, b: choose(a < b, a, b), NUMBERS),
    )
    for name, formula, dtypes in table:
        CASES[name] = Case(("MN", "MN"), simple(name), formula, dtypes)
        wider = (spread,) if name in ("maximum", "minimum") else ()
        CASES[name + "s"] = Case(("MN",), with_scalar(name, 3), bound(formula, 3), dtypes, draw=wider)


def ones() -> None:
    CASES["neg"] = Case(("MN",), simple("neg"), lambda a: 0 - a)
    CASES["abs"] = Case(("MN",), simple("abs"), lambda a: choose(a < 0, 0 - a, a))
    CASES["relu"] = Case(("MN",), simple("relu"), lambda a: choose(a > 0, a, 0))
    CASES["exp"] = Case(("MN",), simple("exp"), lambda a: np.e**a, FLOATS, tolerance=4)
    CASES["log"] = Case(("MN",), simple("log"), lambda a: np.log2(a) / np.log2(np.e), FLOATS, tolerance=4)
    CASES["sqrt"] = Case(("MN",), simple("sqrt"), np.sqrt, FLOATS)
    CASES["rsqrt"] = Case(("MN",), simple("rsqrt"), lambda a: 1 / np.sqrt(a), FLOATS, tolerance=2)
    CASES["recip"] = Case(("MN",), simple("recip"), lambda a: 1 / a, FLOATS)


def choices() -> None:
    comparisons: tuple[Two, ...] = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
    for code, formula in enumerate(comparisons):
        CASES[f"cmp{code}"] = Case(
            ("MN", "MN"), simple("cmp", cmp_type=code), formula, NUMBERS, result=boolean
        )  # fmt: skip
        CASES[f"cmps{code}"] = Case(
            ("MN",), with_scalar("cmp", 1, cmp_type=code), bound(formula, 1), NUMBERS, result=boolean
        )
    CASES["sel"] = Case(
        ("MN", "MN", "MN"), simple("sel"), lambda m, a, b: m * a + (1 - m) * b, operand_dtypes=(BOOL, None, None)
    )
    CASES["sels"] = Case(
        ("MN", "MN"), with_scalar("sel", 7), lambda m, a: m * a + (1 - m) * 7, operand_dtypes=(BOOL, None)
    )


def spread(shape: tuple[int, ...], seed: int) -> Any:
    """Integers far apart, so that rows differ in their largest."""
    return np.random.default_rng(seed).integers(-100, 101, shape)


def reductions() -> None:
    for axis, prefix in ((1, "row"), (0, "col")):
        table: tuple[tuple[str, Callable[..., Any]], ...] = (("sum", np.sum), ("max", np.max), ("min", np.min))
        for name, reduce in table:
            CASES[f"{prefix}_{name}"] = Case(
                ("MN",), simple(f"{prefix}_{name}"), bound(reduce, axis=axis, keepdims=True),
                draw=(None if name == "sum" else spread,),
            )  # fmt: skip


def broadcasts() -> None:
    for prefix, vector in (("row", "M1"), ("col", "1N")):
        table: tuple[tuple[str, Two, tuple[DType, ...], float], ...] = (
            ("add", lambda a, v: a + v, NUMBERS, 0),
            ("sub", lambda a, v: a - v, NUMBERS, 0),
            ("mul", lambda a, v: a * v, NUMBERS, 0),
            ("div", lambda a, v: a / v, FLOATS, 0),
            ("max", lambda a, v: choose(a > v, a, v), NUMBERS, 0),
            ("min", lambda a, v: choose(a < v, a, v), NUMBERS, 0),
            ("expdif", lambda a, v: np.e ** (a - v), FLOATS, 4),
        )
        for name, formula, dtypes, tolerance in table:
            full = f"{prefix}_expand_{name}"
            CASES[full] = Case(("MN", vector), simple(full), formula, dtypes, tolerance=tolerance)
        CASES[f"{prefix}_expand"] = Case(
            ("MN", vector), simple(f"{prefix}_expand"), lambda a, v: v + np.zeros(a.shape, v.dtype), ELEMENTS
        )
    CASES["expands"] = Case(
        ("MN",), with_scalar("expands", 1), lambda a: np.ones(a.shape, np.float64), ELEMENTS
    )  # fmt: skip


def converted(target: DType) -> Callable[[Any], Any]:
    """Floats beyond an integer's limits stop there; integers wrap."""

    def formula(a: Any) -> Any:
        return np.maximum(a, 0) if a.dtype.kind == "f" and target.kind == "uint" else a

    return formula


def casts() -> None:
    for target in ELEMENTS:
        CASES[f"cast_{target.name}"] = Case(
            ("MN",), simple("cast", target_type=target), converted(target), ELEMENTS, result=always(target),
            chips=target.kind != "uint",
        )  # fmt: skip


def quarters(shape: tuple[int, ...], seed: int) -> Any:
    return spread(shape, seed) / 4


def many_digits(shape: tuple[int, ...], seed: int) -> Any:
    """Numbers of 16 bits, so that narrow floats round them."""
    return np.random.default_rng(seed).integers(-(2**15), 2**15, shape) / 2**12


def to_odd(a: Any) -> Any:
    whole = np.trunc(a)
    return whole + np.where((whole != a) & (whole % 2 == 0), np.sign(a), 0)


def with_digits(rounding: Callable[[Any], Any], digits: int) -> Callable[[Any], Any]:
    """Rounds what is left when the exponent is taken off."""

    def formula(a: Any) -> Any:
        fraction, exponent = np.frexp(a)
        return np.ldexp(rounding(fraction * 2.0**digits), exponent - digits)

    return formula


def directions() -> None:
    """Casts with a rounding mode; `round` is that of the others."""
    modes: tuple[tuple[str, Callable[[Any], Any]], ...] = (
        ("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc), ("odd", to_odd), ("rint", np.rint),
    )  # fmt: skip
    for mode, rounding in modes:
        for target in (INT8, INT32, INT64):
            CASES[f"cast_{mode}_{target.name}"] = Case(
                ("MN",), simple("cast", target_type=target, mode=mode), rounding, FLOATS, result=always(target),
                draw=(quarters,),
            )  # fmt: skip
        for target, digits in ((FP16, 11), (BF16, 8)):
            CASES[f"cast_{mode}_{target.name}"] = Case(
                ("MN",), simple("cast", target_type=target, mode=mode), with_digits(rounding, digits), (FP32,),
                result=always(target), draw=(many_digits,),
            )  # fmt: skip


def products() -> None:
    types = (FP32, FP16, BF16, INT8)

    def sums(dtype: DType) -> DType:
        return INT32 if dtype is INT8 else FP32

    CASES["matmul"] = Case(("MK", "KN"), simple("matmul"), lambda a, b: a @ b, types, TILE, sums)
    CASES["matmul_tensor"] = Case(
        ("KM", "NK"), simple("matmul", a_trans=True, b_trans=True), lambda a, b: a.T @ b.T, types, (Level.TENSOR,),
        lambda dtype: INT32 if dtype is INT8 else dtype,
    )  # fmt: skip
    for name, accumulator in (("", FP32), ("_int", INT32)):
        own = (INT8,) if accumulator is INT32 else (FP32, FP16, BF16)
        CASES[f"matmul_acc{name}"] = Case(
            ("MN", "MK", "KN"), simple("matmul_acc"), lambda c, a, b: c + a @ b, own,
            result=sums, operand_dtypes=(accumulator, None, None), products=(0,),
        )  # fmt: skip
        CASES[f"matmul_acc_first{name}"] = Case(
            ("MN", "MK", "KN"), simple("matmul_acc", init_cond=constant(True, BOOL)), lambda c, a, b: a @ b, own,
            result=sums, operand_dtypes=(accumulator, None, None), products=(0,),
        )  # fmt: skip
        CASES[f"matmul_bias{name}"] = Case(
            ("MK", "KN", "1N"), simple("matmul_bias"), lambda a, b, c: a @ b + c, own, TILE,
            sums, operand_dtypes=(None, None, accumulator),
        )  # fmt: skip
        CASES[f"matmul_bias{name}_tensor"] = Case(
            ("MK", "KN", "1N"), simple("matmul_bias", out_dtype=accumulator), lambda a, b, c: a @ b + c, own,
            (Level.TENSOR,), sums, operand_dtypes=(None, None, accumulator),
        )  # fmt: skip


def data(tile: Any) -> Any:
    return tile


def movements() -> None:
    mat = MemorySpace.MAT
    CASES["load"] = Case(
        ("MN",), sized(lambda level, d, p, v, t: ops.Load(t, (0, 0), p, v)), data, ELEMENTS, TILE, ddr=(0,)
    )
    CASES["load_transposed"] = Case(
        ("MN",), sized(lambda level, d, p, v, t: ops.Load(t, (0, 0), p, v, mat, False, True)),
        lambda a: np.moveaxis(a, 0, 1), ELEMENTS, TILE, ddr=(0,),
    )  # fmt: skip
    CASES["load_clamped"] = Case(
        ("MN",), sized(lambda level, d, p, v, t: ops.Load(t, (5, 3), p, None, None, True)),
        lambda a: a[5:, 3:], ELEMENTS, TILE, ddr=(0,),
    )  # fmt: skip
    CASES["store"] = Case(
        ("MN", "MN"), sized(lambda level, d, p, v, a, t: ops.Store(a, (0, 0), t)), lambda a, t: a, ELEMENTS, TILE,
        ddr=(1,),
    )  # fmt: skip
    CASES["store_atomic"] = Case(
        ("MN", "MN"), sized(lambda level, d, p, v, a, t: ops.Store(a, (0, 0), t, None, 1)), lambda a, t: a + t,
        NUMBERS, TILE, ddr=(1,),
    )  # fmt: skip
    CASES["move"] = Case(("MN",), sized(lambda level, d, p, v, a: ops.Move(a, MemorySpace.VEC)), data, ELEMENTS, TILE)
    CASES["move_rounded"] = Case(
        ("MN",), sized(lambda level, d, p, v, a: ops.Move(a, mat, target_type=BF16)), data, (FP32,), TILE,
        always(BF16), chips=False,
    )  # fmt: skip
    CASES["extract"] = Case(
        ("MN",), sized(lambda level, d, p, v, a: ops.Extract(a, 1, 2, (16, 16), MemorySpace.LEFT)),
        lambda a: a[1:17, 2:18], ELEMENTS, TILE, chips=False,
    )  # fmt: skip
    CASES["extract_first"] = Case(
        ("MN",), sized(lambda level, d, p, v, a: ops.Extract(a, 0, 0, (16, 16), MemorySpace.LEFT)),
        lambda a: a[:16, :16], ELEMENTS, TILE,
    )  # fmt: skip
    CASES["assemble"] = Case(
        ("MN", "1N"), sized(lambda level, d, p, v, t, a: ops.Assemble(t, a, (3, 0))),
        lambda t, a: np.concatenate([t[:3], a, t[4:]]), ELEMENTS,
    )  # fmt: skip
    CASES["read"] = Case(("MN",), sized(lambda level, d, p, v, a: ops.Read(a, (3, 2))), lambda a: a[3, 2], ELEMENTS)
    CASES["write"] = Case(
        ("MN",), sized(lambda level, d, p, v, a: ops.Write(a, (2, 1), constant(1, d))), written, ELEMENTS
    )


def written(array: Any) -> Any:
    out = array.copy()
    out[2, 1] = 1
    return out


def views() -> None:
    CASES["slice"] = Case(
        ("MN",), sized(lambda level, d, p, v, a: ops.Slice(a, (8, 10), (2, 3))), lambda a: a[2:10, 3:13], ELEMENTS
    )
    CASES["slice_dropped"] = Case(
        ("MN",), sized(lambda level, d, p, v, a: ops.Slice(a, (1, 10), (2, 3), None, (0,))), lambda a: a[2, 3:13],
        ELEMENTS,
    )  # fmt: skip
    CASES["reshape"] = Case(
        ("M1",), sized(lambda level, d, p, v, a: ops.Reshape(a, (1, p[0] if level is Level.TILE else v[0]))),
        lambda a: a.T, ELEMENTS,
    )  # fmt: skip
    CASES["transpose"] = Case(
        ("MN",), sized(lambda level, d, p, v, a: ops.Transpose(a, 0, 1)), lambda a: np.moveaxis(a, 0, 1), ELEMENTS
    )
    CASES["transpose_view"] = Case(
        ("MN",), sized(lambda level, d, p, v, a: ops.TransposeView(a)), lambda a: np.moveaxis(a, 0, 1), ELEMENTS, TILE
    )
    CASES["set_validshape"] = Case(
        ("MN",), sized(lambda level, d, p, v, a: ops.SetValidShape(a, 9, 7)), lambda a: a[:9, :7], ELEMENTS
    )
    for pad, infinite in ((Pad.ZERO, 0), (Pad.MAX, 1), (Pad.MIN, -1)):
        CASES[f"fillpad_{pad.name}"] = Case(
            ("MN",), simple("fillpad", pad_value=pad), bound(padded, infinite), NUMBERS, TILE
        )
        CASES[f"fillpad_expand_{pad.name}"] = Case(
            ("MN",), simple("fillpad_expand", shape=(32, 48), pad_value=pad), bound(padded, infinite)
        )


BEYOND = 2**62
"""For integers: more than any of them, whatever the dtype."""


def padded(array: Any, sign: int) -> Any:
    """[32, 48] around `array`. Beyond it 0, or more (less) than any dtype has, which `as_dtype` brings back."""
    out = np.full((32, 48), sign * (BEYOND if array.dtype.kind == "i" else np.inf) if sign else 0, dtype=array.dtype)
    out[: array.shape[0], : array.shape[1]] = array
    return out


def creations() -> None:
    CASES["create"] = Case(
        (), sized(lambda level, d, p, v: ops.Create(v, d, None, constant(1, d), level=level)),
        lambda: np.ones((1,)), ELEMENTS,
    )  # fmt: skip
    CASES["full"] = Case(
        (), sized(lambda level, d, p, v: ops.Full(v, d, constant(1, d), level=level)), lambda: np.ones((1,)), ELEMENTS
    )
    CASES["full_valid"] = Case(
        (),
        sized(lambda level, d, p, v: ops.Full(p, d, constant(1, d), v, level=level)),
        lambda: np.ones((1,)),
        ELEMENTS,
        TILE,
    )


class Loopback:
    """A site that receives ones, whatever the channel."""

    def __init__(self, shape: tuple[int, ...], dtype: DType) -> None:
        self.ones = np.ones(shape, np.dtype(dtype.numpy))

    def all_reduce(self, group: str, own: Any) -> Any:
        return own

    def recv(self, channel: str) -> Any:
        return self.ones


def received(level: Level, dtype: DType, physical: tuple[int, int], valid: tuple[int, int]) -> Op:
    SITE.set(Loopback(valid, dtype))
    return ops.collective.Recv(valid, dtype)


def collectives() -> None:
    types = ops.collective.NUMBERS
    CASES["all_reduce"] = Case(("MN",), simple("all_reduce"), lambda a: a, types, (Level.TENSOR,))
    CASES["recv"] = Case((), sized(received), lambda: np.ones((1,)), types, (Level.TENSOR,))


def base_name(case: str) -> str:
    """The registered name that a case is about: the longest that it begins with."""
    parts = case.split("_")
    while parts:
        for name in ("_".join(parts), "_".join(parts).rstrip("0123456789")):
            if name in KNOWN:
                return name
        parts.pop()
    return ""


for add_cases in (
    pairs,
    ones,
    choices,
    reductions,
    broadcasts,
    casts,
    directions,
    products,
    movements,
    views,
    creations,
):
    add_cases()
collectives()
KNOWN = frozenset(registry())

import op_cases_made  # noqa: E402  # they add to the cases above
import op_cases_more  # noqa: E402

assert op_cases_more.CASES is CASES is op_cases_made.CASES
