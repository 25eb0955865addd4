"""The grammar that all PTO text shares: modules, functions, regions, operand lists, types, attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from tilewright.codegen.pto.lexer import Source, Token, tokenize
from tilewright.codegen.pto.syntax import Attribute, Function, Module, Operation, Region
from tilewright.codegen.pto.types import PTOTextError, Type, parse_type
from tilewright.errors import Span

T = TypeVar("T")
Form = Callable[["Parser", str, Span, tuple[str, ...]], Operation]
"""Reads what follows an operation's name; gets the parser, the name, its span and the names of its results."""


class Parser:
    """A recursive-descent parser. `forms` says how each operation is written."""

    def __init__(self, source: Source, forms: Mapping[str, Form]) -> None:
        self.source = source
        self.forms = forms
        self.tokens = tokenize(source)
        self.position = 0

    # --- tokens ---
    @property
    def next(self) -> Token:
        return self.tokens[self.position]

    def take(self) -> Token:
        token = self.tokens[self.position]
        self.position += token.kind != "end"
        return token

    def accept(self, text: str) -> bool:
        if self.next.text != text:
            return False
        self.position += 1
        return True

    def fail(self, required: str, clause: str = "§2 syntax") -> PTOTextError:
        token = self.next
        return PTOTextError(
            clause,
            "this is not the form that the assembler reads",
            span=self.source.span(token.start, token.end),
            required=required,
            found=f"`{token.text}`",
        )

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.fail(f"`{text}`")

    def kind(self, kind: str, required: str) -> str:
        if self.next.kind != kind:
            raise self.fail(required)
        return self.take().text

    def value(self) -> str:
        return self.kind("value", "a value `%name`")

    def many(self, item: Callable[[], T], close: str) -> tuple[T, ...]:
        """Comma-separated items up to `close`, which is taken."""
        items: list[T] = []
        while not self.accept(close):
            if items:
                self.expect(",")
            items.append(item())
        return tuple(items)

    def listed(self, item: Callable[[], T]) -> tuple[T, ...]:
        """One or more comma-separated items."""
        items = [item()]
        while self.accept(","):
            items.append(item())
        return tuple(items)

    # --- types and attributes ---
    def type(self) -> Type:
        token = self.next
        if token.kind not in ("type", "word"):
            raise self.fail("a type")
        self.position += 1
        try:
            return parse_type(token.text)
        except PTOTextError as error:
            error.span = self.source.span(token.start, token.end)
            raise

    def types(self) -> tuple[Type, ...]:
        """One type, or several in parentheses."""
        return self.many(self.type, ")") if self.accept("(") else (self.type(),)

    def attribute(self) -> Attribute:
        token = self.take()
        words = token.text[token.text.find("<") + 1 : -1].split() if token.kind == "attr" else []
        if words:
            return words[-1]
        if token.kind == "string":
            return token.text[1:-1]
        if token.kind == "number":
            value = number(token.text)
            if self.accept(":"):
                self.type()
            return value
        if token.text in ("true", "false"):
            return token.text == "true"
        self.position -= 1
        raise self.fail("an attribute")

    def attributes(self) -> dict[str, Attribute]:
        """`{a = 1, b}`, or nothing."""
        if not self.accept("{"):
            return {}

        def item() -> tuple[str, Attribute]:
            key = self.take().text.strip('"')
            return key, self.attribute() if self.accept("=") else True

        return dict(self.many(item, "}"))

    # --- structure ---
    def module(self) -> Module:
        attributes: dict[str, Attribute] = {}
        wrapped = self.accept("module")
        if wrapped:
            if self.next.kind == "symbol":
                self.take()
            if self.accept("attributes"):
                attributes = self.attributes()
            self.expect("{")
        functions: list[Function] = []
        while self.next.text in ("func.func", "func"):
            functions.append(self.function())
        if wrapped:
            self.expect("}")
        if self.next.kind != "end" or not functions:
            raise self.fail("`func.func`")
        return Module(self.source.name, attributes, tuple(functions))

    def function(self) -> Function:
        start = self.take().start
        if self.next.text in ("private", "public"):
            self.take()
        name = self.kind("symbol", "the function's name")[1:]
        self.expect("(")
        arguments = self.many(self.argument, ")")
        results = self.types() if self.accept("->") else ()
        attributes = self.attributes() if self.accept("attributes") else {}
        span = self.source.span(start, self.next.start)
        return Function(name, span, arguments, results, attributes, self.region())

    def argument(self) -> tuple[str, Type]:
        name = self.value()
        self.expect(":")
        argument = (name, self.type())
        self.attributes()
        return argument

    def region(self, arguments: tuple[tuple[str, Type], ...] = ()) -> Region:
        self.expect("{")
        if self.next.kind == "block":
            self.take()
            if self.accept("("):
                arguments = self.many(self.argument, ")")
            self.expect(":")
        operations: list[Operation] = []
        while not self.accept("}"):
            operations.append(self.operation())
        return Region(arguments, tuple(operations))

    def operation(self) -> Operation:
        start = self.next.start
        results: tuple[str, ...] = ()
        if self.next.kind == "value":
            results = tuple(name for group in self.listed(self.result) for name in group)
            self.expect("=")
        name = self.kind("word", "an operation")
        span = self.source.span(start, self.next.start)
        form = self.forms.get(name) or self.forms.get(name.partition(".")[0])
        if form is None:
            raise PTOTextError("§2 unknown op", f"`{name}` is not an operation of the safe subset", span=span)
        operation = form(self, name, span, results)
        if len(operation.results) != len(operation.result_types):
            raise PTOTextError(
                "§2 syntax",
                f"`{name}` has {len(operation.result_types)} results",
                span=span,
                found=f"{len(operation.results)} names",
            )
        return operation

    def result(self) -> tuple[str, ...]:
        name = self.value()
        if not self.accept(":"):
            return (name,)
        return tuple(f"{name}#{i}" for i in range(int(self.kind("number", "a number of results"))))

    # --- ins / outs ---
    def operand_list(self) -> tuple[tuple[str, ...], tuple[Type, ...], dict[str, Attribute]]:
        """`(%a, %b {key = …} : T, T)`, types and attributes optional."""
        self.expect("(")
        values: list[str] = []
        attributes: dict[str, Attribute] = {}
        while self.next.text not in (":", ")"):
            if values:
                self.expect(",")
            values.append(self.value())
            attributes |= self.attributes()
        types = self.listed(self.type) if self.accept(":") else ()
        self.expect(")")
        if len(types) != len(values):
            raise self.fail(f"as many types as operands ({len(values)})")
        return tuple(values), types, attributes

    def bracket(self) -> tuple[str, ...]:
        self.expect("[")
        return self.many(self.value, "]")


def number(text: str) -> int | float:
    """The value of a decimal or hexadecimal token."""
    digits = text.lstrip("-")
    if digits.startswith("0x"):
        return int(text, 16)
    return int(text) if digits.isdigit() else float(text)
