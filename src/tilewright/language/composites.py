"""Functions that are written in the language itself, over its operations: activations, powers, softmax.

They take tensors and tiles alike, and are spliced into the kernel that calls them. Narrow floats are widened first and
rounded once at the end, so that the result is as good as the dtype allows.
"""

from __future__ import annotations

import tilewright.language as pl
from tilewright.runtime.jit import jit

SQRT_2_OVER_PI = 0.7978845608028654
TWO_OVER_SQRT_PI_LESS_ONE = 0.1283791670955126
LESS = 2
"""`cmp_type` of `pl.cmp`."""


@jit.inline
def wide(x: pl.Tensor):
    """`x` in FP32."""
    if x.dtype != pl.FP32:
        x = pl.cast(x, pl.FP32)
    return x


@jit.inline
def narrow(y: pl.Tensor, x: pl.Tensor):
    """`y` in the dtype of `x`."""
    if x.dtype != pl.FP32:
        y = pl.cast(y, x.dtype)
    return y


@jit.inline
def sigmoid(x: pl.Tensor):
    """``1 / (1 + exp(-x))``, elementwise, within 2 units in the last place of FP32. Below 0 it is ``e / (1 + e)`` with
    ``e = exp(x)``, so that it does not overflow, and what the sum was rounded by is taken back."""
    y = wide(x)
    e = pl.exp(pl.abs(y) * -1.0)
    total = e + 1.0
    lost = e - (total - 1.0)
    below = e / total
    below = below - below * lost * (e * -0.5 + 1.0)
    return narrow(pl.sel(pl.cmp(y, 0.0, cmp_type=LESS), below, pl.recip(total)), x)


@jit.inline
def silu(x: pl.Tensor):
    """``x * sigmoid(x)``, elementwise."""
    y = wide(x)
    return narrow(y / (pl.exp(-y) + 1.0), x)


@jit.inline
def gelu(x: pl.Tensor):
    """``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))``, elementwise: the tanh form of GELU."""
    y = wide(x)
    inner = (y * y * 0.044715 + 1.0) * y * (-2.0 * SQRT_2_OVER_PI)
    return narrow(y / (pl.exp(inner) + 1.0), x)


@jit.inline
def tanh(x: pl.Tensor):
    """The hyperbolic tangent, elementwise, within 2 units in the last place of FP32: below 0.625 in magnitude a
    polynomial, fitted by weighted least squares, where the closed form would cancel."""
    y = wide(x)
    square = y * y
    p = ((square * -0.005717011168599129 + 0.020650554448366165) * square - 0.05374348536133766) * square
    p = ((p + 0.13331490755081177) * square - 0.3333328366279602) * square
    above = pl.recip(pl.exp(pl.abs(y) * 2.0) + 1.0) * -2.0 + 1.0
    signed = pl.sel(pl.cmp(y, 0.0, cmp_type=LESS), -above, above)
    return narrow(pl.sel(pl.cmp(square, 0.390625, cmp_type=LESS), p * y + y, signed), x)


@jit.inline
def erf(x: pl.Tensor):
    """The error function, elementwise, within 2 units in the last place of FP32: below 1 in magnitude ``x`` times a
    polynomial of its square, above it ``1 - exp(-x * x)`` times one of ``1 / (1 + x / 2)``, both fitted by weighted
    least squares."""
    y = wide(x)
    square = y * y
    p = ((square * 7.898660987848416e-05 - 0.000802480848506093) * square + 0.005190161522477865) * square
    p = (((p - 0.02685491554439068) * square + 0.11283617466688156) * square - 0.3761262893676758) * square
    below = (p + TWO_OVER_SQRT_PI_LESS_ONE) * y + y
    t = pl.recip(pl.abs(y) * 0.5 + 1.0)
    r = ((t * -0.20330090820789337 + 0.5562335848808289) * t + 0.029365019872784615) * t
    r = (r + 0.342271089553833) * t + 0.27549177408218384
    above = r * t * pl.exp(-square) * -1.0 + 1.0
    signed = pl.sel(pl.cmp(y, 0.0, cmp_type=LESS), -above, above)
    return narrow(pl.sel(pl.cmp(square, 1.0, cmp_type=LESS), below, signed), x)


@jit.inline
def pow(x: pl.Tensor, exponent: float):
    """``x ** exponent`` for positive `x`, elementwise, as ``exp(exponent * log(x))``: its relative error grows with
    the magnitude of that product. Other `x` give NaN."""
    y = wide(x)
    return narrow(pl.exp(pl.log(y) * exponent), x)


@jit.inline
def softmax(x: pl.Tensor):
    """``exp(x - m) / sum(exp(x - m))`` along each row, `m` the row's maximum."""
    y = wide(x)
    e = pl.exp(pl.row_expand_sub(y, pl.row_max(y)))
    return narrow(pl.row_expand_div(e, pl.row_sum(e)), x)
