"""Structural equality and hash: two programs are equal when one becomes the other by renaming values.

Spans and names of values do not count; names of functions, types, attributes and the order of statements do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.ir.nodes import Block, Call, For, If, Let, Probe, Scope, Stmt, Yield
from tilewright.ir.op import Kind, Op
from tilewright.ir.scalar import Const, Expr, Scalar, Value, substitute
from tilewright.ir.types import Type

if TYPE_CHECKING:
    from tilewright.ir.function import Function, Program


class _Matcher:
    """Walks two programs side by side; `pairs` maps values of the left to those of the right."""

    def __init__(self) -> None:
        self.pairs: dict[Value, Value] = {}
        self.taken: set[Value] = set()

    def define(self, left: tuple[Value, ...], right: tuple[Value, ...]) -> bool:
        if len(left) != len(right):
            return False
        for a, b in zip(left, right, strict=True):
            if b in self.taken or not self.types(a.type, b.type):
                return False
            self.pairs[a] = b
            self.taken.add(b)
        return True

    def types(self, left: Type, right: Type) -> bool:
        return left is right or left.substitute(self._partner) is right

    def _partner(self, value: Value) -> Scalar:
        return self.pairs.get(value, value)

    def scalars(self, left: Scalar | None, right: Scalar | None) -> bool:
        if left is None or right is None:
            return left is right
        if isinstance(left, Value):
            return self.pairs.get(left, left) is right
        if isinstance(left, int | Const):
            return type(left) is type(right) and left == right
        return substitute(left, self._partner) == right

    def all_scalars(self, left: tuple[Scalar, ...], right: tuple[Scalar, ...]) -> bool:
        return len(left) == len(right) and all(self.scalars(a, b) for a, b in zip(left, right, strict=True))

    def ops(self, left: Op, right: Op) -> bool:
        if type(left) is not type(right) or left.level is not right.level:
            return False
        return all(
            self._fields(field.kind, getattr(left, field.name), getattr(right, field.name)) for field in left.fields
        )

    def _fields(self, kind: Kind, left: Any, right: Any) -> bool:
        if kind is Kind.ATTRIBUTE:
            return left is right or (type(left) is type(right) and left == right)
        if kind is Kind.SCALARS and left is not None and right is not None:
            return self.all_scalars(left, right)
        return self.scalars(left, right)

    def blocks(self, left: Block, right: Block) -> bool:
        return len(left) == len(right) and all(self.stmts(a, b) for a, b in zip(left, right, strict=True))

    def stmts(self, left: Stmt, right: Stmt) -> bool:
        if type(left) is not type(right) or not self._own(left, right):
            return False
        if not self.define(left.block_args(), right.block_args()):
            return False
        inner = zip(left.blocks(), right.blocks(), strict=True)
        return all(self.blocks(a, b) for a, b in inner) and self.define(left.defs(), right.defs())

    def _own(self, left: Stmt, right: Stmt) -> bool:
        """What the two statements read and say themselves."""
        match left, right:
            case Let(), Let():
                if isinstance(left.value, Op):
                    return isinstance(right.value, Op) and self.ops(left.value, right.value)
                return not isinstance(right.value, Op) and self.scalars(left.value, right.value)
            case Call(), Call():
                return left.callee == right.callee and self.all_scalars(left.args, right.args)
            case For(), For():
                bounds = self.all_scalars((left.start, left.stop, left.step), (right.start, right.stop, right.step))
                same = (left.kind, left.stage, left.conditional) == (right.kind, right.stage, right.conditional)
                return bounds and same and self.all_scalars(left.inits, right.inits)
            case If(), If():
                return self.scalars(left.condition, right.condition)
            case Scope(), Scope():
                return left.kind == right.kind and left.options == right.options
            case Probe(), Probe():
                return (
                    left.kind == right.kind
                    and len(left.parts) == len(right.parts)
                    and all(
                        a == b if isinstance(a, str) or isinstance(b, str) else self.scalars(a, b)
                        for a, b in zip(left.parts, right.parts, strict=True)
                    )
                )
            case Yield(), Yield():
                return self.all_scalars(left.values, right.values)
            case _:
                raise AssertionError(f"unknown statement {type(left).__name__}")


def equal_functions(left: Function, right: Function) -> bool:
    """Whether the functions are equal up to renaming of values."""
    if left is right:
        return True
    if (left.name, left.kind, left.attrs) != (right.name, right.kind, right.attrs):
        return False
    if [p.direction for p in left.params] != [p.direction for p in right.params]:
        return False
    matcher = _Matcher()
    params = matcher.define(tuple(p.value for p in left.params), tuple(p.value for p in right.params))
    return params and matcher.blocks(left.body, right.body)


def equal_programs(left: Program, right: Program) -> bool:
    """Whether the programs have the same entry and equal functions in the same order."""
    return (
        left.entry == right.entry
        and len(left.functions) == len(right.functions)
        and all(equal_functions(a, b) for a, b in zip(left.functions, right.functions, strict=True))
    )


class _Hasher:
    """Numbers values in the order in which they are defined."""

    def __init__(self) -> None:
        self.numbers: dict[Value, Value] = {}

    def scalar(self, value: Any) -> int:
        if isinstance(value, Value):
            number = self.numbers.get(value)
            return hash(("free", value.name)) if number is None else hash(number.name)
        if isinstance(value, Expr) and not isinstance(value, Const):
            kind = getattr(value, "kind", None)
            return hash((type(value).__name__, kind, value.dtype.name, *map(self.scalar, value.children())))
        return hash(value)

    def define(self, values: tuple[Value, ...]) -> tuple[int, ...]:
        for value in values:
            self.numbers[value] = Value(f"%{len(self.numbers)}", value.type)
        return tuple(hash((type(v.type).__name__, *map(self.scalar, v.type.scalars()))) for v in values)

    def op(self, op: Op) -> int:
        parts: list[Any] = [op.qualified_name]
        for field in op.fields:
            value = getattr(op, field.name)
            if field.kind is Kind.ATTRIBUTE:
                parts.append(repr(value))
            elif isinstance(value, tuple):
                parts += [self.scalar(item) for item in value]  # type: ignore[misc]
            else:
                parts.append(self.scalar(value))
        return hash(tuple(parts))

    def block(self, block: Block) -> int:
        return hash(tuple(self.stmt(stmt) for stmt in block))

    def stmt(self, stmt: Stmt) -> int:
        if isinstance(stmt, Let):
            own: Any = self.op(stmt.value) if isinstance(stmt.value, Op) else self.scalar(stmt.value)
        else:
            own = tuple(self.scalar(value) for value in stmt.uses())
        inside = (self.define(stmt.block_args()), *(self.block(block) for block in stmt.blocks()))
        return hash((type(stmt).__name__, own, inside, self.define(stmt.defs())))


def hash_function(function: Function) -> int:
    """A hash that equal functions share."""
    hasher = _Hasher()
    params = hasher.define(tuple(p.value for p in function.params))
    return hash((function.name, function.kind, params, hasher.block(function.body)))
