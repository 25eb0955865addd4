"""Scalar expressions as `arith` operations.

`index` is 32 bits wide in the code that the assembler makes. Division and remainder of the language round down; where
both operands are known not to be negative the plain instructions do that, and elsewhere they are made of a floor
division.
"""

from __future__ import annotations

import numpy as np

from tilewright.codegen.pto.text import Name, Text
from tilewright.errors import UnsupportedError
from tilewright.ir.dtypes import BOOL, INDEX, INT32, DType
from tilewright.ir.scalar import (
    Binary,
    BinaryKind,
    Const,
    Scalar,
    Select,
    Unary,
    UnaryKind,
    Value,
    constant_value,
    dtype_of,
)  # fmt: skip

_INTEGER = {
    BinaryKind.ADD: "addi", BinaryKind.SUB: "subi", BinaryKind.MUL: "muli",
    BinaryKind.MIN: "minsi", BinaryKind.MAX: "maxsi", BinaryKind.AND: "andi", BinaryKind.OR: "ori",
    BinaryKind.BIT_AND: "andi", BinaryKind.BIT_OR: "ori", BinaryKind.BIT_XOR: "xori",
}  # fmt: skip
_FLOAT = {
    BinaryKind.ADD: "addf", BinaryKind.SUB: "subf", BinaryKind.MUL: "mulf", BinaryKind.DIV: "divf",
    BinaryKind.MIN: "minimumf", BinaryKind.MAX: "maximumf",
}  # fmt: skip
_TESTS = {
    BinaryKind.LT: "lt", BinaryKind.LE: "le", BinaryKind.GT: "gt", BinaryKind.GE: "ge",
    BinaryKind.EQ: "eq", BinaryKind.NE: "ne",
}  # fmt: skip
LARGEST_INDEX = (1 << 31) - 1
_KEEPS_SIGN = (BinaryKind.ADD, BinaryKind.MUL, BinaryKind.MIN, BinaryKind.FLOORDIV, BinaryKind.MOD)


def element_name(dtype: DType) -> str:
    """The element type in PTO text. Raises `UnsupportedError` for those that the format has not."""
    if dtype is BOOL:
        return "i1"
    if dtype.kind == "uint" or dtype.bits < 8:
        raise UnsupportedError(
            f"PTO text has no element type for {dtype}", required="signed integers and floats", help="cast it first"
        )
    return dtype.short


def literal(value: int | float | bool, dtype: DType) -> str:
    """The spelling of a constant: floats rounded to `dtype`, with a point; what is not finite as bits."""
    if dtype is BOOL:
        return "true" if value else "false"
    if dtype is INDEX and not -LARGEST_INDEX - 1 <= value <= LARGEST_INDEX:
        raise UnsupportedError(
            "an index of PTO text has 32 bits", required=f"at most {LARGEST_INDEX}", found=str(value),
            help="work on smaller tensors",
        )  # fmt: skip
    if not dtype.is_float:
        return f"{int(value)} : {element_name(dtype)}"
    with np.errstate(all="ignore"):
        rounded = np.asarray(value).astype(np.dtype(dtype.numpy))
    number = float(rounded)
    if not np.isfinite(number):
        bits = int(rounded.view(f"u{dtype.nbytes}"))
        return f"0x{bits:0{2 * dtype.nbytes}X} : {dtype.short}"
    mantissa, e, exponent = repr(number).partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{e}{exponent} : {dtype.short}"


class Arithmetic:
    """Emits expressions into a text; `names` says what stands for each SSA scalar."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.names: dict[Value, str] = {}
        self.not_negative: set[Value] = set()

    def bind(self, value: Value, name: str) -> None:
        self.names[value] = name

    def constant(self, value: int | float | bool, dtype: DType) -> str:
        """The name of a constant, defined at the top of the function."""
        spelling = literal(value, dtype)
        return self._constant(_stem(value, dtype), spelling)

    def address(self, nbytes: int) -> str:
        """The name of an i64 constant."""
        return self._constant(f"addr{nbytes}", f"{nbytes} : i64")

    def _constant(self, stem: str, spelling: str) -> str:
        def make() -> str:
            name = self.text.fresh(stem)
            self.text.line(f"{name} = arith.constant {spelling}")
            return name

        with self.text.hoisted(to_function=True):
            return self.text.memo(("constant", spelling), make)

    def index(self, scalar: Scalar) -> str:
        """The name of `scalar` as an `index`."""
        if isinstance(scalar, int):
            return self.constant(scalar, INDEX)
        name = self.name(scalar)
        if scalar.dtype is INDEX:
            return name
        return self._define("index", f"arith.index_cast {name} : {element_name(scalar.dtype)} to index")

    def typed(self, scalar: Scalar, dtype: DType) -> Name:
        """`scalar` with its type; a plain number becomes one of `dtype`."""
        value = constant_value(scalar)
        if isinstance(scalar, int) or value is not None:
            return Name(self.constant(scalar if isinstance(scalar, int) else value or 0, dtype), element_name(dtype))
        return Name(self.name(scalar), element_name(dtype_of(scalar)))

    def name(self, scalar: Scalar) -> str:
        """The name of `scalar`, in its own type; computed here unless it is visible already."""
        if isinstance(scalar, int):
            return self.constant(scalar, INDEX)
        match scalar:
            case Value():
                return self._value(scalar)
            case Const():
                return self.constant(scalar.value, scalar.dtype)
            case Binary():
                return self.text.memo(scalar, lambda: self._binary(scalar))
            case Unary():
                return self.text.memo(scalar, lambda: self._unary(scalar))
            case Select():
                return self.text.memo(scalar, lambda: self._select(scalar))
            case _:
                raise AssertionError(f"unknown scalar {type(scalar).__name__}")

    def _value(self, value: Value) -> str:
        found = self.names.get(value)
        if found is None:
            raise UnsupportedError(
                f"the scalar {value.name!r} is made on another core than the one that needs it",
                span=value.span,
                help="compute it from the kernel's arguments, or write it to a tensor",
            )
        return found

    def _define(self, stem: str, spelling: str) -> str:
        name = self.text.fresh(stem)
        self.text.line(f"{name} = {spelling}")
        return name

    # --- operations ---
    def _binary(self, scalar: Binary) -> str:
        operand_dtype = dtype_of(scalar.lhs)
        lhs, rhs = self.name(scalar.lhs), self.name(scalar.rhs)
        kind, spelled = scalar.kind, element_name(operand_dtype)
        if kind.is_comparison:
            test = _TESTS[kind]
            if operand_dtype.is_float:
                word = f"arith.cmpf {'u' if test == 'ne' else 'o'}{test}"
            else:
                word = f"arith.cmpi {'' if test in ('eq', 'ne') else 's'}{test}"
            return self._define("is", f"{word}, {lhs}, {rhs} : {spelled}")
        if kind in (BinaryKind.FLOORDIV, BinaryKind.MOD) and not operand_dtype.is_float:
            return self._division(scalar, lhs, rhs, spelled)
        if kind in (BinaryKind.SHL, BinaryKind.SHR):
            return self._shift(kind, lhs, rhs, scalar.rhs, operand_dtype)
        word = (_FLOAT if operand_dtype.is_float else _INTEGER).get(kind)
        if word is None:
            raise UnsupportedError(f"PTO text has no {kind.value!r} of {operand_dtype}", found=repr(scalar))
        return self._define("s", f"arith.{word} {lhs}, {rhs} : {spelled}")

    def _division(self, scalar: Binary, lhs: str, rhs: str, spelled: str) -> str:
        plain = self.is_not_negative(scalar.lhs) and self.is_not_negative(scalar.rhs)
        if plain:
            word = "divsi" if scalar.kind is BinaryKind.FLOORDIV else "remsi"
            return self._define("s", f"arith.{word} {lhs}, {rhs} : {spelled}")
        quotient = self._define("s", f"arith.floordivsi {lhs}, {rhs} : {spelled}")
        if scalar.kind is BinaryKind.FLOORDIV:
            return quotient
        product = self._define("s", f"arith.muli {quotient}, {rhs} : {spelled}")
        return self._define("s", f"arith.subi {lhs}, {product} : {spelled}")

    def _shift(self, kind: BinaryKind, lhs: str, rhs: str, places: Scalar, dtype: DType) -> str:
        """A shift by places that the plain instruction defines; by others only the sign is left."""
        spelled, bits, known = element_name(dtype), 32 if dtype is INDEX else dtype.bits, constant_value(places)
        word = "shli" if kind is BinaryKind.SHL else "shrsi"
        if known is not None and 0 <= known < bits:
            return self._define("s", f"arith.{word} {lhs}, {rhs} : {spelled}")
        zero, width, last = (self.constant(number, dtype) for number in (0, bits, bits - 1))
        low = self._define("is", f"arith.cmpi sge, {rhs}, {zero} : {spelled}")
        high = self._define("is", f"arith.cmpi slt, {rhs}, {width} : {spelled}")
        inside = self._define("is", f"arith.andi {low}, {high} : i1")
        beyond = zero if kind is BinaryKind.SHL else last
        safe = self._define("s", f"arith.select {inside}, {rhs}, {beyond} : {spelled}")
        shifted = self._define("s", f"arith.{word} {lhs}, {safe} : {spelled}")
        if kind is BinaryKind.SHR:
            return shifted
        return self._define("s", f"arith.select {inside}, {shifted}, {zero} : {spelled}")

    def is_not_negative(self, scalar: Scalar) -> bool:
        """Whether `scalar` is known to be at least 0."""
        value = constant_value(scalar)
        if value is not None:
            return value >= 0
        if isinstance(scalar, Value):
            return scalar in self.not_negative
        if isinstance(scalar, Binary) and scalar.kind in _KEEPS_SIGN:
            return all(map(self.is_not_negative, scalar.children()))
        return (
            isinstance(scalar, Binary)
            and scalar.kind is BinaryKind.MAX
            and any(map(self.is_not_negative, scalar.children()))
        )

    def _unary(self, scalar: Unary) -> str:
        source = dtype_of(scalar.operand)
        name = self.name(scalar.operand)
        match scalar.kind:
            case UnaryKind.NOT:
                return self._define("is", f"arith.xori {name}, {self.constant(True, BOOL)} : i1")
            case UnaryKind.NEG if source.is_float:
                return self._define("s", f"arith.negf {name} : {element_name(source)}")
            case UnaryKind.NEG:
                return self._define("s", f"arith.subi {self.constant(0, source)}, {name} : {element_name(source)}")
            case UnaryKind.CAST:
                return self._cast(name, source, scalar.dtype)
            case _:
                raise UnsupportedError(f"PTO text has no scalar {scalar.kind.value!r}", help="compute it on a tile")

    def _cast(self, name: str, source: DType, target: DType) -> str:
        old, new = element_name(source), element_name(target)
        if target is BOOL:
            zero = self.constant(0, source)
            word = "cmpf une" if source.is_float else "cmpi ne"
            return self._define("is", f"arith.{word}, {name}, {zero} : {old}")
        if source.is_float and target.is_float:
            if source.bits == target.bits:
                raise UnsupportedError(f"PTO text has no scalar conversion of {source} to {target}")
            word = "extf" if target.bits > source.bits else "truncf"
        elif INDEX in (source, target):
            other = target if source is INDEX else source
            if other.is_float:  # through an integer of the width that `index` has
                middle = self._cast(name, source, INT32)
                return self._cast(middle, INT32, target)
            word = "index_castui" if other is BOOL else "index_cast"
        elif source.is_float:
            word = "fptosi"
        elif target.is_float:
            word = "uitofp" if source is BOOL else "sitofp"
        elif source is BOOL:
            word = "extui"
        elif source.bits == target.bits:
            return name
        else:
            word = "extsi" if target.bits > source.bits else "trunci"
        return self._define("s", f"arith.{word} {name} : {old} to {new}")

    def _select(self, scalar: Select) -> str:
        condition, then, otherwise = (self.name(child) for child in scalar.children())
        return self._define("s", f"arith.select {condition}, {then}, {otherwise} : {element_name(scalar.dtype)}")


def _stem(value: int | float | bool, dtype: DType) -> str:
    if dtype is BOOL:
        return "true" if value else "false"
    if dtype is INDEX:
        return f"c{value}".replace("-", "m")
    return f"k_{dtype.short}"
