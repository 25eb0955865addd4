"""From ``FILE[:kernel]`` to something that can be read, run and explained.

A Python file with kernels is executed: it is its user's own program, and kernels may use anything that it defines.
A file that holds nothing but one `@pl.program` class is program text, whatever its name; it is parsed and not executed.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from tilewright.errors import CommandError, LanguageError, Span, register_source
from tilewright.execute.interpreter import interpret
from tilewright.frontend import MISSING, parse, parse_loops, says_loops
from tilewright.ir.function import Direction, FunctionKind, Program
from tilewright.ir.loop_level import LoopFunction
from tilewright.ir.types import Type
from tilewright.runtime.build import compile_for
from tilewright.runtime.jit import JitFunction
from tilewright.runtime.options import Options
from tilewright.runtime.program import ProgramKernel

STDIN = "-"
"""The file name that stands for standard input, read as program text."""


Examples = Callable[[], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel; `type` is None where the arguments of a call decide it."""

    name: str
    direction: Direction
    type: Type | None = None
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Subject:
    """What a command works on: a kernel of a file, or a program."""

    name: str
    file: str
    parameters: tuple[Parameter, ...]
    program: Callable[[Sequence[Any]], Program]
    """the program as written, for these arguments"""
    call: Callable[[Sequence[Any]], Any]
    """run natively"""
    reference: Callable[[Sequence[Any]], Any]
    """run in the reference interpreter"""
    forward: bool = True
    """whether its sections may be joined: an option of `pl.jit`"""
    examples: Examples | None = None
    """the file's own arguments, where it offers some"""


def open_subject(spec: str, text: str | None = None) -> Subject:
    """The kernel that ``FILE[:kernel]`` names; `text` is what the file holds, where it was read already. Raises
    `CommandError` for a file that is missing, is no text, has no kernels, or several of which none was named, and
    what is wrong with program text."""
    file, name = _split(spec)
    text = read_spec(spec) if text is None else text
    if says_loops(text):
        raise CommandError(
            f"{file} is a loop function, not a kernel",
            required="a kernel of @pl.jit, or a program",
            help="tilewright opt FILE --passes lower_blocks runs passes on loops; docs/loops.md shows how they run",
        )
    if is_program_text(file, text):
        program = parse(text, "<stdin>" if file == STDIN else file)
        if name is not None and name != program.entry:
            raise CommandError(f"{file} is one program, whose entry is {program.entry!r}", found=name)
        return of_program(program, file)
    found, module = kernels_in(file, text)
    chosen = _choose(found, file, name)
    examples: Any = getattr(module, "arguments", None)
    return _of_kernel(chosen, file, None if examples is None else cast("Examples", examples))


def read_spec(spec: str) -> str:
    """The text of the file that ``FILE[:kernel]`` names."""
    return _read(_split(spec)[0])


def loops_in(spec: str, text: str) -> LoopFunction | None:
    """The loop function that `text`, read from ``FILE``, is; None for any other text."""
    file = "<stdin>" if spec == STDIN else _split(spec)[0]
    return parse_loops(text, file) if says_loops(text) else None


def _split(spec: str) -> tuple[str, str | None]:
    """A file, and the kernel named after its last colon."""
    file, colon, name = spec.rpartition(":")
    if colon and name.isidentifier() and not Path(spec).exists():
        return file, name
    return spec, None


def _read(file: str) -> str:
    if file == STDIN:
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CommandError(f"{file} is no text", required="Python, or program text, in UTF-8") from None
    except OSError as error:
        raise CommandError(
            f"{file} cannot be read", found=error.strerror or str(error), help="give FILE or FILE:kernel"
        ) from None


def is_program_text(file: str, text: str) -> bool:
    """Whether `text` is a program in the `pl` dialect and nothing else: it is then parsed, and not executed."""
    if not file.endswith(".py"):
        return True
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return False
    rest = [node for node in body if not isinstance(node, ast.Import) and not _is_docstring(node)]
    return len(rest) == 1 and isinstance(rest[0], ast.ClassDef)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


# --- files of kernels ---------------------------------------------------------------------------------------------
Kernel = JitFunction | ProgramKernel


def kernels_in(file: str, text: str) -> tuple[dict[str, Kernel], ModuleType]:
    """The kernels that a Python file defines, by name, and its module. The file is executed."""
    try:
        ast.parse(text, file)
    except SyntaxError as error:
        register_source(file, text)
        line, column = error.lineno or 1, max(0, (error.offset or 1) - 1)
        span = Span(file, line, column, line, column + 1)
        raise LanguageError(f"{file} is no Python: {error.msg}", span=span) from None
    module = _execute(file)
    found = {name: item for name, item in vars(module).items() if isinstance(item, Kernel)}
    own = {name: item for name, item in found.items() if Path(item.source.file).resolve() == Path(file).resolve()}
    return own or found, module


def _execute(file: str) -> ModuleType:
    """The module of a file. Whatever the file raises goes up as it is: it is its user's."""
    path = Path(file).resolve()
    spec = importlib.util.spec_from_file_location(f"tilewright_user_{path.stem}", path)
    assert spec is not None and spec.loader is not None, "a .py file has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    return module


def _choose(found: dict[str, Kernel], file: str, name: str | None) -> Kernel:
    if name is not None:
        if name in found:
            return found[name]
        raise CommandError(
            f"{file} has no kernel {name!r}", found="kernels " + ", ".join(found) if found else "no kernels at all"
        )
    entries = {n: k for n, k in found.items() if k.source.kind in (None, FunctionKind.ORCHESTRATION)} or found
    if len(entries) == 1:
        return next(iter(entries.values()))
    if not entries:
        raise CommandError(
            f"{file} has no kernels",
            required="a function decorated with @pl.jit, or a class decorated with @pl.program",
            help="import tilewright.language as pl, and decorate the function",
        )
    lines = "".join(f"\n    {file}:{name}{_signature(kernel)}" for name, kernel in entries.items())
    raise CommandError(f"{file} has {len(entries)} kernels; name one of them", found=lines)


def _signature(kernel: Kernel) -> str:
    return f"  ({', '.join(spec.name for spec in kernel.source.parameters)})"


def _of_kernel(kernel: Kernel, file: str, examples: Examples | None) -> Subject:
    if isinstance(kernel, ProgramKernel):
        return of_program(kernel.program, file, examples)
    parameters = tuple(
        Parameter(spec.name, spec.direction, None, spec.default is not MISSING) for spec in kernel.source.parameters
    )
    return Subject(
        kernel.source.name,
        file,
        parameters,
        lambda args: kernel.program(*args),
        lambda args: kernel(*args),
        lambda args: kernel.reference(*args),
        kernel.options.forward,
        examples,
    )


def of_program(program: Program, file: str, examples: Examples | None = None) -> Subject:
    """A program, whose parameters say their types."""
    parameters = tuple(Parameter(p.value.name, p.direction, p.value.type) for p in program.main.params)
    return Subject(
        program.entry,
        file,
        parameters,
        lambda _: program,
        lambda args: compile_for(program, "host", Options())(*args),
        lambda args: interpret(program, list(args)),
        examples=examples,
    )
