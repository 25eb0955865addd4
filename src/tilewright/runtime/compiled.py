"""What `tw.compile` returns: a program and its target, with everything that is made of them made when asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

from tilewright.certify.certificate import Certificate
from tilewright.certify.writer import certify
from tilewright.compiler import UNPLACED, lower
from tilewright.errors import ArgumentError, TilewrightError
from tilewright.ir.function import Program
from tilewright.ir.types import TensorType
from tilewright.runtime.arrays import Argument, as_argument, returned
from tilewright.runtime.checks import check_aliasing, check_output
from tilewright.targets import Target

if TYPE_CHECKING:
    from tilewright.report.html import Report


class CompiledProgram:
    """`source` is the program as written, `target` the machine. Calling it runs native code."""

    def __init__(self, source: Program, target: Target, native: Callable[[], Any], forward: bool = True) -> None:
        self.source = source
        self.target = target
        self._native = native
        self._forward = forward

    @cached_property
    def program(self) -> Program:
        """The placed tile program: every tile has an address. Raises what the passes raise."""
        return lower(self.source, self.target, forward=self._forward)

    @cached_property
    def certificate(self) -> Certificate:
        """What the placed program claims of itself, for `tilewright check` and `certify.checker.check`."""
        return certify(self.program, self.target)

    @cached_property
    def unplaced(self) -> Program:
        """The tile program that native code is made from."""
        return lower(self.source, self.target, after=UNPLACED, forward=self._forward)

    @cached_property
    def native(self) -> Any:
        """The native kernel. Raises `UnsupportedError` for a target that is no CPU."""
        return self._native()

    def __call__(self, *args: Any) -> Any:
        """Run on arrays and numbers, one for each parameter of the entry; outputs are written in place. Returns what
        the entry returns, without the outputs that its source does not return itself."""
        main = self.source.main
        if len(args) != len(main.params):
            raise ArgumentError(
                f"{main.name} takes {len(main.params)} arguments",
                found=str(len(args)),
                help="pass " + ", ".join(param.value.name for param in main.params),
            )
        given = [
            as_argument(value, param.value.name) if isinstance(param.value.type, TensorType) else value
            for param, value in zip(main.params, args, strict=True)
        ]
        arrays = [
            (param.value.name, param.is_output, item)
            for param, item in zip(main.params, given, strict=True)
            if isinstance(item, Argument)
        ]
        for name, is_output, item in arrays:
            if is_output:
                check_output(name, item)
        check_aliasing(arrays)
        results = self.native.run([item.view if isinstance(item, Argument) else item for item in given])
        implicit = main.attr("implicit_outputs", 0)
        assert isinstance(implicit, int)
        kinds = {item.kind for _, _, item in arrays}
        kind = "torch" if "torch" in kinds else "numpy"
        shown = [_shown(result, given, kind) for result in results[: len(results) - implicit]]
        return (shown[0] if len(shown) == 1 else tuple(shown)) if shown else None

    def report(self) -> Report:
        """The page about the program on its target."""
        from tilewright.report.html import make_report

        return make_report(self.source, self.target)

    def _repr_html_(self) -> str:
        """A notebook shows the page. A program that does not fit its target is shown as what it is, and why."""
        try:
            return self.report().frame
        except TilewrightError as error:
            return f"<pre>{escape(repr(self))}\n{escape(str(error))}</pre>"

    def __repr__(self) -> str:
        return f"<{self.source.entry} compiled for {self.target.name}>"


def _shown(result: Any, given: list[Any], kind: str) -> Any:
    """An output as the object that was passed; a new array in the caller's kind."""
    for item in given:
        if isinstance(item, Argument) and item.view is result:
            return item.given
    return returned(result, kind) if hasattr(result, "dtype") and hasattr(result, "shape") else result
