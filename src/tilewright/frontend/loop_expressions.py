"""Expressions of the loop level, read: elements of buffers, vectors, regions, calls of what is not the compiler's.

Everything that scalars of kernels are made of is read as there. What differs: a subscript of a buffer is one element,
`and`, `or`, `not` and conditional expressions keep their operands as they are written, and functions of one number
(`pl.exp(x)`) take scalars.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import partial
from typing import Any

from tilewright.errors import CallError, LanguageError, SliceError, TilewrightError
from tilewright.frontend.arithmetic import is_static, literal
from tilewright.frontend.bindings import LanguageName, as_scalar, describe, is_number
from tilewright.frontend.context import Context
from tilewright.frontend.expressions import evaluate
from tilewright.frontend.specialize import Functions
from tilewright.frontend.syntax import FunctionSource
from tilewright.ir.buffers import (
    AddressOf,
    Broadcast,
    BufferType,
    Extern,
    IfThenElse,
    Likely,
    Load,
    Ramp,
    Region,
    buffer_type,
    extent_between,
)
from tilewright.ir.dtypes import FP32, DType
from tilewright.ir.scalar import BinaryKind, Expr, Scalar, Select, Shape, UnaryKind, Value, logic, unary

FUNCTIONS = {
    kind.value: kind for kind in UnaryKind if kind.value.isalpha() and kind not in (UnaryKind.NOT, UnaryKind.CAST)
}
"""What is written ``pl.exp(x)``."""


def is_buffer(found: object) -> bool:
    return isinstance(found, Value) and isinstance(found.type, BufferType)


class LoopExpressions:
    """The expressions of one function."""

    def __init__(self, source: FunctionSource) -> None:
        self.context = Context(source, Functions())
        self.context.evaluate = self.evaluate
        self._plain = partial(evaluate, self.context)

    def evaluate(self, node: ast.expr) -> object:
        """What `node` stands for. Errors are placed at the innermost expression that is to blame."""
        try:
            match node:
                case ast.Subscript():
                    return self.subscript(node)
                case ast.BoolOp():
                    kind = BinaryKind.AND if isinstance(node.op, ast.And) else BinaryKind.OR
                    result = self.scalar(node.values[0])
                    for part in node.values[1:]:
                        result = logic(kind, result, self.scalar(part))
                    return result
                case ast.UnaryOp(op=ast.Not()):
                    return unary(UnaryKind.NOT, self.scalar(node.operand))
                case ast.IfExp():
                    return Select(self.scalar(node.test), *self.pair(node.body, node.orelse))
                case ast.Call():
                    return self.call(node)
                case _:
                    self.no_buffers(ast.iter_child_nodes(node))
                    return self._plain(node)
        except TilewrightError as error:
            raise error.at(self.context.span(node)) from None

    def no_buffers(self, nodes: Iterable[ast.AST]) -> None:
        """Raises `LanguageError` when one of the operands is a buffer, whole: there is no arithmetic on those."""
        for node in nodes:
            if isinstance(node, ast.Name) and is_buffer(self.context.lookup(node.id)):
                raise LanguageError(
                    f"{node.id!r} is a buffer, and a scalar is wanted here",
                    span=self.context.span(node),
                    help=f"write an element, such as {node.id}[i]",
                )

    # --- kinds of results ---
    def scalar(self, node: ast.expr, dtype: DType | None = None) -> Scalar:
        """A scalar; a bare number is of `dtype`, where that is given."""
        found = self.evaluate(node)
        if isinstance(found, bool | int | float) and dtype is not None and isinstance(found, float) > dtype.is_float:
            raise LanguageError(
                f"a float stands where a {dtype} is wanted", span=self.context.span(node), help=f"cast it to pl.{dtype}"
            )
        scalar = as_scalar(found, dtype if is_number(found) else None)
        if scalar is None:
            way = "write an element, such as B[i]" if is_buffer(found) else "write a number or a name of one"
            raise LanguageError(
                "a scalar is wanted here", span=self.context.span(node), found=describe(found), help=way
            )
        return scalar

    def pair(self, left: ast.expr, right: ast.expr) -> tuple[Scalar, Scalar]:
        """Two scalars of one dtype, where a bare number follows the other."""
        first, second = self.evaluate(left), self.evaluate(right)
        if is_number(first) and isinstance(second, Expr) and not is_buffer(second):
            return literal(first, second), second
        if is_number(second) and isinstance(first, Expr) and not is_buffer(first):
            return first, literal(second, first)
        return self.scalar(left), self.scalar(right)

    def static(self, node: ast.expr) -> Any:
        """What is known now: a number, string, dtype, enum, or list of them."""
        found = self.evaluate(node)
        if not is_static(found) or isinstance(found, LanguageName):
            raise LanguageError(
                "this must be known when it is read", span=self.context.span(node), found=describe(found)
            )
        return found

    def buffer(self, node: ast.expr) -> Value:
        found = self.evaluate(node)
        if not isinstance(found, Value) or not is_buffer(found):
            raise LanguageError("a buffer is wanted here", span=self.context.span(node), found=describe(found))
        return found

    def shape(self, node: ast.expr) -> Shape:
        """A list of extents or offsets."""
        if not isinstance(node, ast.List | ast.Tuple):
            raise LanguageError("a list is wanted here", span=self.context.span(node), required="[16, 16]")
        return tuple(self.scalar(item) for item in node.elts)

    # --- buffers ---
    def indices(self, node: ast.Subscript, buffer: Value) -> list[ast.expr]:
        """The parts of a subscript, one per dimension."""
        index = node.slice
        parts = list(index.elts) if isinstance(index, ast.Tuple) else [index]
        rank = buffer_type(buffer).rank
        if len(parts) != rank:
            raise SliceError(
                f"{buffer.name!r} has {rank} dimension{'s' * (rank != 1)}",
                span=self.context.span(node),
                required="one index for each" if rank else f"{buffer.name}[()]",
                found=f"{len(parts)}",
            )
        return parts

    def subscript(self, node: ast.Subscript) -> object:
        base = self.evaluate(node.value)
        if not isinstance(base, Value) or not is_buffer(base):
            return self._plain(node)
        parts = self.indices(node, base)
        for part in parts:
            if isinstance(part, ast.Slice):
                raise SliceError(
                    "a region stands in reads, writes, match and op only",
                    span=self.context.span(part),
                    help="index one element, or lanes with pl.loop.ramp(base, stride, lanes)",
                )
        return Load(base, tuple(self.scalar(part) for part in parts))

    def region(self, node: ast.expr) -> Region:
        """`A[i, 0:16]`, `A` for the whole, or ``pl.loop.region(A, offsets, extents)``."""
        if isinstance(node, ast.Call) and self.path(node.func) == "loop.region" and len(node.args) == 3:
            buffer = self.buffer(node.args[0])
            made = Region(buffer, self.shape(node.args[1]), self.shape(node.args[2]))
            rank = buffer_type(buffer).rank
            if len(made.offsets) != rank or len(made.extents) != rank:
                raise SliceError(f"{buffer.name!r} has {rank} dimensions", span=self.context.span(node))
            return made
        if not isinstance(node, ast.Subscript):
            buffer = self.buffer(node)
            return Region(buffer, (0,) * buffer_type(buffer).rank, buffer_type(buffer).shape)
        buffer = self.buffer(node.value)
        offsets: list[Scalar] = []
        extents: list[Scalar] = []
        for dim, part in enumerate(self.indices(node, buffer)):
            if not isinstance(part, ast.Slice):
                offsets.append(self.scalar(part))
                extents.append(1)
                continue
            if part.step is not None:
                raise SliceError("a region has no step", span=self.context.span(part), help="say the box around it")
            start = 0 if part.lower is None else self.scalar(part.lower)
            stop = buffer_type(buffer).shape[dim] if part.upper is None else self.scalar(part.upper)
            offsets.append(start)
            extents.append(extent_between(start, stop))
        return Region(buffer, tuple(offsets), tuple(extents))

    # --- calls ---
    def path(self, node: ast.expr) -> str:
        """The dotted name after ``pl.`` that `node` is; empty for what is none."""
        found = self.evaluate(node) if isinstance(node, ast.Attribute | ast.Name) else None
        return found.path if isinstance(found, LanguageName) else ""

    def call(self, node: ast.Call) -> object:
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr in FUNCTIONS and isinstance(func.value, ast.Name):
            owner = self.evaluate(func.value)
            if isinstance(owner, LanguageName) and not owner.path:
                return unary(FUNCTIONS[func.attr], self.scalar(self.positional(node, 1)[0]))
        path = self.path(func)
        match path:
            case "loop.ramp":
                base, stride, lanes = self.positional(node, 3)
                return Ramp(self.scalar(base), self.scalar(stride), self.lanes(lanes))
            case "loop.broadcast":
                value, lanes = self.positional(node, 2)
                return Broadcast(self.scalar(value), self.lanes(lanes))
            case "loop.if_then_else":
                condition, then, otherwise = self.positional(node, 3)
                return IfThenElse(self.scalar(condition), *self.pair(then, otherwise))
            case "loop.likely":
                return Likely(self.scalar(self.positional(node, 1)[0]))
            case "loop.address_of":
                return self.address(node)
            case "loop.extern":
                return self.extern(node)
            case _ if path.startswith("loop."):
                raise LanguageError(
                    f"pl.{path} does not stand inside an expression",
                    found=self.context.text(node),
                    help="docs/loops.md shows where each word stands",
                )
            case _:
                self.no_buffers((*node.args, *(keyword.value for keyword in node.keywords)))
                return self._plain(node)

    def positional(self, node: ast.Call, count: int) -> list[ast.expr]:
        if len(node.args) != count or node.keywords:
            raise CallError(
                f"{self.context.text(node.func)} takes {count} arguments by position",
                span=self.context.span(node),
                found=str(len(node.args) + len(node.keywords)),
            )
        return node.args

    def keywords(self, node: ast.Call, *names: str) -> dict[str, ast.expr]:
        """The keywords of a call, which may be `names` only."""
        found = {keyword.arg or "**": keyword.value for keyword in node.keywords}
        for name, value in found.items():
            if name not in names:
                raise CallError(
                    f"{self.context.text(node.func)} has no argument {name!r}",
                    span=self.context.span(value),
                    required=", ".join(names),
                )
        return found

    def lanes(self, node: ast.expr) -> int:
        lanes = self.static(node)
        if not isinstance(lanes, int) or isinstance(lanes, bool) or lanes < 1:
            raise LanguageError("a number of lanes is wanted here", span=self.context.span(node), required="at least 1")
        return lanes

    def address(self, node: ast.Call) -> AddressOf:
        given = self.keywords(node, "offset", "extent")
        if len(node.args) != 1:
            raise CallError("pl.loop.address_of takes a buffer", span=self.context.span(node))
        parts = {name: self.scalar(value) for name, value in given.items()}
        return AddressOf(self.buffer(node.args[0]), parts.get("offset"), parts.get("extent"))

    def extern(self, node: ast.Call) -> Extern:
        given = self.keywords(node, "dtype", "pure")
        name = self.static(node.args[0]) if node.args else None
        if not isinstance(name, str):
            raise CallError(
                "pl.loop.extern takes the name of a function first",
                span=self.context.span(node),
                required='pl.loop.extern("name", x, y, dtype=pl.FP32)',
            )
        dtype = self.dtype(given["dtype"]) if "dtype" in given else FP32
        pure = bool(self.static(given["pure"])) if "pure" in given else False
        return Extern(name, tuple(self.scalar(arg) for arg in node.args[1:]), dtype, pure)

    def dtype(self, node: ast.expr) -> DType:
        found = self.static(node)
        if not isinstance(found, DType):
            raise LanguageError("a dtype is wanted here", span=self.context.span(node), required="such as pl.FP32")
        return found
