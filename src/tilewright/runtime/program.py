"""`@pl.program`: a class whose methods are the functions of one program, with every type written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from tilewright.frontend import KernelSource, read_program
from tilewright.ir.function import Program
from tilewright.runtime.options import Options

if TYPE_CHECKING:
    from tilewright.targets import Target

F = TypeVar("F", bound=Callable[..., Any])


class ProgramKernel:
    """A program read from a class. `program` is read at first use."""

    def __init__(self, owner: type, entry: str | None, options: Options) -> None:
        self.source = KernelSource.from_class(owner, entry)
        self.options = options
        self.__doc__ = owner.__doc__
        self.__name__ = owner.__name__
        self._program: Program | None = None

    @property
    def program(self) -> Program:
        """The program. Raises what is wrong with its source."""
        if self._program is None:
            self._program = read_program(self.source)
        return self._program

    def as_python(self, explicit_layout: bool = False) -> str:
        """The program as text."""
        return self.program.as_python(explicit_layout)

    def lower(self, target: str | Target | None = None, after: str | None = None) -> Program:
        """The placed tile program for `target`, or the program after the pass called `after`."""
        from tilewright.runtime.build import lowered

        return lowered(self.program, self.options.target if target is None else target, after)

    def compile(self, target: str | Target | None = None) -> Any:
        """The program compiled for `target`: see `tilewright.compile`."""
        from tilewright.runtime.build import compile_for

        return compile_for(self.program, self.options.target if target is None else target, self.options)

    def __str__(self) -> str:
        return self.as_python()

    def __repr__(self) -> str:
        return f"<program {self.__name__}>"


class _ProgramDecorator:
    """`pl.program`."""

    pl_name = "program"

    @overload
    def __call__(self, owner: type) -> ProgramKernel: ...
    @overload
    def __call__(
        self, *, entry: str | None = None, target: str | Target = "host", cache: bool = True
    ) -> Callable[[type], ProgramKernel]: ...
    def __call__(
        self,
        owner: type | None = None,
        *,
        entry: str | None = None,
        target: str | Target = "host",
        cache: bool = True,
    ) -> Any:
        """Read a class as a program. `entry` names the method that runs it."""
        options = Options(target, cache)

        def make(decorated: type) -> ProgramKernel:
            return ProgramKernel(decorated, entry, options)

        return make if owner is None else make(owner)


class _FunctionDecorator:
    """`pl.function`, which leaves its method alone: the reader takes what it says from the source."""

    pl_name = "function"

    @overload
    def __call__(self, function: F) -> F: ...
    @overload
    def __call__(self, **options: Any) -> Callable[[F], F]: ...
    def __call__(self, function: Any = None, **options: Any) -> Any:
        """The method itself."""
        return _unchanged if function is None else function


def _unchanged(function: F) -> F:
    return function


program = _ProgramDecorator()
function = _FunctionDecorator()
