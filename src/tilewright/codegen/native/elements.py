"""Elements in memory and in registers.

| dtype | in memory | in a register |
| --- | --- | --- |
| FP32 | float | float |
| FP16, BF16 | 2 bytes | float: widened when read, rounded once, half to even, when written |
| integers, INDEX | their bytes | an integer of their width |
| BOOL | one byte, 0 or 1 | i1 |

BF16 is rounded with integer arithmetic: the processor's own instruction takes denormal numbers for zero. FP16 uses
the processor's conversion where there is one, else integer arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.codegen.native.builder import Builder, Index, float_text, splat, vector_type
from tilewright.codegen.native.llvm import Processor
from tilewright.errors import UnsupportedError
from tilewright.ir.dtypes import (
    BF16,
    BOOL,
    FP16,
    FP32,
    INDEX,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DType,
    widened,
)  # fmt: skip

SUPPORTED = (FP32, FP16, BF16, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, BOOL, INDEX)


def check_dtype(dtype: DType) -> None:
    """Raises `UnsupportedError` for an element type that native code has no arithmetic for."""
    if dtype not in SUPPORTED:
        raise UnsupportedError(
            f"native code has no arithmetic for {dtype}",
            required=" or ".join(known.name for known in SUPPORTED),
            found=dtype.name,
            help="cast to one of these before computing",
        )


def register_type(dtype: DType) -> str:
    """LLVM's type of one lane."""
    check_dtype(dtype)
    if dtype.is_float:
        return "float"
    return "i1" if dtype is BOOL else f"i{dtype.bits}"


def memory_type(dtype: DType) -> str:
    """LLVM's type of one element in memory."""
    check_dtype(dtype)
    if dtype is FP32:
        return "float"
    return f"i{dtype.bits}"


def constant_text(value: float, dtype: DType) -> str:
    """A constant of `dtype` as one lane. Floats are rounded to the dtype first."""
    if dtype.is_float:
        with np.errstate(all="ignore"):
            return float_text(float(np.asarray(value).astype(np.dtype(dtype.numpy)).astype(np.float32)))
    if dtype is BOOL:
        return "true" if value else "false"
    return str(int(value))


@dataclass(slots=True)
class Lanes:
    """Emits for so many lanes at once. `mask`, a vector of i1, says which of them exist; None: all."""

    b: Builder
    processor: Processor
    lanes: int
    mask: str | None = None

    # --- pieces ---------------------------------------------------------------------------------------------------
    def type(self, element: str) -> str:
        return vector_type(element, self.lanes)

    def const(self, element: str, constant: str | int) -> str:
        return splat(element, str(constant), self.lanes)

    def fconst(self, value: float) -> str:
        return splat("float", float_text(value), self.lanes)

    def binary(self, operation: str, element: str, a: str, b: str) -> str:
        return self.b.value(f"{operation} {self.type(element)} {a}, {b}")

    def convert(self, operation: str, source: str, value: str, target: str) -> str:
        return self.b.value(f"{operation} {self.type(source)} {value} to {self.type(target)}")

    def select(self, condition: str, element: str, then: str, otherwise: str) -> str:
        kind = self.type(element)
        return self.b.value(f"select {self.type('i1')} {condition}, {kind} {then}, {kind} {otherwise}")

    def intrinsic(self, name: str, element: str, *values: str, extra: str = "") -> str:
        kind = self.type(element)
        suffix = ("f32" if element == "float" else element) if self.lanes == 1 else (
            f"v{self.lanes}{'f32' if element == 'float' else element}"
        )  # fmt: skip
        arguments = ", ".join(f"{kind} {value}" for value in values) + extra
        types = ", ".join([kind] * len(values)) + (", i1" if extra else "")
        return self.b.call(kind, f"llvm.{name}.{suffix}", arguments, types)

    def broadcast(self, element: str, value: str) -> str:
        """One lane's value in every lane."""
        if self.lanes == 1:
            return value
        kind = self.type(element)
        first = self.b.value(f"insertelement {kind} poison, {element} {value}, i64 0")
        return self.b.value(f"shufflevector {kind} {first}, {kind} poison, <{self.lanes} x i32> zeroinitializer")

    # --- memory ---------------------------------------------------------------------------------------------------
    def load_raw(self, pointer: str, dtype: DType, otherwise: str | None = None) -> str:
        """The bytes of consecutive elements; lanes that do not exist hold `otherwise`, by default zeros."""
        element = memory_type(dtype)
        kind = self.type(element)
        if self.mask is None:
            return self.b.value(f"load {kind}, ptr {pointer}, align {dtype.nbytes}")
        suffix = f"v{self.lanes}{'f32' if element == 'float' else element}"
        passed = otherwise or "zeroinitializer"
        mask = f"<{self.lanes} x i1>"
        return self.b.call(
            kind,
            f"llvm.masked.load.{suffix}.p0",
            f"ptr align {dtype.nbytes} {pointer}, {mask} {self.mask}, {kind} {passed}",
            f"ptr, {mask}, {kind}",
        )

    def load(self, pointer: str, dtype: DType) -> str:
        """Consecutive elements, as they are computed with."""
        return self.from_memory(self.load_raw(pointer, dtype), dtype)

    def store(self, value: str, pointer: str, dtype: DType) -> None:
        """Consecutive elements, rounded to their dtype; only lanes that exist are written."""
        self.store_raw(self.to_memory(value, dtype), pointer, dtype)

    def store_raw(self, raw: str, pointer: str, dtype: DType) -> None:
        """The bytes of consecutive elements."""
        element = memory_type(dtype)
        kind = self.type(element)
        if self.mask is None:
            self.b.emit(f"store {kind} {raw}, ptr {pointer}, align {dtype.nbytes}")
            return
        suffix = f"v{self.lanes}{'f32' if element == 'float' else element}"
        mask = f"<{self.lanes} x i1>"
        self.b.call(
            "void",
            f"llvm.masked.store.{suffix}.p0",
            f"{kind} {raw}, ptr align {dtype.nbytes} {pointer}, {mask} {self.mask}",
            f"{kind}, ptr, {mask}",
        )

    def gather_raw(self, pointer: str, dtype: DType, step: Index) -> str:
        """The bytes of elements that lie `step` elements apart."""
        element = memory_type(dtype)
        kind, mask = self.type(element), f"<{self.lanes} x i1>"
        if self.mask is not None:
            suffix = f"v{self.lanes}{'f32' if element == 'float' else element}.v{self.lanes}p0"
            where = self._pointers(pointer, element, step)
            return self.b.call(
                kind,
                f"llvm.masked.gather.{suffix}",
                f"<{self.lanes} x ptr> align {dtype.nbytes} {where}, {mask} {self.mask}, {kind} zeroinitializer",
                f"<{self.lanes} x ptr>, {mask}, {kind}",
            )
        value = "poison"
        for lane in range(self.lanes):
            place = self.b.address(pointer, element, self.b.mul(step, lane))
            single = self.b.value(f"load {element}, ptr {place}, align {dtype.nbytes}")
            value = self.b.value(f"insertelement {kind} {value}, {element} {single}, i64 {lane}")
        return value

    def scatter_raw(self, raw: str, pointer: str, dtype: DType, step: Index) -> None:
        """The bytes of elements that lie `step` elements apart."""
        element = memory_type(dtype)
        kind, mask = self.type(element), f"<{self.lanes} x i1>"
        if self.mask is not None:
            suffix = f"v{self.lanes}{'f32' if element == 'float' else element}.v{self.lanes}p0"
            where = self._pointers(pointer, element, step)
            self.b.call(
                "void",
                f"llvm.masked.scatter.{suffix}",
                f"{kind} {raw}, <{self.lanes} x ptr> align {dtype.nbytes} {where}, {mask} {self.mask}",
                f"{kind}, <{self.lanes} x ptr>, {mask}",
            )
            return
        for lane in range(self.lanes):
            single = self.b.value(f"extractelement {kind} {raw}, i64 {lane}")
            place = self.b.address(pointer, element, self.b.mul(step, lane))
            self.b.emit(f"store {element} {single}, ptr {place}, align {dtype.nbytes}")

    def _pointers(self, pointer: str, element: str, step: Index) -> str:
        lanes = ", ".join(f"i64 {lane}" for lane in range(self.lanes))
        apart = self.broadcast("i64", str(step))
        offsets = self.b.value(f"mul <{self.lanes} x i64> {apart}, <{lanes}>")
        return self.b.value(f"getelementptr {element}, ptr {pointer}, <{self.lanes} x i64> {offsets}")

    def from_memory(self, raw: str, dtype: DType) -> str:
        if dtype is BF16:
            wide = self.convert("zext", "i16", raw, "i32")
            return self.convert("bitcast", "i32", self.binary("shl", "i32", wide, self.const("i32", 16)), "float")
        if dtype is FP16:
            return self._half_to_float(raw)
        if dtype is BOOL:
            return self.b.value(f"icmp ne {self.type('i8')} {raw}, {self.const('i8', 0)}")
        return raw

    def to_memory(self, value: str, dtype: DType) -> str:
        if dtype is BF16:
            return self.convert("trunc", "i32", self._bfloat_bits(value), "i16")
        if dtype is FP16:
            return self._float_to_half(value)
        if dtype is BOOL:
            return self.convert("zext", "i1", value, "i8")
        return value

    # --- narrow floats --------------------------------------------------------------------------------------------
    def rounded(self, value: str, dtype: DType) -> str:
        """A float rounded to a narrower dtype, still as a float."""
        if widened(dtype) is dtype:
            return value
        return self.from_memory(self.to_memory(value, dtype), dtype)

    def _bfloat_bits(self, value: str) -> str:
        """The upper half of an FP32, half to even, in the lower half of an i32. NaN stays NaN, its sign kept."""
        bits = self.convert("bitcast", "float", value, "i32")
        upper = self.binary("lshr", "i32", bits, self.const("i32", 16))
        odd = self.binary("and", "i32", upper, self.const("i32", 1))
        half = self.binary("add", "i32", odd, self.const("i32", 0x7FFF))
        rounded = self.binary("lshr", "i32", self.binary("add", "i32", bits, half), self.const("i32", 16))
        quiet = self.binary("or", "i32", upper, self.const("i32", 0x40))
        nan = self.b.value(f"fcmp uno {self.type('float')} {value}, {value}")
        return self.select(nan, "i32", quiet, rounded)

    def _half_to_float(self, raw: str) -> str:
        if self.processor.has_fma:
            return self.convert("fpext", "half", self.convert("bitcast", "i16", raw, "half"), "float")
        wide = self.convert("zext", "i16", raw, "i32")
        sign = self.binary("and", "i32", wide, self.const("i32", 0x8000))
        sign = self.binary("shl", "i32", sign, self.const("i32", 16))
        size = self.binary("and", "i32", wide, self.const("i32", 0x7FFF))
        moved = self.binary("shl", "i32", size, self.const("i32", 13))
        # Multiplying moves the exponent to where FP32 has it, and makes denormal numbers normal on the way.
        scaled = self.binary("fmul", "float", self.convert("bitcast", "i32", moved, "float"), self.fconst(2.0**112))
        special = self.b.value(f"icmp uge {self.type('i32')} {size}, {self.const('i32', 0x7C00)}")
        infinite = self.binary("or", "i32", moved, self.const("i32", 0x7F800000))
        bits = self.select(special, "i32", infinite, self.convert("bitcast", "float", scaled, "i32"))
        return self.convert("bitcast", "i32", self.binary("or", "i32", bits, sign), "float")

    def _float_to_half(self, value: str) -> str:
        if self.processor.has_fma:
            half = self.convert("fptrunc", "float", value, "half")
            return self.convert("bitcast", "half", half, "i16")
        bits = self.convert("bitcast", "float", value, "i32")
        size = self.binary("and", "i32", bits, self.const("i32", 0x7FFFFFFF))
        odd = self.binary("and", "i32", self.binary("lshr", "i32", size, self.const("i32", 13)), self.const("i32", 1))
        # The exponent's offset goes from 127 to 15; 0xFFF and the odd bit round half to even.
        moved = self.binary("add", "i32", size, self.const("i32", 0xFFF - (112 << 23)))
        normal = self.binary("lshr", "i32", self.binary("add", "i32", moved, odd), self.const("i32", 13))
        # Adding a power of two lets the processor round where a denormal FP16 ends.
        pivot = 126 << 23
        summed = self.binary("fadd", "float", self.convert("bitcast", "i32", size, "float"), self.fconst(0.5))
        tiny = self.binary("sub", "i32", self.convert("bitcast", "float", summed, "i32"), self.const("i32", pivot))
        is_tiny = self.b.value(f"icmp ult {self.type('i32')} {size}, {self.const('i32', 113 << 23)}")
        finite = self.select(is_tiny, "i32", tiny, normal)
        is_nan = self.b.value(f"icmp ugt {self.type('i32')} {size}, {self.const('i32', 0x7F800000)}")
        huge = self.select(is_nan, "i32", self.const("i32", 0x7E00), self.const("i32", 0x7C00))
        is_huge = self.b.value(f"icmp uge {self.type('i32')} {size}, {self.const('i32', 143 << 23)}")
        magnitude = self.select(is_huge, "i32", huge, finite)
        sign = self.binary("lshr", "i32", bits, self.const("i32", 16))
        sign = self.binary("and", "i32", sign, self.const("i32", 0x8000))
        return self.convert("trunc", "i32", self.binary("or", "i32", magnitude, sign), "i16")


def tail_mask(b: Builder, count: Index, lanes: int) -> str:
    """A mask whose first `count` lanes, fewer than `lanes`, exist."""
    bits = f"i{lanes}"
    if isinstance(count, int):
        ones = str((1 << count) - 1)
    else:
        shift = count if lanes == 64 else b.value(f"trunc i64 {count} to {bits}")
        ones = b.value(f"sub {bits} {b.value(f'shl {bits} 1, {shift}')}, 1")
    return b.value(f"bitcast {bits} {ones} to <{lanes} x i1>", "m")
