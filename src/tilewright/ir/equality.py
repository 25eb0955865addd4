"""Structural equality and hash: two programs are equal when one becomes the other by renaming values.

Spans and names of values do not count; names of functions, types, attributes and the order of statements do.
What a statement says is read off its fields, so that a new kind of statement needs nothing here.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, cast

from tilewright.ir.nodes import Block, Stmt
from tilewright.ir.op import Kind, Op
from tilewright.ir.scalar import Const, Expr, Scalar, Value, substitute
from tilewright.ir.types import Type

if TYPE_CHECKING:
    from tilewright.ir.function import Function, Program
    from tilewright.ir.loop_level import LoopFunction


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
        if type(left) is not type(right) or not self.define(left.block_args(), right.block_args()):
            return False
        if not self._own(left, right):
            return False
        if len(left.blocks()) != len(right.blocks()):
            return False
        inner = zip(left.blocks(), right.blocks(), strict=True)
        return all(self.blocks(a, b) for a, b in inner) and self.define(left.defs(), right.defs())

    def _own(self, left: Stmt, right: Stmt) -> bool:
        """What the two statements read and say themselves: every field that is neither a block nor a value defined."""
        named = own_fields(left)
        return named == own_fields(right) and all(self.parts(getattr(left, n), getattr(right, n)) for n in named)

    def parts(self, left: Any, right: Any) -> bool:
        """Whether two things that stand in a field are equal."""
        if isinstance(left, Expr):
            return self.scalars(left, right)
        if type(left) is not type(right):
            return False
        if isinstance(left, tuple):
            ours = cast("tuple[Any, ...]", left)
            return len(ours) == len(right) and all(map(self.parts, ours, right))
        if isinstance(left, Op):
            return self.ops(left, right)
        if isinstance(left, Type):
            return self.types(left, right)
        if isinstance(left, Stmt) or is_dataclass(left):
            return all(self.parts(getattr(left, name), getattr(right, name)) for name in names_of(left))
        return bool(left == right)


def names_of(part: Any) -> tuple[str, ...]:
    """The fields of a statement or dataclass."""
    return part.node_fields if isinstance(part, Stmt) else tuple(field.name for field in fields(part))


def own_fields(stmt: Stmt) -> tuple[str, ...]:
    """The fields of a statement without its blocks and the values that it defines."""
    blocks, apart = stmt.blocks(), (stmt.defs(), stmt.block_args())
    found: list[str] = []
    for name in stmt.node_fields:
        value = getattr(stmt, name)
        if isinstance(value, tuple):
            items = cast("tuple[Any, ...]", value)
            defined = bool(items) and any(items == values for values in apart)
            if defined or any(items is block for block in blocks):
                continue
        elif isinstance(value, Value) and any(value in values for values in apart):
            continue
        found.append(name)
    return tuple(found)


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


def equal_loop_functions(left: LoopFunction, right: LoopFunction) -> bool:
    """Whether the functions are equal up to renaming of values. Symbols that both leave free are compared by name."""
    if left is right:
        return True
    matcher = _Matcher()
    known = {value.name: value for value in left.symbols}
    shared = [value.name for value in right.symbols]
    if left.name != right.name or list(known) != shared:
        return False
    symbols = matcher.define(left.symbols, right.symbols)
    return symbols and matcher.define(left.params, right.params) and matcher.blocks(left.body, right.body)


class _Hasher:
    """Numbers values in the order in which they are defined."""

    def __init__(self) -> None:
        self.numbers: dict[Value, Value] = {}

    def scalar(self, value: Any) -> int:
        if isinstance(value, Value):
            number = self.numbers.get(value)
            return hash(("free", value.name)) if number is None else hash(number.name)
        if isinstance(value, Expr) and not isinstance(value, Const):
            facts = getattr(value, "kind", None) or getattr(value, "lanes", None)
            return hash((type(value).__name__, facts, value.dtype.name, *map(self.scalar, value.children())))
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
        arguments = self.define(stmt.block_args())
        own = tuple(self.part(getattr(stmt, name)) for name in own_fields(stmt))
        inside = (arguments, *(self.block(block) for block in stmt.blocks()))
        return hash((type(stmt).__name__, own, inside, self.define(stmt.defs())))

    def part(self, part: Any) -> int:
        """What stands in a field of a statement."""
        if isinstance(part, Op):
            return self.op(part)
        if isinstance(part, tuple):
            return hash(tuple(self.part(item) for item in cast("tuple[Any, ...]", part)))
        if isinstance(part, Type):
            return hash((type(part).__name__, *map(self.scalar, part.scalars())))
        if isinstance(part, Stmt) or is_dataclass(part):
            return hash(tuple(self.part(getattr(part, name)) for name in names_of(part)))
        return self.scalar(part)


def hash_function(function: Function) -> int:
    """A hash that equal functions share."""
    hasher = _Hasher()
    params = hasher.define(tuple(p.value for p in function.params))
    return hash((function.name, function.kind, params, hasher.block(function.body)))


def hash_loop_function(function: LoopFunction) -> int:
    """A hash that equal functions share."""
    hasher = _Hasher()
    params = hasher.define((*function.symbols, *function.params))
    return hash((function.name, params, hasher.block(function.body)))
