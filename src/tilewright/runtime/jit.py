"""`@pl.jit`: a kernel that is compiled for the arguments of its first call, and called on NumPy, torch or jax arrays.

@pl.jit
def add(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = a + b

add(x, y, z)                            # writes z
print(add.lower(x, y, z, target="ascend910b"))
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, overload

from tilewright.errors import ArgumentError, TilewrightError
from tilewright.frontend import KernelSource, ParameterSpec
from tilewright.ir.function import FunctionKind, Program
from tilewright.ir.scalar import Value
from tilewright.runtime.arrays import Argument
from tilewright.runtime.bind import MISS, Bound, Number, bind
from tilewright.runtime.options import Options

if TYPE_CHECKING:
    from tilewright.runtime.executable import Executable, ShortCut
    from tilewright.targets import Target

    AnyTarget = str | Target

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Last:
    """A short way, and what tells that nothing which the kernel reads from outside has changed: each of the functions
    still gives the very same object."""

    short: ShortCut
    watched: tuple[tuple[Callable[[], object], object], ...]


class JitFunction:
    """A kernel. Calling it compiles it, once for each combination of shapes, dtypes, strides and of the outside values
    that it reads, and runs it on this CPU. The other methods take the same arguments and show what was made."""

    __name__: str

    def __init__(self, function: Callable[..., Any], kind: FunctionKind, options: Options) -> None:
        functools.update_wrapper(self, function)
        self.source = KernelSource.from_function(function, kind)
        self.options = options
        self._executables: dict[tuple[object, ...], Executable] = {}
        self._last: _Last | None = None
        """the short way for calls like the last one; one object, for threads"""
        self._static: frozenset[str] = frozenset()
        """parameters whose numbers the source needs when it is compiled"""

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run on arrays and numbers. Returns what the kernel returns, new arrays in the kind of the arguments.
        Raises `ArgumentError` for arguments that do not fit, and what compiling raises."""
        last = self._last
        if last is not None and not named:
            for again, raw in last.watched:
                if again() is not raw:
                    break
            else:
                short = last.short
                result = short.function(*args)
                if result is MISS:
                    result = short(args)
                elif result.__class__ is bytes:
                    raise short.failure(result)
                if result is not MISS:
                    return result
        return self._call(args, named)

    def _call(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A call the long way. Remembers the short one for calls like it."""
        from tilewright.runtime.build import conversions

        read = (self.source.reads(), conversions())
        bound = self._bind(args, named)
        executable = self._executables.get((bound.key, read))
        if executable is None:
            executable, bound = self._specialise(args, named, self._build)
            read = (self.source.reads(), conversions())
            self._executables[bound.key, read] = executable
        result = executable(bound)
        short = None if named else executable.short_cut(bound)
        if short is not None:
            watched = self.source.watched()
            if watched is None:
                watched = ((self._same(read), True),)
            elif read[1]:
                watched = (*watched, (self._same(read), True))
            else:
                watched = (*watched, (conversions, read[1]))
            if (self.source.reads(), conversions()) == read:
                self._last = _Last(short, watched)
        return result

    def _same(self, read: object) -> Callable[[], object]:
        """Tells whether what was read from outside is still as it was, where identity of objects does not."""
        from tilewright.runtime.build import conversions

        return lambda: (self.source.reads(), conversions()) == read

    def program(self, *args: Any, **named: Any) -> Program:
        """The program as written, specialised for the arguments and not compiled yet."""
        return self._specialise(args, named, self._read)[0]

    def lower(self, *args: Any, target: AnyTarget | None = None, after: str | None = None, **named: Any) -> Program:
        """The placed tile program for `target`, or the program after the pass called `after`."""
        from tilewright.runtime.build import lowered

        return self._specialise(
            args, named, lambda bound: lowered(self._read(bound), self._target(target), after, self.options.forward)
        )[0]

    def compile(self, *args: Any, target: AnyTarget | None = None, **named: Any) -> Any:
        """The kernel compiled for `target`: see `tilewright.compile`."""
        from tilewright.runtime.build import compile_for

        return self._specialise(
            args, named, lambda bound: compile_for(self._read(bound), self._target(target), self.options)
        )[0]

    def explain(self, *args: Any, target: AnyTarget | None = None, **named: Any) -> Any:
        """Where each tile lives for `target`, what moves, and why."""
        from tilewright.report import explain

        return self._specialise(
            args, named, lambda bound: explain(*self._tuned(self._read(bound), target), self.options.forward)
        )[0]

    def simulate(self, *args: Any, target: AnyTarget | None = None, **named: Any) -> Any:
        """How many cycles the call takes on `target`, what it waits for, and how far from the machine's limit that is:
        a `tilewright.execute.simulation.SimulationResult`. The cycles are a model's; the machine is not needed."""
        from tilewright.execute.simulator import simulate
        from tilewright.runtime.build import lowered
        from tilewright.targets import load_target

        machine, forward = load_target(self._target(target)), self.options.forward
        program, bound = self._specialise(
            args, named, lambda bound: lowered(self._read(bound), machine, forward=forward)
        )
        return simulate(program, machine, _values(bound))

    def report(self, *args: Any, target: AnyTarget | None = None, **named: Any) -> Any:
        """The page about the call on `target`: a `tilewright.report.html.Report`, which saves itself as one HTML file
        and shows itself in a notebook."""
        from tilewright.report.html import make_report

        return self._specialise(
            args,
            named,
            lambda bound: make_report(*self._tuned(self._read(bound), target), _values(bound), self.options.forward),
        )[0]

    def tune(
        self, *args: Any, target: AnyTarget | None = None, budget: float | None = None, executor: Any = None,
        progress: Any = None, **named: Any,
    ) -> Any:  # fmt: skip
        """Searches for better decisions than the model's for this call on `target`, and writes what it finds beside the
        kernel's file, where later compiles read it: see `tilewright.runtime.tune.tune`. By default trials run in new
        processes, so that a script needs its ``if __name__ == "__main__":``."""
        from tilewright.runtime.tune import BUDGET, tune

        machine = self._target(target)
        found = self._specialise(
            args, named, lambda bound: tune(
                self._read(bound), machine, _values(bound), budget=BUDGET if budget is None else budget,
                executor=executor, forward=self.options.forward, progress=progress,
            ),
        )[0]  # fmt: skip
        self._executables.clear()
        self._last = None
        return found

    def reference(self, *args: Any, **named: Any) -> Any:
        """The same call in the reference interpreter, which states the meaning of every operation, prints what
        `pl.print` names, checks `pl.assert_`, and lets a debugger stop in the kernel. Raises `CheckFailed` too."""
        from tilewright.runtime.build import reference

        executable, bound = self._specialise(args, named, lambda bound: reference(self._read(bound, probes=True)))
        return executable(bound)

    def dump(self, *args: Any, **named: Any) -> dict[str, list[Any]]:
        """The same call in the reference interpreter; every value that it makes, in order, by the kernel's name for it:
        arrays (a tile's is all of its physical shape) and numbers."""
        from tilewright.execute.interpreter import Data
        from tilewright.runtime.build import reference

        found: dict[str, list[Any]] = {}

        def observe(value: Value, made: Any) -> None:
            found.setdefault(value.name, []).append(made.array.copy() if isinstance(made, Data) else made)

        executable, bound = self._specialise(args, named, lambda bound: reference(self._read(bound), observe))
        executable(bound)
        return found

    def __repr__(self) -> str:
        return f"<kernel {self.source.name}>"

    # --- specialising ---
    def _bind(self, args: tuple[Any, ...], named: dict[str, Any]) -> Bound:
        return bind(self.source.name, self._parameters, args, named, self._static)

    @functools.cached_property
    def _parameters(self) -> tuple[ParameterSpec, ...]:
        return self.source.parameters

    def _specialise(self, args: tuple[Any, ...], named: dict[str, Any], make: Callable[[Bound], T]) -> tuple[T, Bound]:
        """What `make` makes of the arguments. Where the source needs the value of a number that it was to get at run
        time, it becomes a constant, now and in later calls."""
        bound = self._bind(args, named)
        try:
            return make(bound), bound
        except ArgumentError:
            raise
        except TilewrightError:
            flexible = {
                spec.name
                for spec, item in zip(bound.specs, bound.given, strict=True)
                if isinstance(item, Number) and item.is_flexible
            }
            if not flexible:
                raise
        before, self._static = self._static, self._static | flexible
        try:
            bound = self._bind(args, named)
            return make(bound), bound
        except TilewrightError:
            self._static = before
            raise

    def _read(self, bound: Bound, *, probes: bool = False) -> Program:
        from tilewright.frontend import read_program

        return read_program(self.source, bound.types(), probes=probes)

    def _build(self, bound: Bound) -> Executable:
        from tilewright.runtime.build import build

        return build(self._read(bound), self.options)

    def _tuned(self, program: Program, target: AnyTarget | None) -> tuple[Program, Target]:
        """A program and its target, with what tuning found for it."""
        from tilewright.runtime.tuned import tuned_target
        from tilewright.targets import load_target

        return program, tuned_target(program, load_target(self._target(target)))

    def _target(self, target: AnyTarget | None) -> AnyTarget:
        return self.options.target if target is None else target


def _values(bound: Bound) -> dict[str, object]:
    """Numbers and arrays of a call by the names of their parameters."""
    given = zip(bound.specs, bound.given, strict=True)
    values = {s.name: item.value if isinstance(item, Number) else item for s, item in given}
    return {
        n: v.view if isinstance(v, Argument) else v for n, v in values.items() if isinstance(v, Argument | int | float)
    }


class JitDecorator:
    """`pl.jit` and its forms."""

    def __init__(self, pl_name: str, kind: FunctionKind) -> None:
        self.pl_name = pl_name
        self._kind = kind

    @overload
    def __call__(self, function: Callable[..., Any]) -> JitFunction: ...
    @overload
    def __call__(
        self, *, target: AnyTarget = "host", cache: bool = True, forward: bool = True
    ) -> Callable[[Callable[..., Any]], JitFunction]: ...
    def __call__(
        self,
        function: Callable[..., Any] | None = None,
        *,
        target: AnyTarget = "host",
        cache: bool = True,
        forward: bool = True,
    ) -> Any:
        """Make a kernel of a function. `target`: the machine that `lower` and `compile` take by default. `forward`:
        whether results of one section that only the next needs may stay on chip."""
        options = Options(target, cache, forward)

        def make(decorated: Callable[..., Any]) -> JitFunction:
            return JitFunction(decorated, self._kind, options)

        return make if function is None else make(function)

    def __repr__(self) -> str:
        return f"<pl.{self.pl_name}>"


class Jit(JitDecorator):
    """`pl.jit`: an entry. Its forms are functions that an entry calls."""

    def __init__(self) -> None:
        super().__init__("jit", FunctionKind.ORCHESTRATION)
        self.incore = JitDecorator("jit.incore", FunctionKind.INCORE)
        self.inline = JitDecorator("jit.inline", FunctionKind.INLINE)
        self.opaque = JitDecorator("jit.opaque", FunctionKind.OPAQUE)


jit = Jit()
