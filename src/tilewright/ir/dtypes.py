"""Element types: name in the language, short name in PTO and LLVM text, NumPy equivalent, size in bits."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tilewright.errors import UnknownDTypeError


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """One element type. Compared by identity: there is one object per type."""

    name: str
    short: str
    bits: int
    kind: str
    """``float``, ``int``, ``uint`` or ``bool``."""
    numpy: npt.DTypeLike
    """The NumPy (or ml_dtypes) dtype whose values are this type's; sub-byte types use one byte per element."""

    def __repr__(self) -> str:
        return self.name

    @property
    def nbytes(self) -> int:
        """Bytes of one element; sub-byte types round up."""
        return (self.bits + 7) // 8

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")


FP32 = DType("FP32", "f32", 32, "float", np.dtype(np.float32))
FP16 = DType("FP16", "f16", 16, "float", np.dtype(np.float16))
BF16 = DType("BF16", "bf16", 16, "float", np.dtype(ml_dtypes.bfloat16))
FP8E4M3FN = DType("FP8E4M3FN", "f8E4M3FN", 8, "float", np.dtype(ml_dtypes.float8_e4m3fn))
FP8E5M2 = DType("FP8E5M2", "f8E5M2", 8, "float", np.dtype(ml_dtypes.float8_e5m2))
INT8 = DType("INT8", "i8", 8, "int", np.dtype(np.int8))
INT16 = DType("INT16", "i16", 16, "int", np.dtype(np.int16))
INT32 = DType("INT32", "i32", 32, "int", np.dtype(np.int32))
INT64 = DType("INT64", "i64", 64, "int", np.dtype(np.int64))
UINT8 = DType("UINT8", "u8", 8, "uint", np.dtype(np.uint8))
UINT16 = DType("UINT16", "u16", 16, "uint", np.dtype(np.uint16))
UINT32 = DType("UINT32", "u32", 32, "uint", np.dtype(np.uint32))
UINT64 = DType("UINT64", "u64", 64, "uint", np.dtype(np.uint64))
INT4 = DType("INT4", "i4", 4, "int", np.dtype(ml_dtypes.int4))
BOOL = DType("BOOL", "i1", 8, "bool", np.dtype(np.bool_))
INDEX = DType("INDEX", "index", 64, "int", np.dtype(np.int64))

ALL = (
    FP32, FP16, BF16, FP8E4M3FN, FP8E5M2,
    INT4, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, BOOL, INDEX,
)  # fmt: skip
BY_NAME = {dtype.name: dtype for dtype in ALL}
BY_SHORT = {dtype.short: dtype for dtype in ALL}


def by_name(name: str) -> DType:
    """The dtype called `name` (``FP32``) or, as targets and PTO text spell it, ``f32``."""
    found = BY_NAME.get(name) or BY_SHORT.get(name)
    if found is None:
        near = get_close_matches(name, [*BY_NAME, *BY_SHORT], 1)
        raise UnknownDTypeError(
            f"there is no dtype called {name!r}",
            found=name,
            help=f"did you mean {near[0]}?" if near else "one of " + ", ".join(BY_NAME),
        )
    return found


def from_numpy(dtype: npt.DTypeLike) -> DType:
    """The element type of a NumPy array's dtype."""
    wanted = np.dtype(dtype)
    for candidate in ALL:
        if candidate is not INDEX and np.dtype(candidate.numpy) == wanted:
            return candidate
    raise UnknownDTypeError(f"no element type stands for NumPy's {wanted}", help="one of " + ", ".join(BY_NAME))


def widened(dtype: DType) -> DType:
    """The dtype in which elements are computed: narrow floats in FP32, rounded afterwards."""
    return FP32 if dtype in (FP16, BF16) else dtype
