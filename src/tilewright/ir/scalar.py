"""Scalar expressions: indices, extents, conditions and the scalar operands of operations.

Expressions are immutable trees over SSA values. They are what offsets and valid shapes are made of, what a loop form
says about one element, and what analysis turns into affine sets. A plain Python ``int`` is an INDEX constant, so that
shapes stay readable: ``Scalar = int | Expr``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import TYPE_CHECKING

from tilewright.errors import UNKNOWN, DTypeError, Span
from tilewright.ir.dtypes import BOOL, FP32, INDEX, DType

if TYPE_CHECKING:
    from tilewright.ir.types import Type


class BinaryKind(Enum):
    """Two-operand arithmetic; the value is how it prints (a name is printed as a call).

    `SHL` and `SHR` of integers shift by any number of places: from the width of the dtype on, and by a negative number,
    nothing of the left side is left but its sign, which `SHR` of a signed one keeps."""

    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"
    FLOORDIV = "//"
    MOD = "%"
    MIN = "min"
    MAX = "max"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    EQ = "=="
    NE = "!="
    AND = "and"
    OR = "or"
    BIT_AND = "&"
    BIT_OR = "|"
    BIT_XOR = "^"
    SHL = "<<"
    SHR = ">>"

    @property
    def is_comparison(self) -> bool:
        return self in _COMPARISONS


_COMPARISONS = frozenset((BinaryKind.LT, BinaryKind.LE, BinaryKind.GT, BinaryKind.GE, BinaryKind.EQ, BinaryKind.NE))
_BOOLEAN = _COMPARISONS | {BinaryKind.AND, BinaryKind.OR}


class UnaryKind(Enum):
    """One-operand arithmetic; everything below `NOT` occurs in loop forms only, except `CAST`.

    `CAST` of a float to an integer truncates, saturates, and makes 0 of NaN; of an integer to a narrower one wraps;
    to a narrower float rounds half to even. `RINT` (half to even), `FLOOR`, `CEIL` and `TRUNC` round a float to an
    integral float."""

    NEG = "-"
    NOT = "not"
    CAST = "cast"
    ABS = "abs"
    EXP = "exp"
    LOG = "log"
    SQRT = "sqrt"
    RINT = "rint"
    FLOOR = "floor"
    CEIL = "ceil"
    TRUNC = "trunc"


class Expr:
    """Base of scalar expressions. Equality and hash are structural; SSA values compare by identity."""

    __slots__ = ()

    @property
    def dtype(self) -> DType:
        raise AssertionError("each expression states its dtype")

    def children(self) -> tuple[Scalar, ...]:
        return ()

    def with_children(self, children: tuple[Scalar, ...]) -> Scalar:
        """The expression over other children, folded again."""
        raise AssertionError(f"{type(self).__name__} has no children")

    def __add__(self, other: Scalar) -> Scalar:
        return binary(BinaryKind.ADD, self, other)

    def __radd__(self, other: Scalar) -> Scalar:
        return binary(BinaryKind.ADD, other, self)

    def __sub__(self, other: Scalar) -> Scalar:
        return binary(BinaryKind.SUB, self, other)

    def __rsub__(self, other: Scalar) -> Scalar:
        return binary(BinaryKind.SUB, other, self)

    def __mul__(self, other: Scalar) -> Scalar:
        return binary(BinaryKind.MUL, self, other)

    def __rmul__(self, other: Scalar) -> Scalar:
        return binary(BinaryKind.MUL, other, self)

    def __truediv__(self, other: Scalar) -> Scalar:
        return binary(BinaryKind.DIV, self, other)

    def __floordiv__(self, other: Scalar) -> Scalar:
        return binary(BinaryKind.FLOORDIV, self, other)

    def __mod__(self, other: Scalar) -> Scalar:
        return binary(BinaryKind.MOD, self, other)

    def __neg__(self) -> Scalar:
        return unary(UnaryKind.NEG, self)


Scalar = int | Expr
Shape = tuple[Scalar, ...]


class Const(Expr):
    """A typed constant. INDEX constants are plain ints instead."""

    __slots__ = ("_dtype", "value")

    def __init__(self, value: int | float | bool, dtype: DType) -> None:
        # One value, one constant: 1 as a float is 1.0, whatever it was made from.
        self.value = float(value) if dtype.is_float else value
        self._dtype = dtype

    @property
    def dtype(self) -> DType:
        return self._dtype

    def __eq__(self, other: object) -> bool:
        # repr tells -0.0 from 0.0 and NaN from itself, which == does not.
        return isinstance(other, Const) and self._dtype is other._dtype and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash((repr(self.value), self._dtype.name))

    def __repr__(self) -> str:
        return f"Const({self.value!r}, {self._dtype})"


class Value(Expr):
    """An SSA value: the result of one statement, a parameter, a loop variable. Compared by identity.

    `name` is a hint for people; the printer makes names unique."""

    __slots__ = ("__weakref__", "name", "span", "type")

    def __init__(self, name: str, type: Type, span: Span = UNKNOWN) -> None:
        self.name = name
        self.type = type
        self.span = span

    @property
    def dtype(self) -> DType:
        """The dtype of the scalar, or of the elements of a tensor or tile."""
        return self.type.dtype

    def __repr__(self) -> str:
        return f"%{self.name}"


class Binary(Expr):
    """`lhs kind rhs`, both of one dtype; comparisons give BOOL. Built by `binary`, which folds."""

    __slots__ = ("_dtype", "_hash", "kind", "lhs", "rhs")

    def __init__(self, kind: BinaryKind, lhs: Scalar, rhs: Scalar, dtype: DType) -> None:
        self.kind = kind
        self.lhs = lhs
        self.rhs = rhs
        self._dtype = dtype
        self._hash = hash((kind, lhs, rhs))

    @property
    def dtype(self) -> DType:
        return self._dtype

    def children(self) -> tuple[Scalar, ...]:
        return (self.lhs, self.rhs)

    def with_children(self, children: tuple[Scalar, ...]) -> Scalar:
        return binary(self.kind, *children)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Binary)
            and self._hash == other._hash
            and self.kind is other.kind
            and self._dtype is other._dtype
            and self.lhs == other.lhs
            and self.rhs == other.rhs
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"({self.lhs!r} {self.kind.value} {self.rhs!r})"


class Unary(Expr):
    """`kind operand`; a CAST's target is its dtype."""

    __slots__ = ("_dtype", "kind", "operand")

    def __init__(self, kind: UnaryKind, operand: Scalar, dtype: DType) -> None:
        self.kind = kind
        self.operand = operand
        self._dtype = dtype

    @property
    def dtype(self) -> DType:
        return self._dtype

    def children(self) -> tuple[Scalar, ...]:
        return (self.operand,)

    def with_children(self, children: tuple[Scalar, ...]) -> Scalar:
        (operand,) = children
        return cast(operand, self._dtype) if self.kind is UnaryKind.CAST else unary(self.kind, operand)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Unary)
            and self.kind is other.kind
            and self._dtype is other._dtype
            and self.operand == other.operand
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.operand, self._dtype.name))

    def __repr__(self) -> str:
        return f"{self.kind.value}({self.operand!r})"


class Choice(Expr):
    """Base: `then` where `condition` holds, else `otherwise`."""

    __slots__ = ("condition", "otherwise", "then")

    def __init__(self, condition: Scalar, then: Scalar, otherwise: Scalar) -> None:
        self.condition = condition
        self.then = then
        self.otherwise = otherwise

    @property
    def dtype(self) -> DType:
        return dtype_of(self.then)

    def children(self) -> tuple[Scalar, ...]:
        return (self.condition, self.then, self.otherwise)

    def with_children(self, children: tuple[Scalar, ...]) -> Scalar:
        condition, then, otherwise = children
        known = constant_value(condition)
        return type(self)(condition, then, otherwise) if known is None else then if known else otherwise

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Choice) and type(self) is type(other) and self.children() == other.children()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.children()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.condition!r}, {self.then!r}, {self.otherwise!r})"


class Select(Choice):
    """A choice that evaluates both. Occurs in loop forms."""

    __slots__ = ()


# --- building -----------------------------------------------------------------------------------------------------
def dtype_of(scalar: Scalar) -> DType:
    """INDEX for a plain int, else the expression's own dtype."""
    return scalar.dtype if isinstance(scalar, Expr) else INDEX


def constant(value: int | float | bool, dtype: DType) -> Scalar:
    """`value` as a constant of `dtype`; INDEX constants are plain ints."""
    if dtype is INDEX:
        return int(value)
    if dtype is BOOL:
        return Const(bool(value), BOOL)
    return Const(float(value) if dtype.is_float else int(value), dtype)


def constant_value(scalar: Scalar) -> int | float | bool | None:
    """The value of a constant, or None."""
    if isinstance(scalar, int):
        return scalar
    return scalar.value if isinstance(scalar, Const) else None


_FOLD: dict[BinaryKind, Callable[[int, int], int]] = {
    BinaryKind.ADD: lambda a, b: a + b,
    BinaryKind.SUB: lambda a, b: a - b,
    BinaryKind.MUL: lambda a, b: a * b,
    BinaryKind.FLOORDIV: lambda a, b: a // b,
    BinaryKind.MOD: lambda a, b: a % b,
    BinaryKind.MIN: min,
    BinaryKind.MAX: max,
    BinaryKind.LT: lambda a, b: a < b,
    BinaryKind.LE: lambda a, b: a <= b,
    BinaryKind.GT: lambda a, b: a > b,
    BinaryKind.GE: lambda a, b: a >= b,
    BinaryKind.EQ: lambda a, b: a == b,
    BinaryKind.NE: lambda a, b: a != b,
}


def _plus(base: Scalar, constant: int) -> Scalar:
    """`base + constant` with the constants at the end gathered into one."""
    if isinstance(base, Binary) and isinstance(base.rhs, int) and base.kind in (BinaryKind.ADD, BinaryKind.SUB):
        constant += base.rhs if base.kind is BinaryKind.ADD else -base.rhs
        base = base.lhs
    if constant == 0:
        return base
    return Binary(BinaryKind.ADD if constant > 0 else BinaryKind.SUB, base, abs(constant), INDEX)


def _fold_index(kind: BinaryKind, lhs: Scalar, rhs: Scalar) -> Scalar | None:
    """INDEX identities that keep printed offsets readable and equal extents equal."""
    if isinstance(lhs, int) and isinstance(rhs, int):
        if kind in (BinaryKind.FLOORDIV, BinaryKind.MOD) and rhs == 0:
            return None
        folded = _FOLD[kind](lhs, rhs) if kind in _FOLD else None
        return constant(folded, BOOL) if kind in _COMPARISONS and folded is not None else folded
    if rhs == 0 and kind in (BinaryKind.ADD, BinaryKind.SUB):
        return lhs
    if lhs == 0 and kind is BinaryKind.ADD:
        return rhs
    if kind is BinaryKind.MUL:
        if lhs == 0 or rhs == 0:
            return 0
        if rhs == 1 or lhs == 1:
            return lhs if rhs == 1 else rhs
    if rhs == 1 and kind is BinaryKind.FLOORDIV:
        return lhs
    if rhs == 1 and kind is BinaryKind.MOD:
        return 0
    if kind is BinaryKind.SUB and not isinstance(rhs, int):
        terms, rest = linear_terms(Binary(kind, lhs, rhs, INDEX))
        if not terms:
            return rest
    if kind in (BinaryKind.MIN, BinaryKind.MAX) and lhs == rhs:
        return lhs
    if kind in (BinaryKind.ADD, BinaryKind.SUB) and isinstance(rhs, int):
        return _plus(lhs, rhs if kind is BinaryKind.ADD else -rhs)
    return None


def binary(kind: BinaryKind, lhs: Scalar, rhs: Scalar) -> Scalar:
    """`lhs kind rhs`, folded where both are INDEX constants. The operands must have one dtype, except that a plain
    int literal takes the other operand's dtype."""
    left, right = dtype_of(lhs), dtype_of(rhs)
    if left is not right:
        if isinstance(rhs, int):
            rhs, right = constant(rhs, left), left
        elif isinstance(lhs, int):
            lhs, left = constant(lhs, right), right
        else:
            raise DTypeError(
                f"the operands of {kind.value!r} have two dtypes", found=f"{left} and {right}", help="cast one of them"
            )
    if left is INDEX:
        folded = _fold_index(kind, lhs, rhs)
        if folded is not None:
            return folded
    if kind in (BinaryKind.AND, BinaryKind.OR):
        return logic(kind, lhs, rhs)
    return Binary(kind, lhs, rhs, BOOL if kind in _BOOLEAN else left)


def logic(kind: BinaryKind, lhs: Scalar, rhs: Scalar) -> Scalar:
    """`lhs and rhs`, `lhs or rhs`. A side that is known decides, or leaves the other."""
    for known, other in ((lhs, rhs), (rhs, lhs)):
        value = constant_value(known)
        if value is not None:
            return known if bool(value) is (kind is BinaryKind.OR) else other
    return Binary(kind, lhs, rhs, BOOL)


def minimum(lhs: Scalar, rhs: Scalar) -> Scalar:
    return binary(BinaryKind.MIN, lhs, rhs)


def maximum(lhs: Scalar, rhs: Scalar) -> Scalar:
    return binary(BinaryKind.MAX, lhs, rhs)


def unary(kind: UnaryKind, operand: Scalar) -> Scalar:
    """`kind operand`; a negated constant is a constant."""
    value = constant_value(operand)
    if kind is UnaryKind.NEG and value is not None:
        return constant(-value, dtype_of(operand))
    if kind is UnaryKind.NOT and value is not None:
        return constant(not value, BOOL)
    return Unary(kind, operand, BOOL if kind is UnaryKind.NOT else dtype_of(operand))


def cast(operand: Scalar, dtype: DType) -> Scalar:
    """`operand` converted to `dtype`; nothing when it has it."""
    if dtype_of(operand) is dtype:
        return operand
    value = constant_value(operand)
    if value is not None and (isinstance(value, int) or dtype in (FP32,)):
        return constant(value, dtype)
    return Unary(UnaryKind.CAST, operand, dtype)


def linear_terms(scalar: Scalar) -> tuple[dict[Expr, int], int]:
    """`scalar`, an INDEX, as a sum: coefficient per term that is not itself a sum or a constant multiple, and the
    constant. Terms whose coefficients cancel are left out, so a difference of equal extents is a plain number."""
    terms: dict[Expr, int] = {}
    constant = 0
    todo: list[tuple[Scalar, int]] = [(scalar, 1)]
    while todo:
        part, factor = todo.pop()
        if isinstance(part, int):
            constant += factor * part
        elif isinstance(part, Binary) and part.kind is BinaryKind.ADD:
            todo += [(part.lhs, factor), (part.rhs, factor)]
        elif isinstance(part, Binary) and part.kind is BinaryKind.SUB:
            todo += [(part.lhs, factor), (part.rhs, -factor)]
        elif isinstance(part, Binary) and part.kind is BinaryKind.MUL and isinstance(part.rhs, int):
            todo.append((part.lhs, factor * part.rhs))
        elif isinstance(part, Binary) and part.kind is BinaryKind.MUL and isinstance(part.lhs, int):
            todo.append((part.rhs, factor * part.lhs))
        else:
            terms[part] = terms.get(part, 0) + factor
    return {term: factor for term, factor in terms.items() if factor}, constant


# --- walking ------------------------------------------------------------------------------------------------------
# Expressions share parts: what is used twice is one object. Walkers visit it once, else their time would grow with the
# number of paths to it, which doubles at every use.
def values_in(scalar: Scalar) -> Iterator[Value]:
    """The SSA values that `scalar` reads, in order, with repetitions, except inside parts that it shares."""
    todo: list[Scalar] = [scalar]
    seen: set[int] = set()
    while todo:
        part = todo.pop()
        if isinstance(part, Value):
            yield part
        elif isinstance(part, Expr) and id(part) not in seen:
            seen.add(id(part))
            todo += reversed(part.children())


def substitute(scalar: Scalar, replace: Callable[[Value], Scalar], done: dict[int, Scalar] | None = None) -> Scalar:
    """`scalar` with each SSA value replaced; the same object when nothing changes. Folds again. `done`: parts that
    were met before, by identity."""
    if isinstance(scalar, (int, Const)):
        return scalar
    if isinstance(scalar, Value):
        return replace(scalar)
    done = {} if done is None else done
    found = done.get(id(scalar))
    if found is None:
        old = scalar.children()
        new = tuple(substitute(child, replace, done) for child in old)
        same = all(a is b for a, b in zip(old, new, strict=True))
        found = done[id(scalar)] = scalar if same else scalar.with_children(new)
    return found
