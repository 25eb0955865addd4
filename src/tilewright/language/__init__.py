"""What a kernel imports: ``import tilewright.language as pl``.

    @pl.jit
    def scaled_sum(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = a * 2.0 + b

Kernels are read, not executed: the names below are what their source may say. Everything that is not listed here is
an operation, ``pl.exp``, whose tensor and tile forms are ``pl.tensor.exp`` and ``pl.tile.exp``.
"""

from __future__ import annotations

from typing import Any

from tilewright.frontend import DynamicSymbol, parse
from tilewright.ir.dtypes import (
    BF16,
    BOOL,
    FP8E4M3FN,
    FP8E5M2,
    FP16,
    FP32,
    INDEX,
    INT4,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
)
from tilewright.ir.layout import Layout
from tilewright.ir.types import MemRef
from tilewright.language import array, loop, system, tensor, tile
from tilewright.language.annotations import InOut, Out, Scalar, Tensor, TensorView, Tile, TileView, Tuple
from tilewright.language.constants import (
    BLayout,
    CompactMode,
    DataType,
    FunctionType,
    Mem,
    PadValue,
    SLayout,
    TileLayout,
)
from tilewright.language.operations import member_of, operation_names
from tilewright.language.words import (
    at,
    bind_dynamic,
    cluster,
    cond,
    const,
    func_attr,
    max,
    min,
    parallel,
    pipeline,
    range,
    split_aiv,
    spmd,
    static_assert,
    static_print,
    static_range,
    unroll,
    while_,
    yield_,
)
from tilewright.runtime.jit import jit
from tilewright.runtime.program import function, program
from tilewright.text.names import Level, SplitMode, TensorLayout

# Last: they are kernels, and read the names above.
from tilewright.language.composites import erf, gelu, pow, sigmoid, silu, softmax, tanh  # isort: skip

MemorySpace = Mem
dynamic = DynamicSymbol

__all__ = [
    "BF16", "BLayout", "BOOL", "CompactMode", "DataType", "FP16", "FP32", "FP8E4M3FN", "FP8E5M2", "FunctionType",
    "INDEX", "INT16", "INT32", "INT4", "INT64", "INT8", "InOut", "Layout", "Level", "Mem", "MemRef", "MemorySpace",
    "Out", "PadValue", "SLayout", "Scalar", "SplitMode", "Tensor", "TensorLayout", "TensorView", "Tile", "TileLayout",
    "TileView", "Tuple", "UINT16", "UINT32", "UINT64", "UINT8", "array", "at", "bind_dynamic", "cluster", "cond",
    "const", "dynamic", "erf", "func_attr", "function", "gelu", "jit", "loop", "max", "min", "parallel", "parse",
    "pipeline", "pow", "program", "range", "sigmoid", "silu", "softmax", "split_aiv", "spmd", "static_assert",
    "static_print", "static_range", "system", "tanh", "tensor", "tile", "unroll", "while_", "yield_",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    return member_of("", name)


def __dir__() -> list[str]:
    return __all__ + operation_names(None)
