"""A kernel read without arguments whose annotations leave the shape open."""

import tilewright.language as pl

ARGUMENTS = [None]


@pl.jit
def kernel(a: pl.Tensor):
    return a + 1.0
