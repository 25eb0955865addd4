"""Functions that are written in the language itself, over its operations: activations, powers, softmax.

They take tensors and tiles alike, and are spliced into the kernel that calls them. Narrow floats are widened first and
rounded once at the end, so that the result is as good as the dtype allows.
"""

from __future__ import annotations

import tilewright.language as pl
from tilewright.runtime.jit import jit

SQRT_2_OVER_PI = 0.7978845608028654
TWO_OVER_SQRT_PI = 1.1283791670955126
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
    """``1 / (1 + exp(-x))``, elementwise."""
    y = wide(x)
    return narrow(pl.recip(pl.exp(-y) + 1.0), x)


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
    """The hyperbolic tangent, elementwise. Below 0.3 in magnitude its series, where the closed form would cancel."""
    y = wide(x)
    square = y * y
    series = (((square * (62.0 / 2835.0) - 17.0 / 315.0) * square + 2.0 / 15.0) * square - 1.0 / 3.0) * square + 1.0
    closed = pl.recip(pl.exp(y * 2.0) + 1.0) * -2.0 + 1.0
    return narrow(pl.sel(pl.cmp(square, 0.09, cmp_type=LESS), series * y, closed), x)


@jit.inline
def erf(x: pl.Tensor):
    """The error function, elementwise, within 2e-7: its series below 0.5 in magnitude, above it the rational
    approximation 7.1.26 of Abramowitz and Stegun's handbook."""
    y = wide(x)
    square = y * y
    high = (square * (-1.0 / 1320.0) + 1.0 / 216.0) * square - 1.0 / 42.0
    series = ((high * square + 1.0 / 10.0) * square - 1.0 / 3.0) * square + 1.0
    size = pl.abs(y)
    t = pl.recip(size * 0.3275911 + 1.0)
    tail = (((t * 1.061405429 - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592
    above = tail * t * pl.exp(-square) * -1.0 + 1.0
    signed = pl.sel(pl.cmp(y, 0.0, cmp_type=LESS), -above, above)
    return narrow(pl.sel(pl.cmp(square, 0.25, cmp_type=LESS), series * y * TWO_OVER_SQRT_PI, signed), x)


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
