"""e ** x and ln x in FP32 on vectors, by polynomials: no call leaves the loop.

The coefficients were fitted for this file by weighted least squares on Chebyshev nodes, then rounded to FP32. Largest
errors found over all magnitudes: exp 1.1 ulp, log 0.9 ulp (measured by the tests against FP64). Powers that end below
the normal numbers come out denormal, not zero: results do not depend on how a machine treats denormal numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.codegen.native.elements import Lanes

# (e**r - 1 - r) / r**2 for |r| <= ln(2) / 2
_EXP = (0.4999999403953552, 0.1666651964187622, 0.04166839271783829, 0.008368780836462975, 0.001381446490995586)
# (ln(1 + f) - f + f**2 / 2) / f**3 for sqrt(1/2) - 1 <= f <= sqrt(2) - 1
_LOG = (
    0.3333331346511841, -0.25000008940696716, 0.2000211924314499, -0.1666799634695053, 0.14219550788402557,
    -0.12405591458082199, 0.11888174712657928, -0.11675640940666199, 0.06746601313352585,
)  # fmt: skip
# ln(2) as a part of 9 bits, whose multiples by an exponent are exact, and the rest.
_LN2_HIGH, _LN2_LOW = 355 / 512, -2.12194440e-4
_LOG2_E = 1.4426950408889634
_TO_INTEGER = 1.5 * 2**23
"""Added to a small float it leaves the nearest integer in the low bits, half to even."""
_PLAIN = 87.0
"""Below it in magnitude e ** x is a normal number, and its exponent one that a shift makes."""
_SQRT_HALF_BITS = 0x3F3504F3


def fused(at: Lanes, a: str, b: str, c: str) -> str:
    """``a * b + c``, in one rounding where the machine has it."""
    if at.processor.has_fma:
        return at.intrinsic("fma", "float", a, b, c)
    return at.binary("fadd", "float", at.binary("fmul", "float", a, b), c)


def _polynomial(at: Lanes, coefficients: Sequence[float], x: str) -> str:
    total = at.fconst(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = fused(at, total, x, at.fconst(coefficient))
    return total


def _clamped(at: Lanes, x: str, low: float, high: float) -> str:
    """`x` within bounds; NaN stays NaN."""
    over = at.b.value(f"fcmp ogt {at.type('float')} {x}, {at.fconst(high)}")
    x = at.select(over, "float", at.fconst(high), x)
    under = at.b.value(f"fcmp olt {at.type('float')} {x}, {at.fconst(low)}")
    return at.select(under, "float", at.fconst(low), x)


def exponential(at: Lanes, x: str) -> str:
    """e ** x, at most 2 ulp off; exact at 0 and the infinities, NaN of NaN."""
    if at.processor.has_avx512 and at.lanes == 16:
        return _scaled(at, *_power(at, _clamped(at, x, -104.5, 89.0)))
    # Where every lane's result is a normal number, which is nearly always, its exponent is a sum of integers.
    kind = at.type("float")
    test = at.b.value(f"fcmp olt {kind} {at.intrinsic('fabs', 'float', x)}, {at.fconst(_PLAIN)}")
    if at.lanes > 1:
        bits = at.b.value(f"bitcast <{at.lanes} x i1> {test} to i{at.lanes}")
        test = at.b.value(f"icmp eq i{at.lanes} {bits}, -1")

    def plain() -> str:
        power, shifted = _power(at, x)
        moved = at.binary("shl", "i32", shifted, at.const("i32", 23))
        total = at.binary("add", "i32", at.convert("bitcast", "float", power, "i32"), moved)
        return at.convert("bitcast", "i32", total, "float")

    def any_number() -> str:
        return _scaled(at, *_power(at, _clamped(at, x, -104.5, 89.0)))

    return at.b.either(test, kind, plain, any_number)


def _power(at: Lanes, x: str) -> tuple[str, str]:
    """``2 ** f`` and an integer whose low bits are n, where ``n + f`` is x / ln 2."""
    shifted = fused(at, x, at.fconst(_LOG2_E), at.fconst(_TO_INTEGER))
    n = at.binary("fsub", "float", shifted, at.fconst(_TO_INTEGER))
    r = fused(at, n, at.fconst(-_LN2_HIGH), x)
    r = fused(at, n, at.fconst(-_LN2_LOW), r)
    square = at.binary("fmul", "float", r, r)
    # In pairs, not one after the other: what takes time is the chain from x to the result.
    low, high = (fused(at, at.fconst(_EXP[i + 1]), r, at.fconst(_EXP[i])) for i in (0, 2))
    high = fused(at, at.fconst(_EXP[4]), square, high)
    power = fused(at, fused(at, high, square, low), square, r)
    return at.binary("fadd", "float", power, at.fconst(1.0)), at.convert("bitcast", "float", shifted, "i32")


def _scaled(at: Lanes, value: str, shifted: str) -> str:
    """``value * 2**n``, rounded once where it becomes denormal; n is in the low bits of `shifted`."""
    exponent = at.binary("sub", "i32", shifted, at.const("i32", 0x4B400000))
    if at.processor.has_avx512 and at.lanes == 16:
        kind = at.type("float")
        return at.b.call(
            kind, "llvm.ldexp.v16f32.v16i32", f"{kind} {value}, <16 x i32> {exponent}", f"{kind}, <16 x i32>"
        )
    # The scale alone may leave the range of FP32, so it is applied in two halves; the first is exact.
    half = at.binary("ashr", "i32", exponent, at.const("i32", 1))
    for part in (half, at.binary("sub", "i32", exponent, half)):
        biased = at.binary("add", "i32", part, at.const("i32", 127))
        scale = at.convert("bitcast", "i32", at.binary("shl", "i32", biased, at.const("i32", 23)), "float")
        value = at.binary("fmul", "float", value, scale)
    return value


def logarithm(at: Lanes, x: str) -> str:
    """ln x, at most 2 ulp off; minus infinity at 0, NaN below, the infinity at the infinity."""
    kind = at.type("float")
    tiny = at.b.value(f"fcmp olt {kind} {x}, {at.fconst(2.0**-126)}")
    normal = at.select(tiny, "float", at.binary("fmul", "float", x, at.fconst(2.0**23)), x)
    bits = at.convert("bitcast", "float", normal, "i32")
    moved = at.binary("sub", "i32", bits, at.const("i32", _SQRT_HALF_BITS))
    exponent = at.binary("ashr", "i32", moved, at.const("i32", 23))
    fraction = at.binary("and", "i32", moved, at.const("i32", 0x7FFFFF))
    mantissa = at.binary("add", "i32", fraction, at.const("i32", _SQRT_HALF_BITS))
    f = at.binary("fsub", "float", at.convert("bitcast", "i32", mantissa, "float"), at.fconst(1.0))
    borrowed = at.select(tiny, "i32", at.const("i32", -23), at.const("i32", 0))
    e = at.convert("sitofp", "i32", at.binary("add", "i32", exponent, borrowed), "float")
    square = at.binary("fmul", "float", f, f)
    cube = at.binary("fmul", "float", square, f)
    tail = at.binary("fmul", "float", _polynomial(at, _LOG, f), cube)
    tail = fused(at, e, at.fconst(_LN2_LOW), tail)
    tail = fused(at, square, at.fconst(-0.5), tail)
    result = fused(at, e, at.fconst(_LN2_HIGH), at.binary("fadd", "float", f, tail))
    zero = at.b.value(f"fcmp oeq {kind} {x}, {at.fconst(0.0)}")
    outside = at.select(zero, "float", at.fconst(float("-inf")), at.fconst(float("nan")))
    positive = at.b.value(f"fcmp ogt {kind} {x}, {at.fconst(0.0)}")
    result = at.select(positive, "float", result, outside)
    infinite = at.b.value(f"fcmp oeq {kind} {x}, {at.fconst(float('inf'))}")
    return at.select(infinite, "float", x, result)
