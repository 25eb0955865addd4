"""Scalar expressions as LLVM instructions, for one lane or for many.

One walker serves indices, conditions and the elements of loop forms: what differs is where the values in the
expression come from. Arithmetic is that of each node's dtype; narrow floats are held as FP32.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.codegen.native.elements import Lanes, constant_text, register_type
from tilewright.codegen.native.transcendental import exponential, logarithm
from tilewright.errors import UnsupportedError
from tilewright.ir.dtypes import BF16, BOOL, FP16, DType, widened
from tilewright.ir.scalar import Binary, BinaryKind, Const, Expr, Scalar, Select, Unary, UnaryKind, Value, dtype_of

Lookup = Callable[[Value], str]

_FLOAT = {BinaryKind.ADD: "fadd", BinaryKind.SUB: "fsub", BinaryKind.MUL: "fmul", BinaryKind.DIV: "fdiv"}
_INTEGER = {BinaryKind.ADD: "add", BinaryKind.SUB: "sub", BinaryKind.MUL: "mul"}
_FLOAT_TEST = {
    BinaryKind.LT: "olt", BinaryKind.LE: "ole", BinaryKind.GT: "ogt", BinaryKind.GE: "oge",
    BinaryKind.EQ: "oeq", BinaryKind.NE: "une",
}  # fmt: skip
_SIGNED_TEST = {
    BinaryKind.LT: "slt", BinaryKind.LE: "sle", BinaryKind.GT: "sgt", BinaryKind.GE: "sge",
    BinaryKind.EQ: "eq", BinaryKind.NE: "ne",
}  # fmt: skip
_ROUNDINGS = {
    UnaryKind.RINT: "roundeven", UnaryKind.FLOOR: "floor", UnaryKind.CEIL: "ceil", UnaryKind.TRUNC: "trunc",
    UnaryKind.SQRT: "sqrt",
}  # fmt: skip


_BITS = {BinaryKind.BIT_AND: "and", BinaryKind.BIT_OR: "or", BinaryKind.BIT_XOR: "xor"}


def is_unsigned(dtype: DType) -> bool:
    return dtype.kind in ("uint", "bool")


class Arithmetic:
    """Emits expressions through `at`; `lookup` gives the register of each SSA value."""

    def __init__(self, at: Lanes, lookup: Lookup) -> None:
        self.at = at
        self.lookup = lookup

    def __call__(self, scalar: Scalar) -> str:
        """The register, or the constant, that holds `scalar`."""
        if isinstance(scalar, int):
            return self.at.const("i64", scalar)
        match scalar:
            case Value():
                return self.lookup(scalar)
            case Const():
                return self.at.const(register_type(scalar.dtype), constant_text(scalar.value, scalar.dtype))
            case Binary():
                return self.binary(scalar)
            case Unary():
                return self.unary(scalar.kind, self(scalar.operand), dtype_of(scalar.operand), scalar.dtype)
            case Select():
                condition, then, otherwise = (self(child) for child in scalar.children())
                return self.at.select(condition, register_type(scalar.dtype), then, otherwise)
            case Expr():
                raise AssertionError(f"unknown expression {type(scalar).__name__}")

    # --- two operands ---------------------------------------------------------------------------------------------
    def binary(self, node: Binary) -> str:
        return self.combine(node.kind, self(node.lhs), self(node.rhs), dtype_of(node.lhs))

    def combine(self, kind: BinaryKind, a: str, b: str, dtype: DType) -> str:
        """``a kind b`` of two registers of `dtype`, rounded to it."""
        at = self.at
        if kind.is_comparison:
            return self.compare(kind, a, b, dtype)
        if kind in (BinaryKind.AND, BinaryKind.OR):
            return at.binary(kind.value, "i1", a, b)
        if kind in (BinaryKind.MIN, BinaryKind.MAX):
            return self.extreme(kind, a, b, dtype)
        if dtype.is_float:
            if kind not in _FLOAT:
                raise UnsupportedError(f"native code has no {kind.value} of floats", found=f"{kind.value} of {dtype}")
            return at.rounded(at.binary(_FLOAT[kind], "float", a, b), dtype)
        if kind in _INTEGER:
            return at.binary(_INTEGER[kind], register_type(dtype), a, b)
        if kind in _BITS:
            return at.binary(_BITS[kind], register_type(dtype), a, b)
        if kind in (BinaryKind.SHL, BinaryKind.SHR):
            return self.shift(kind, a, b, dtype)
        return self.floor_division(kind, a, b, dtype)

    def compare(self, kind: BinaryKind, a: str, b: str, dtype: DType) -> str:
        """A comparison: with NaN on either side false, except `!=`."""
        at = self.at
        if dtype.is_float:
            return at.b.value(f"fcmp {_FLOAT_TEST[kind]} {at.type('float')} {a}, {b}")
        test = _SIGNED_TEST[kind]
        if is_unsigned(dtype) and test[0] == "s":
            test = "u" + test[1:]
        return at.b.value(f"icmp {test} {at.type(register_type(dtype))} {a}, {b}")

    def extreme(self, kind: BinaryKind, a: str, b: str, dtype: DType) -> str:
        """The larger or smaller; NaN where either is NaN."""
        test = BinaryKind.GT if kind is BinaryKind.MAX else BinaryKind.LT
        chosen = self.at.select(self.compare(test, a, b, dtype), register_type(dtype), a, b)
        if not dtype.is_float:
            return chosen
        # The comparison is false with NaN, which chose b: right unless a is the NaN.
        nan = self.at.b.value(f"fcmp uno {self.at.type('float')} {a}, {a}")
        return self.at.select(nan, "float", a, chosen)

    def shift(self, kind: BinaryKind, a: str, b: str, dtype: DType) -> str:
        """`a` shifted by `b` places; only its sign is left where the processor's own shift would not be defined."""
        at, element = self.at, register_type(dtype)
        inside = at.b.value(f"icmp ult {at.type(element)} {b}, {at.const(element, dtype.bits)}")
        if kind is BinaryKind.SHR and not is_unsigned(dtype):
            places = at.select(inside, element, b, at.const(element, dtype.bits - 1))
            return at.binary("ashr", element, a, places)
        places = at.select(inside, element, b, at.const(element, 0))
        shifted = at.binary("shl" if kind is BinaryKind.SHL else "lshr", element, a, places)
        return at.select(inside, element, shifted, at.const(element, 0))

    def floor_division(self, kind: BinaryKind, a: str, b: str, dtype: DType) -> str:
        """Quotient rounded down, or the remainder that has the divisor's sign; 0 where the divisor is 0."""
        if kind not in (BinaryKind.FLOORDIV, BinaryKind.MOD):
            raise UnsupportedError(f"native code has no {kind.value} of {dtype}", help="cast to FP32 first")
        at, element = self.at, register_type(dtype)
        zero, one = at.const(element, 0), at.const(element, 1)
        by_zero = at.b.value(f"icmp eq {at.type(element)} {b}, {zero}")
        if is_unsigned(dtype):
            safe = at.select(by_zero, element, one, b)
            result = at.binary("udiv" if kind is BinaryKind.FLOORDIV else "urem", element, a, safe)
            return at.select(by_zero, element, zero, result)
        minus = at.b.value(f"icmp eq {at.type(element)} {b}, {at.const(element, -1)}")
        unsafe = at.binary("or", "i1", by_zero, minus)
        safe = at.select(unsafe, element, one, b)  # by -1 the smallest integer would overflow, and trap
        remainder = at.binary("srem", element, a, safe)
        nonzero = at.b.value(f"icmp ne {at.type(element)} {remainder}, {zero}")
        crossed = at.binary("xor", element, remainder, safe)
        opposite = at.b.value(f"icmp slt {at.type(element)} {crossed}, {zero}")
        adjust = at.binary("and", "i1", nonzero, opposite)
        if kind is BinaryKind.MOD:
            moved = at.select(adjust, element, at.binary("add", element, remainder, safe), remainder)
            return at.select(unsafe, element, zero, moved)
        quotient = at.binary("sdiv", element, a, safe)
        lowered = at.select(adjust, element, at.binary("sub", element, quotient, one), quotient)
        negated = at.select(minus, element, at.binary("sub", element, zero, a), lowered)
        return at.select(by_zero, element, zero, negated)

    # --- one operand ----------------------------------------------------------------------------------------------
    def unary(self, kind: UnaryKind, x: str, source: DType, dtype: DType) -> str:
        """`kind` of a register of `source`; the result is of `dtype`."""
        at = self.at
        match kind:
            case UnaryKind.CAST:
                return self.cast(x, source, dtype)
            case UnaryKind.NOT:
                flag = x if source is BOOL else self.cast(x, source, BOOL)
                return at.binary("xor", "i1", flag, at.const("i1", "true"))
            case UnaryKind.NEG:
                if dtype.is_float:
                    return at.b.value(f"fneg {at.type('float')} {x}")
                return at.binary("sub", register_type(dtype), at.const(register_type(dtype), 0), x)
            case UnaryKind.ABS:
                if dtype.is_float:
                    return at.intrinsic("fabs", "float", x)
                if is_unsigned(dtype):
                    return x
                return at.intrinsic("abs", register_type(dtype), x, extra=", i1 false")
            case UnaryKind.EXP:
                return at.rounded(exponential(at, x), dtype)
            case UnaryKind.LOG:
                return at.rounded(logarithm(at, x), dtype)
            case UnaryKind.SQRT:
                return at.rounded(at.intrinsic("sqrt", "float", x), dtype)
            case UnaryKind.RINT | UnaryKind.FLOOR | UnaryKind.CEIL | UnaryKind.TRUNC:
                return self.integral(kind, x)

    def integral(self, kind: UnaryKind, x: str) -> str:
        """`x` rounded to an integral float."""
        at = self.at
        if at.processor.has_fma:
            return at.intrinsic(_ROUNDINGS[kind], "float", x)
        # Without an instruction for it: from 2**23 on every float is integral; below, adding 2**23 rounds half to even.
        size = at.intrinsic("fabs", "float", x)
        pivot = at.fconst(2.0**23)
        near = at.binary("fsub", "float", at.binary("fadd", "float", size, pivot), pivot)
        if kind is UnaryKind.TRUNC:
            near = self._step(near, size, "ogt", "fsub", near)
        near = at.intrinsic("copysign", "float", near, x)
        if kind is UnaryKind.FLOOR:
            near = self._step(near, x, "ogt", "fsub", near)
        if kind is UnaryKind.CEIL:
            near = self._step(near, x, "olt", "fadd", near)
        near = at.intrinsic("copysign", "float", near, x)
        small = at.b.value(f"fcmp olt {at.type('float')} {size}, {pivot}")
        return at.select(small, "float", near, x)

    def _step(self, near: str, x: str, test: str, operation: str, value: str) -> str:
        """`value` moved by 1 where `near` went too far from `x`."""
        at = self.at
        far = at.b.value(f"fcmp {test} {at.type('float')} {near}, {x}")
        return at.select(far, "float", at.binary(operation, "float", value, at.fconst(1.0)), value)

    # --- conversions ----------------------------------------------------------------------------------------------
    def cast(self, x: str, source: DType, dtype: DType) -> str:
        """A register of `source` as one of `dtype`, by the rules of `UnaryKind.CAST`."""
        at = self.at
        if source is dtype:
            return x
        element, wanted = register_type(source), register_type(dtype)
        if dtype is BOOL:
            if source.is_float:
                return at.b.value(f"fcmp une {at.type('float')} {x}, {at.fconst(0.0)}")
            return at.b.value(f"icmp ne {at.type(element)} {x}, {at.const(element, 0)}")
        if source.is_float:
            if dtype.is_float:
                return at.rounded(x, dtype) if widened(source) is not dtype or source in (FP16, BF16) else x
            name = "fptoui" if is_unsigned(dtype) else "fptosi"
            suffix = "f32" if at.lanes == 1 else f"v{at.lanes}f32"
            to = wanted if at.lanes == 1 else f"v{at.lanes}{wanted}"
            kind = at.type("float")
            return at.b.call(at.type(wanted), f"llvm.{name}.sat.{to}.{suffix}", f"{kind} {x}", kind)
        if dtype.is_float:
            operation = "uitofp" if is_unsigned(source) else "sitofp"
            return at.rounded(at.convert(operation, element, x, "float"), dtype)
        if source.bits == dtype.bits and source is not BOOL:
            return x
        if dtype.bits < source.bits and source is not BOOL:
            return at.convert("trunc", element, x, wanted)
        return at.convert("zext" if is_unsigned(source) else "sext", element, x, wanted)
