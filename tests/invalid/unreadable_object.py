"""A Python object that a kernel cannot use."""

import tilewright.language as pl
from tilewright.ir.dtypes import FP32
from tilewright.ir.types import TensorType

ARGUMENTS = [TensorType((64, 64), FP32)]


SETTINGS = {"scale": 2.0}


@pl.jit
def kernel(a: pl.Tensor):
    return a * SETTINGS["scale"]
