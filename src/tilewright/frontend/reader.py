"""Reading text: `parse` makes a program of source in the language, and executes nothing.

Names resolve through the language's own table, the text's constants and its kernels; there is no way from the text to
a Python object. What is not the language is refused with its place.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

from tilewright.errors import LanguageError, Span, TilewrightError, register_source
from tilewright.frontend.arithmetic import is_static
from tilewright.frontend.bindings import BUILTINS, LANGUAGE_MODULE, MISSING, Builtin, Kernel, LanguageName
from tilewright.frontend.context import Context
from tilewright.frontend.decorators import JIT_KINDS, decorator, method_kind
from tilewright.frontend.expressions import evaluate
from tilewright.frontend.limits import LONGEST_TEXT, check_nesting, guarded
from tilewright.frontend.specialize import Functions
from tilewright.frontend.syntax import FunctionSource, choose_entry, span_of
from tilewright.ir.function import FunctionKind, Program


class TextNames:
    """The names of a text: those that it imports or defines itself, and a few builtins."""

    def __init__(self) -> None:
        self.known: dict[str, object] = {}

    def lookup(self, name: str) -> object:
        if name in self.known:
            return self.known[name]
        return Builtin(name) if name in BUILTINS else MISSING

    def member(self, owner: Any, name: str, path: str) -> object:
        return MISSING


class TextKernel:
    """A kernel of the text, for calls by name."""

    def __init__(self, source: FunctionSource) -> None:
        self._source = source

    def entry(self) -> FunctionSource:
        return self._source


def parse(text: str, name: str = "<text>") -> Program:
    """The program that `text` says. `name` stands for the file in messages.

    Raises `LanguageError` and its kin, placed in the text. Functions come in the order of the text. The entry is what
    `@pl.program(entry=...)` names, else the first `@pl.jit` or `Orchestration` function, else `main`, else the last.
    """
    if len(text) > LONGEST_TEXT:
        raise LanguageError(
            "this text is too long", required=f"at most {LONGEST_TEXT} characters", found=str(len(text))
        )
    register_source(name, text)
    return guarded(lambda: _TextReader(text, name).program())


def syntax_error(error: SyntaxError, file: str) -> LanguageError:
    """What Python says against a text, placed in it."""
    line, column = error.lineno or 1, max(0, (error.offset or 1) - 1)
    end = (error.end_offset or column + 2) - 1
    span = Span(file, line, column, error.end_lineno or line, max(end, column + 1))
    return LanguageError(f"this is not Python syntax: {error.msg}", span=span)


class _TextReader:
    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.names = TextNames()
        self.tree = self._tree(text)
        self.functions: dict[str, FunctionSource] = {}
        self.entry: str | None = None
        self.programs = 0

    def _tree(self, text: str) -> ast.Module:
        try:
            return ast.parse(text, self.file)
        except SyntaxError as error:
            raise syntax_error(error, self.file) from None
        except (ValueError, MemoryError, RecursionError) as error:
            raise LanguageError("this is not Python syntax", found=str(error) or "it nests too deeply") from None

    def program(self) -> Program:
        for node in self.tree.body:
            self._statement(node)
        if not self.functions:
            raise LanguageError(
                f"{self.file} holds no kernel",
                required="a class with @pl.program, or functions with @pl.jit",
                help="print(program) shows the form",
            )
        entry = choose_entry(self.functions, self.entry, self.file)
        return Functions().read_all(self.functions, entry)

    # --- the module ---
    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Import(names=[ast.alias(name=module, asname=name)]) if module == LANGUAGE_MODULE and name:
                self.names.known[name] = LanguageName("")
            case ast.ImportFrom(module="tilewright", names=[ast.alias(name="language", asname=name)]):
                self.names.known[name or "language"] = LanguageName("")
            case ast.ImportFrom(module="__future__"):
                return
            case ast.Expr(value=ast.Constant()):
                return
            case ast.Assign(targets=[ast.Name(id=name)]):
                self.names.known[name] = self._constant(node)
            case ast.FunctionDef():
                self._function(node)
            case ast.ClassDef():
                self._class(node)
            case _:
                raise LanguageError(
                    "this does not belong in a program's text",
                    span=self._line(node),
                    required=f"import {LANGUAGE_MODULE} as pl, constants, and kernels",
                    found=ast.unparse(node).splitlines()[0],
                )

    def _line(self, node: ast.stmt) -> Span:
        """The first line of a statement."""
        span = span_of(self.file, node)
        return span if span.end_line == span.line else Span(span.file, span.line, span.column, span.line, 10**6)

    def _constant(self, node: ast.Assign) -> object:
        check_nesting(node, self.file)
        context = self._context()
        found = context.evaluate(node.value)
        if not is_static(found) or context.out:
            raise LanguageError("a name outside kernels is a constant", span=span_of(self.file, node))
        return found

    def _context(self) -> Context:
        """A context for what stands outside functions."""
        empty = ast.parse("def text(): pass").body[0]
        assert isinstance(empty, ast.FunctionDef)
        source = FunctionSource("text", empty, self.file, FunctionKind.INLINE, self.names)
        context = Context(source, Functions())
        context.evaluate = partial(evaluate, context)
        return context

    def _function(self, node: ast.FunctionDef) -> None:
        found = decorator(node, self.names)
        kind = JIT_KINDS.get(found[0]) if found is not None else None
        if kind is None:
            raise LanguageError(
                f"{node.name} is not marked as a kernel",
                span=self._line(node),
                help="pl.loop.parse reads loop functions"
                if found is not None and found[0] == "loop.function"
                else "decorate it with @pl.jit, @pl.jit.incore or @pl.jit.inline",
            )
        source = FunctionSource(node.name, node, self.file, kind, self.names)
        self._add(node, source)
        self.names.known[node.name] = Kernel(TextKernel(source))

    def _add(self, node: ast.FunctionDef, source: FunctionSource) -> None:
        if node.name in self.functions:
            raise LanguageError(f"there are two functions called {node.name}", span=self._line(node))
        self.functions[node.name] = source

    def _class(self, node: ast.ClassDef) -> None:
        found = decorator(node, self.names)
        self.programs += 1
        if found is None or found[0] != "program" or self.programs > 1:
            raise LanguageError(
                "a text holds one class, and it is a program", span=self._line(node), required="@pl.program"
            )
        given = found[1].get("entry")
        if given is not None:
            if not isinstance(given, ast.Constant) or not isinstance(given.value, str):
                raise LanguageError("entry= is the name of a function", span=span_of(self.file, given))
            self.entry = given.value
        methods: dict[str, FunctionSource] = {}
        for item in node.body:
            if isinstance(item, ast.FunctionDef):
                if not item.args.args:
                    raise LanguageError("a function of a program takes self first", span=self._line(item))
                kind = self._placed_kind(item)
                source = FunctionSource(item.name, item, self.file, kind, self.names, methods)
                self._add(item, source)
                methods[item.name] = source
            elif not isinstance(item, ast.Pass) and not (
                isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)
            ):
                raise LanguageError("a program holds functions only", span=self._line(item))

    def _placed_kind(self, node: ast.FunctionDef) -> FunctionKind:
        try:
            return method_kind(node, self.names, self.file)
        except TilewrightError as error:
            raise error.at(self._line(node)) from None
