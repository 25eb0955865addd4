"""Where a kernel comes from: its syntax tree, its file and line, and the names that it may read.

A `KernelSource` is made when the decorator runs and reads nothing then; the file is parsed at first use. Names outside
the kernel are looked up one by one as the reader meets them and recorded, so that a compiled kernel is known by
exactly what it read.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from types import CodeType, FunctionType
from typing import Any, cast

from tilewright.errors import LanguageError
from tilewright.frontend.bindings import (
    BUILTINS,
    MISSING,
    Builtin,
    DynamicSymbol,
    Kernel,
    LanguageName,
    Missing,
    from_python,
)
from tilewright.frontend.decorators import method_kind, parameter_specs
from tilewright.frontend.syntax import FunctionSource, ParameterSpec, choose_entry
from tilewright.ir.dtypes import DType
from tilewright.ir.function import FunctionKind
from tilewright.ir.types import MemRef


class PythonNames:
    """Closure variables, then what the function around had when the kernel was defined (annotations are no part of a
    closure), then globals, then a few builtins. Each name read is recorded."""

    def __init__(
        self, function: FunctionType, read: dict[str, Callable[[], object]], around: dict[str, object]
    ) -> None:
        self._around = around
        self._cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        self._globals = function.__globals__
        self._read = read

    def _raw(self, name: str) -> object:
        cell = self._cells.get(name)
        if cell is not None:
            try:
                return cell.cell_contents
            except ValueError:
                return MISSING
        if name in self._around:
            return self._around[name]
        return self._globals.get(name, MISSING)

    def lookup(self, name: str) -> object:
        raw = self._raw(name)
        if isinstance(raw, Missing):
            return Builtin(name) if name in BUILTINS else MISSING
        return self._use(name, raw, lambda: self._raw(name))

    def member(self, owner: Any, name: str, path: str) -> object:
        raw = cast("dict[str, object]", vars(owner)).get(name, MISSING)
        if isinstance(raw, Missing):
            return MISSING
        return self._use(path, raw, lambda: cast("dict[str, object]", vars(owner)).get(name, MISSING))

    def _use(self, path: str, raw: object, again: Callable[[], object]) -> object:
        found = from_python(raw)
        if isinstance(found, Missing):
            raise LanguageError(
                f"{path!r} is a Python object that a kernel cannot read",
                required="a number, bool, string, list or tuple of them, an enum, a dtype, a module or another kernel",
                found=f"{path}: {type(raw).__name__}",
                help="compute what the kernel needs of it outside, and read that",
            )
        if not isinstance(found, LanguageName):
            self._read[path] = again
        return found


class KernelSource:
    """A kernel as source: a function, or a class that is a program. Nothing is read until it is needed."""

    def __init__(self, owner: Any, name: str, kind: FunctionKind | None, entry: str | None, file: str) -> None:
        self.name = name
        self.kind = kind
        self.entry_name = entry
        self.file = file
        self._owner = owner
        self._read: dict[str, Callable[[], object]] = {}
        self._functions: dict[str, FunctionSource] | None = None
        self._around = around(owner)

    @classmethod
    def from_function(cls, function: Any, kind: FunctionKind = FunctionKind.ORCHESTRATION) -> KernelSource:
        """The source of a Python function. Raises `LanguageError` for anything else."""
        if not isinstance(function, FunctionType):
            raise LanguageError(f"a kernel is a function, not {type(function).__name__}")
        return cls(function, function.__name__, kind, function.__name__, function.__code__.co_filename)

    @classmethod
    def from_class(cls, owner: type, entry: str | None = None) -> KernelSource:
        """The source of a program class. `entry` names the method that runs; the default is the only one, else the
        first `Orchestration` method, else one called `main`, else the last."""
        methods = [item for item in vars(owner).values() if isinstance(item, FunctionType)]
        if not methods:
            raise LanguageError(f"program {owner.__name__} has no functions", help="give it a method with @pl.function")
        return cls(owner, owner.__name__, None, entry, methods[0].__code__.co_filename)

    @property
    def line(self) -> int:
        """The 1-based line of the kernel's `def` or `class`."""
        return self.entry().node.lineno

    # --- syntax ---
    def functions(self) -> dict[str, FunctionSource]:
        """The functions of the kernel, in order; one unless it is a program."""
        if self._functions is None:
            if self.kind is not None:
                function = cast("FunctionType", self._owner)
                node = find_function(function.__code__)
                names = PythonNames(function, self._read, self._around)
                self._functions = {self.name: FunctionSource(self.name, node, self.file, self.kind, names)}
            else:
                self._functions = self._methods()
        return self._functions

    def _methods(self) -> dict[str, FunctionSource]:
        found: dict[str, FunctionSource] = {}
        for name, item in cast("dict[str, object]", vars(self._owner)).items():
            if isinstance(item, FunctionType):
                node, names = find_function(item.__code__), PythonNames(item, self._read, self._around)
                kind = method_kind(node, names, self.file)
                found[name] = FunctionSource(name, node, self.file, kind, names, found)
        return found

    def entry(self) -> FunctionSource:
        """The function that a call of the kernel runs."""
        return choose_entry(self.functions(), self.entry_name, self.name)

    @property
    def parameters(self) -> tuple[ParameterSpec, ...]:
        """The parameters of the entry, as declared."""
        return parameter_specs(self.entry())

    # --- what was read ---
    def reads(self) -> tuple[tuple[str, object], ...]:
        """Every outside name read so far with its value now, in a hashable form; kernels that are called contribute
        what they read. Equal tuples mean that a program made from this source is still the right one."""
        return tuple(self._reads(set()))

    def watched(self) -> tuple[tuple[Callable[[], object], object], ...] | None:
        """Every outside name read so far, as a way to look it up and the object found: while each gives the same
        object, `reads` is what it is now. None where one can change in place, as a list does."""
        found: list[tuple[Callable[[], object], object]] = []
        open_: list[KernelSource] = [self]
        seen = {id(self)}
        while open_:
            for again in list(open_.pop()._read.values()):
                raw = again()
                value = from_python(raw)
                if isinstance(value, Kernel) and isinstance(value.source, KernelSource):
                    if id(value.source) not in seen:
                        seen.add(id(value.source))
                        open_.append(value.source)
                elif not (raw is None or isinstance(raw, int | float | str | DType | Enum)):
                    return None
                found.append((again, raw))
        return tuple(found)

    def _reads(self, seen: set[int]) -> Iterator[tuple[str, object]]:
        seen.add(id(self))
        for path, again in sorted(self._read.items()):
            value = from_python(again())
            if isinstance(value, Kernel):
                source = value.source
                yield path, source
                if isinstance(source, KernelSource) and id(source) not in seen:
                    for name, inner in source._reads(seen):
                        yield f"{path}.{name}", inner
            else:
                yield path, _frozen(value)


def _frozen(value: object) -> object:
    """`value` with its class, since True, 1 and 1.0 are equal and mean different kernels."""
    if isinstance(value, tuple):
        return tuple(_frozen(item) for item in cast("tuple[object, ...]", value))
    return (type(value).__name__, repr(value) if isinstance(value, float) else value)


def around(owner: Any) -> dict[str, object]:
    """The constants among the variables of the function in which `owner`, a function or class, is being defined."""
    name, inside, _ = cast("str", owner.__qualname__).rpartition(".<locals>.")
    frame = sys._getframe(1) if inside else None  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_code.co_qualname == name:
            return {key: value for key, value in frame.f_locals.items() if isinstance(value, _CONSTANTS)}
        frame = frame.f_back
    return {}


_CONSTANTS = (bool, int, float, str, tuple, DType, DynamicSymbol, Enum, MemRef)

# --- finding the syntax tree --------------------------------------------------------------------------------------
_FILES: dict[str, tuple[int, dict[int, list[ast.FunctionDef]]]] = {}


def find_function(code: CodeType) -> ast.FunctionDef:
    """The syntax tree of the function that `code` was compiled from, with the lines and columns of its file.
    Raises `LanguageError` when the source cannot be read."""
    file, first = code.co_filename, code.co_firstlineno
    for node in _functions_of(file).get(first, ()):
        if node.name == code.co_name:
            return node
    raise LanguageError(
        f"the source of kernel {code.co_name} cannot be found",
        found=f"{file}, line {first}",
        help="write the kernel as a plain def in a file or notebook cell",
    )


def _functions_of(file: str) -> dict[int, list[ast.FunctionDef]]:
    """Every function of a file by the line where it, or its first decorator, begins."""
    text = "".join(linecache.getlines(file))
    known = _FILES.get(file)
    if known is not None and known[0] == hash(text):
        return known[1]
    found: dict[int, list[ast.FunctionDef]] = {}
    try:
        tree = ast.parse(text, file)
    except SyntaxError:
        return found
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found.setdefault(first, []).append(node)
    _FILES[file] = (hash(text), found)
    return found
