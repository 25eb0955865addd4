"""Programs as text that reads back to an equal program, at every level and after every pass.

    x = pl.tile.load(a, [0, 0], [64, 64])
    y: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.tile.exp(x)

A type is written exactly where the statement does not give it already. Names are the values' own, made unique within
the function and valid in Python; printing what was read from printed text gives the same text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from keyword import iskeyword
from typing import Any

from tilewright.errors import TilewrightError
from tilewright.ir.function import Direction, Function, Param, Program
from tilewright.ir.nodes import Block, Call, For, If, Let, LoopKind, Probe, Return, Scope, Stmt, Yield
from tilewright.ir.op import Field, Kind, Level, Op
from tilewright.ir.rewrite import type_of
from tilewright.ir.scalar import Const, Scalar, Value
from tilewright.ir.types import TileType, TupleType, Type
from tilewright.text.names import spelling
from tilewright.text.scalars import print_scalar, quoted
from tilewright.text.types import print_shape, print_static, print_type

RESERVED = frozenset(("pl", "self"))
"""Names that the text itself uses."""

_NOTHING = TupleType(())


def print_program(program: Program, explicit_layout: bool = False) -> str:
    """The text of `program`. `explicit_layout` also writes the type of every tile, with the layout that its space
    implies; the text still reads back to the same program."""
    lines = ["import tilewright.language as pl", "", f"@pl.program(entry={quoted(program.entry)})", "class Program:"]
    for index, function in enumerate(program.functions):
        if index:
            lines.append("")
        lines += FunctionPrinter(program, function, explicit_layout).lines()
    if not program.functions:
        lines.append("    pass")
    return "\n".join(lines) + "\n"


class Namer:
    """Gives each value of a function a name of its own."""

    def __init__(self) -> None:
        self._names: dict[Value, str] = {}
        self._taken: set[str] = set(RESERVED)
        self._counts: dict[str, int] = {}

    def __call__(self, value: Value) -> str:
        name = self._names.get(value)
        if name is None:
            name = self._names[value] = self._free(identifier(value.name))
        return name

    def _free(self, hint: str) -> str:
        name = hint
        if name in self._taken:
            base, _, number = hint.rpartition("_")
            base = base if base and number.isdecimal() else hint
            count = self._counts.get(base, 0)
            while name in self._taken:
                count += 1
                name = f"{base}_{count}"
            self._counts[base] = count
        self._taken.add(name)
        return name


def identifier(hint: str) -> str:
    """`hint` as a Python identifier that is not a keyword."""
    if not hint.isidentifier():
        hint = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in hint) or "v"
        hint = f"v{hint}" if hint[0].isdecimal() else hint
    return f"{hint}_" if iskeyword(hint) else hint


def spell_op(op: Op) -> str:
    """``tile.and_``: the op's name after ``pl.``, an underscore added where Python reserves it."""
    name = op.qualified_name
    return f"{name}_" if iskeyword(name.rpartition(".")[2]) else name


_PLANS: dict[tuple[type[Op], Level], tuple[tuple[Field, bool], ...]] = {}


def _plan(cls: type[Op], level: Level) -> tuple[tuple[Field, bool], ...]:
    """The fields that the form of `cls` at `level` has, and whether each is given by position."""
    found = _PLANS.get((cls, level))
    if found is None:
        found = tuple((field, field.required) for field in cls.fields if level in field.levels)
        _PLANS[cls, level] = found
    return found


def _is_default(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and value == default)


class FunctionPrinter:
    """The text of one function, line by line."""

    def __init__(self, program: Program, function: Function, explicit_layout: bool) -> None:
        self.program = program
        self.function = function
        self.explicit_layout = explicit_layout
        self.name = Namer()
        self.out: list[str] = []
        self._types: dict[Type, str] = {}

    def lines(self) -> list[str]:
        function = self.function
        attrs = ", ".join(f"{quoted(key)}: {print_static(value, self.name)}" for key, value in function.attrs)
        params = "".join(f", {self.name(p.value)}: {self.param(p)}" for p in function.params)
        attrs = f", attrs={{{attrs}}}" if attrs else ""
        self.out.append(f"    @pl.function(type={spelling(function.kind)}{attrs})")
        self.out.append(f"    def {function.name}(self{params}):")
        self.block(function.body, "        ", ())
        return self.out

    # --- parts of a line ---
    def param(self, param: Param) -> str:
        text = self.type(param.value.type)
        return text if param.direction is Direction.IN else f"pl.{param.direction.value}[{text}]"

    def type(self, type: Type) -> str:
        text = self._types.get(type)
        if text is None:
            text = self._types[type] = print_type(type, self.name, self.explicit_layout)
        return text

    def scalar(self, scalar: Scalar) -> str:
        return print_scalar(scalar, self.name)

    def scalars(self, scalars: Iterable[Scalar]) -> str:
        return ", ".join([self.scalar(scalar) for scalar in scalars])

    def names(self, values: Iterable[Value]) -> str:
        return ", ".join([self.name(value) for value in values])

    def tuple(self, parts: Sequence[str]) -> str:
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"

    def annotations(self, indent: str, values: Sequence[Value], given: Sequence[Type | None]) -> None:
        """A line `x: T` for each value whose type is not the one that the text gives."""
        for value, expected in zip(values, given, strict=True):
            if value.type is not expected:
                self.out.append(f"{indent}{self.name(value)}: {self.type(value.type)}")

    # --- operations ---
    def op(self, op: Op) -> str:
        parts: list[str] = []
        for field, positional in _plan(type(op), op.level):
            value = getattr(op, field.name)
            if positional:
                parts.append(self.argument(op, field, value))
            elif not _is_default(value, field.default):
                parts.append(f"{field.name}={self.argument(op, field, value)}")
        return f"pl.{spell_op(op)}({', '.join(parts)})"

    def argument(self, op: Op, field: Field, value: Any) -> str:
        if field.kind is Kind.ATTRIBUTE:
            return print_static(value, self.name)
        if value is None:
            return "None"
        if isinstance(value, tuple):
            return print_shape(value, self.name)  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(value, Value):
            return self.name(value)
        # In place of a tensor or tile, a bare literal takes the dtype of the elements that it meets.
        in_place = field.kind is Kind.OPERAND
        elements = next((operand.dtype for _, operand in op.operand_items()), None) if in_place else None
        return print_scalar(value, self.name, elements)

    # --- statements ---
    def block(self, block: Block, indent: str, results: tuple[Value, ...], given: Sequence[Type | None] = ()) -> None:
        """The statements of `block`; its yield names `results`, whose types the text gives as `given`."""
        empty = len(self.out)
        for stmt in block:
            self.stmt(stmt, indent, results, given)
        if len(self.out) == empty:
            self.out.append(f"{indent}pass")

    def stmt(self, stmt: Stmt, indent: str, results: tuple[Value, ...], given: Sequence[Type | None]) -> None:
        match stmt:
            case Let():
                self.out.append(indent + self.let(stmt))
            case Call():
                self.call(stmt, indent)
            case For():
                self.loop(stmt, indent)
            case If():
                self.branch(stmt, indent)
            case Scope():
                self.scope(stmt, indent)
            case Probe():
                word = {"print": "pl.print", "assert": "pl.assert_"}.get(stmt.kind, "breakpoint")
                parts = [quoted(part) if isinstance(part, str) else self.scalar(part) for part in stmt.parts]
                self.out.append(f"{indent}{word}({', '.join(parts)})")
            case Return():
                self.out.append(f"{indent}return {self.scalars(stmt.values)}".rstrip())
            case Yield():
                self.yields(stmt, indent, results, given)
            case _:
                raise AssertionError(f"unknown statement {type(stmt).__name__}")

    def let(self, stmt: Let) -> str:
        target, value = stmt.target, stmt.value
        found = target.type
        if not isinstance(value, Op):
            # The reader sees through names of constants and of other values unless they are declared.
            declared = isinstance(value, int | Const | Value) or type_of(value) is not found
            return f"{self.name(target)}{f': {self.type(found)}' if declared else ''} = {self.scalar(value)}"
        if found is _NOTHING:
            return self.op(value)
        text = self.op(value)
        if _inferred(value) is found and not (self.explicit_layout and isinstance(found, TileType)):
            return f"{self.name(target)} = {text}"
        return f"{self.name(target)}: {self.type(found)} = {text}"

    def call(self, stmt: Call, indent: str) -> None:
        self.annotations(indent, stmt.targets, self.callee_types(stmt))
        targets = f"{self.names(stmt.targets)} = " if stmt.targets else ""
        self.out.append(f"{indent}{targets}self.{stmt.callee}({self.scalars(stmt.args)})")

    def callee_types(self, stmt: Call) -> list[Type | None]:
        """The types that the callee's results have for this call's arguments."""
        callee = self.program.by_name.get(stmt.callee)
        if callee is None or len(callee.params) != len(stmt.args) or len(callee.results) != len(stmt.targets):
            return [None] * len(stmt.targets)
        binding = {param.value: arg for param, arg in zip(callee.params, stmt.args, strict=True)}
        return [type_of(result).substitute(lambda value: binding.get(value, value)) for result in callee.results]

    def loop(self, stmt: For, indent: str) -> None:
        bounds: tuple[Scalar, ...] = (stmt.start, stmt.stop, stmt.step)
        if _is_default(stmt.step, 1):
            bounds = (stmt.stop,) if _is_default(stmt.start, 0) else (stmt.start, stmt.stop)
        head = self.scalars(bounds)
        if stmt.stage != 1 or stmt.kind is LoopKind.PIPELINE:
            head += f", stage={stmt.stage}"
        word, target = stmt.kind.value, self.name(stmt.iv)
        carried = [arg.type for arg in stmt.iter_args]
        if stmt.iter_args:
            inits = f"init_values={self.tuple([self.scalar(init) for init in stmt.inits])}"
            names = self.tuple([self.name(arg) for arg in stmt.iter_args])
            head, target = f"{head}, {inits}", f"{target}, {names}"
            if stmt.is_while:
                word, head, target = "while_", inits, names
        self.out.append(f"{indent}for {target} in pl.{word}({head}):")
        inner = indent + "    "
        if stmt.conditional:
            self.out.append(f"{inner}pl.cond({self.name(stmt.iter_args[0])})")
        self.annotations(inner, stmt.iter_args, [type_of(init) for init in stmt.inits])
        self.block(stmt.body, inner, stmt.results, carried)

    def branch(self, stmt: If, indent: str) -> None:
        self.out.append(f"{indent}if {self.scalar(stmt.condition)}:")
        inner = indent + "    "
        self.block(stmt.then, inner, stmt.results, _yielded(stmt.then))
        if stmt.results or len(stmt.otherwise) > 1:
            self.out.append(f"{indent}else:")
            self.block(stmt.otherwise, inner, stmt.results, [result.type for result in stmt.results])

    def scope(self, stmt: Scope, indent: str) -> None:
        options = ", ".join(f"{key}={print_static(value, self.name)}" for key, value in stmt.options)
        self.out.append(f"{indent}with pl.{stmt.kind}({options}):")
        self.block(stmt.body, indent + "    ", stmt.results, _yielded(stmt.body))

    def yields(self, stmt: Yield, indent: str, results: tuple[Value, ...], given: Sequence[Type | None]) -> None:
        if not results and not stmt.values:
            return
        self.annotations(indent, results, given)
        self.out.append(f"{indent}{self.names(results)} = pl.yield_({self.scalars(stmt.values)})")


def _inferred(op: Op) -> Type | None:
    """The type that `op` gives; None when it is wrong, so that a faulty program can still be looked at."""
    try:
        return op.infer()
    except TilewrightError:
        return None


def _yielded(block: Block) -> list[Type | None]:
    last = block[-1]
    return [type_of(value) for value in last.values] if isinstance(last, Yield) else []
