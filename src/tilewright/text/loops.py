"""Loop functions as text that reads back to an equal function, in either form.

    @pl.loop.function
    def main(A: pl.loop.Buffer[[16, 16], pl.FP32]):
        B = pl.loop.alloc([16], pl.FP32, pl.Mem.Vec, dim_align=[[0, 16, 8]])
        for i in pl.loop.serial(0, 16):
            B[i] = A[i, 0] + 1.0

Free symbols stand above the function, ``n = pl.dynamic("n")``.
"""

from __future__ import annotations

from typing import TypeGuard

from tilewright.ir.buffers import BufferType, HandleType, Region, VectorType, buffer_type, extent_between
from tilewright.ir.function import Function, Program
from tilewright.ir.loop_level import (
    ALWAYS,
    Alias,
    Allocate,
    Annotations,
    Attribute,
    ComputeBlock,
    Evaluate,
    Launch,
    Loop,
    LoopFunction,
    LoopKind,
    Match,
    OpCall,
    Store,
    While,
)
from tilewright.ir.nodes import Block, If, Let, Stmt
from tilewright.ir.op import Op
from tilewright.ir.scalar import BinaryKind as Kind
from tilewright.ir.scalar import Scalar, binary
from tilewright.ir.types import Type
from tilewright.text.names import spelling
from tilewright.text.printer import FunctionPrinter, Namer
from tilewright.text.scalars import print_scalar, quoted
from tilewright.text.types import print_shape, print_static, print_type

TAB = "    "


def print_loops(function: LoopFunction) -> str:
    """The text of `function`."""
    printer = _LoopPrinter()
    lines = ["import tilewright.language as pl", ""]
    symbols = [f"{printer.name(symbol)} = pl.dynamic({quoted(symbol.name)})" for symbol in function.symbols]
    lines += [*symbols, ""] if symbols else []
    params = ", ".join(f"{printer.name(param)}: {printer.type(param.type)}" for param in function.params)
    lines += ["@pl.loop.function", f"def {function.name}({params}):"]
    printer.block(function.body, TAB)
    return "\n".join(lines + printer.out) + "\n"


class _LoopPrinter:
    def __init__(self) -> None:
        self.name = Namer()
        self.out: list[str] = []

    # --- parts of a line ---
    def type(self, type: Type) -> str:
        if isinstance(type, BufferType):
            return f"pl.loop.Buffer[{', '.join(self.parts_of(type))}]"
        if isinstance(type, VectorType):
            return f"pl.loop.Vector[pl.{type.dtype}, {type.lanes}]"
        if isinstance(type, HandleType):
            return f"pl.loop.Handle[pl.{type.dtype}]"
        return print_type(type, self.name)

    def parts_of(self, type: BufferType) -> list[str]:
        space = [] if type.space is None else [spelling(type.space)]
        return [print_shape(type.shape, self.name), f"pl.{type.dtype}", *space]

    def scalar(self, scalar: Scalar) -> str:
        return print_scalar(scalar, self.name)

    def region(self, region: Region) -> str:
        """`A[i, 0:16]`, or in words where the extents do not follow from such text."""
        parts: list[str] = []
        for offset, extent in zip(region.offsets, region.extents, strict=True):
            stop = binary(Kind.ADD, offset, extent)
            if extent == 1:
                parts.append(self.scalar(offset))
            elif extent_between(offset, stop) == extent:
                parts.append(f"{self.scalar(offset)}:{self.scalar(stop)}")
            else:
                shapes = print_shape(region.offsets, self.name), print_shape(region.extents, self.name)
                return f"pl.loop.region({self.name(region.buffer)}, {', '.join(shapes)})"
        return f"{self.name(region.buffer)}[{', '.join(parts) or '()'}]"

    def annotations(self, annotations: Annotations) -> list[str]:
        if all(key.isidentifier() for key, _ in annotations):
            return [f"{key}={print_static(value, self.name)}" for key, value in annotations]
        pairs = ", ".join(f"{quoted(key)}: {print_static(value, self.name)}" for key, value in annotations)
        return [f"annotations={{{pairs}}}"]

    # --- statements ---
    def block(self, block: Block, indent: str) -> None:
        before = len(self.out)
        for stmt in block:
            self.stmt(stmt, indent)
        if len(self.out) == before:
            self.out.append(f"{indent}pass")

    def line(self, indent: str, text: str) -> None:
        self.out.append(indent + text)

    def stmt(self, stmt: Stmt, indent: str) -> None:
        match stmt:
            case Store():
                indices = ", ".join(map(self.scalar, stmt.indices)) or "()"
                value = print_scalar(stmt.value, self.name, stmt.buffer.dtype)
                self.line(indent, f"{self.name(stmt.buffer)}[{indices}] = {value}")
            case Let():
                assert not isinstance(stmt.value, Op), "operations stand in an OpCall"
                self.line(indent, f"{self.name(stmt.target)} = {self.scalar(stmt.value)}")
            case Allocate():
                self.allocate(stmt, "alloc", indent)
            case Alias():
                parts = [self.name(stmt.source), *self.parts_of(buffer_type(stmt.buffer))]
                parts += [] if stmt.offset == 0 else [f"offset={self.scalar(stmt.offset)}"]
                self.line(indent, f"{self.name(stmt.buffer)} = pl.loop.alias({', '.join(parts)})")
            case Evaluate():
                self.line(indent, self.scalar(stmt.call))
            case OpCall():
                self.operation(stmt, indent)
            case _:
                self.compound(stmt, indent)

    def compound(self, stmt: Stmt, indent: str) -> None:
        inner = indent + TAB
        match stmt:
            case Loop():
                self.line(indent, self.loop(stmt))
                self.block(stmt.body, inner)
            case Launch():
                extent = "" if stmt.extent is None else f", {self.scalar(stmt.extent)}"
                self.line(indent, f"for {self.name(stmt.iv)} in pl.loop.launch({quoted(stmt.thread)}{extent}):")
                self.block(stmt.body, inner)
            case While():
                self.line(indent, f"while {self.scalar(stmt.condition)}:")
                self.block(stmt.body, inner)
            case If():
                self.line(indent, f"if {self.scalar(stmt.condition)}:")
                self.block(stmt.then, inner)
                if stmt.otherwise:
                    self.line(indent, "else:")
                    self.block(stmt.otherwise, inner)
            case ComputeBlock():
                self.compute(stmt, indent)
            case Attribute():
                parts = quoted(stmt.key), self.name(stmt.node), print_static(stmt.value, self.name)
                self.line(indent, f"with pl.loop.attribute({', '.join(parts)}):")
                self.block(stmt.body, inner)
            case _:
                raise AssertionError(f"{type(stmt).__name__} is no statement of the loop level")

    def allocate(self, stmt: Allocate, word: str, indent: str) -> None:
        parts = [*self.parts_of(buffer_type(stmt.buffer)), *self.annotations(stmt.annotations)]
        self.line(indent, f"{self.name(stmt.buffer)} = pl.loop.{word}({', '.join(parts)})")

    def loop(self, stmt: Loop) -> str:
        bounds = [self.scalar(stmt.start), self.scalar(stmt.stop)]
        if not _is_one(stmt.step):
            bounds.append(self.scalar(stmt.step))
        thread = [print_static(stmt.thread)] if stmt.kind is LoopKind.THREAD else []
        head = ", ".join([*thread, *bounds, *self.annotations(stmt.annotations)])
        return f"for {self.name(stmt.iv)} in pl.loop.{stmt.kind.value}({head}):"

    def compute(self, stmt: ComputeBlock, indent: str) -> None:
        inner = indent + TAB
        head = ", ".join([quoted(stmt.name), *self.annotations(stmt.annotations)])
        self.line(indent, f"with pl.loop.block({head}):")
        before = len(self.out)
        if stmt.where != ALWAYS:
            self.line(inner, f"pl.loop.where({self.scalar(stmt.where)})")
        for match in stmt.matches:
            self.line(inner, self.match(match))
        for alloc in stmt.allocs:
            self.allocate(alloc, "local", inner)
        for word, regions in (("reads", stmt.reads), ("writes", stmt.writes)):
            if regions:
                self.line(inner, f"pl.loop.{word}({', '.join(map(self.region, regions))})")
        if stmt.body or len(self.out) == before:
            self.block(stmt.body, inner)

    def match(self, match: Match) -> str:
        source, kind = match.source, buffer_type(match.buffer)
        parts = [self.region(source)]
        given = buffer_type(source.buffer)
        if kind.shape != source.extents:
            parts.append(f"shape={print_shape(kind.shape, self.name)}")
        if kind.dtype is not given.dtype:
            parts.append(f"dtype=pl.{kind.dtype}")
        if kind.space is not given.space:
            parts.append(f"space={'None' if kind.space is None else spelling(kind.space)}")
        return f"{self.name(match.buffer)} = pl.loop.match({', '.join(parts)})"

    def operation(self, stmt: OpCall, indent: str) -> None:
        result = "" if stmt.result is None else self.region(stmt.result)
        self.line(indent, f"with pl.loop.op({result}):")
        for tile, region in stmt.bindings:
            self.line(indent + TAB, f"{self.name(tile)}: {self.type(tile.type)} = {self.region(region)}")
        printer = FunctionPrinter(Program((), ""), Function("", (), ()), False)
        printer.name = self.name
        self.line(indent + TAB, printer.op(stmt.op))


def _is_one(step: Scalar) -> TypeGuard[int]:
    return isinstance(step, int) and step == 1
