"""Tilewright: a compiler for kernels on machines whose fast memories are managed by software.

    import tilewright as tw
    import tilewright.language as pl

`tw.parse` reads a program from text, `tw.compile` compiles one for a target, `tw.load_target` finds a target by name
or file. Kernels are written with `tilewright.language`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright import text  # importing it gives programs their `__str__`
from tilewright.errors import OperandError, TilewrightError
from tilewright.ir.function import Program

if TYPE_CHECKING:
    from tilewright.runtime.compiled import CompiledProgram
    from tilewright.targets import Target

__version__ = "0.1.0"
__all__ = ["Program", "TilewrightError", "__version__", "compile", "load_target", "lower", "parse", "text", "verify"]


def parse(text: str, name: str = "<text>") -> Program:
    """The program that `text` says. Nothing is executed. `name` stands for the text in error messages.
    Raises a `TilewrightError` that points at what is not the language."""
    from tilewright.frontend import parse as read

    return read(text, name)


def compile(
    program: Any, *, target: str | Target = "host", cache: bool = True, forward: bool = True
) -> CompiledProgram:
    """`program`, a `Program` or a class decorated with `pl.program`, compiled for `target`: placed there, and callable
    on arrays where the target is this CPU. `cache`: whether code may be kept on disk. `forward`: whether results that
    only the next section needs may stay on chip."""
    from tilewright.runtime.build import compile_for
    from tilewright.runtime.options import Options

    return compile_for(_program_of(program), target, Options(target, cache, forward))


def lower(program: Any, *, target: str | Target = "host", after: str | None = None, forward: bool = True) -> Program:
    """`program` through the passes for `target`: placed, or as it is after the pass called `after`. `forward`: whether
    results that only the next section needs may stay on chip."""
    from tilewright.runtime.build import lowered

    return lowered(_program_of(program), target, after, forward)


def load_target(target: str | Target) -> Target:
    """A target by name (``ascend910b``, ``host``) or from a file. Raises `TargetError` with the names there are."""
    from tilewright.targets import load_target as load

    return load(target)


def verify(program: Program) -> None:
    """Raises `VerifyError`, placed at the guilty statement, unless `program` is well formed."""
    from tilewright.ir.verify import verify as check

    check(program)


def _program_of(given: Any) -> Program:
    """The program that a user means by a `Program` or a decorated class."""
    found = getattr(given, "program", given)
    if not isinstance(found, Program):
        raise OperandError(
            f"{type(given).__name__} is no program",
            required="a Program, or a class decorated with @pl.program",
            found=repr(given),
            help="a kernel of @pl.jit has shapes only with arguments: use kernel.compile(*args) or kernel.lower(*args)",
        )
    return found
