"""A kernel ready to run for one specialisation: fills in its parameters, runs, and hands results back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from tilewright.errors import TilewrightError
from tilewright.execute.interpreter import Observer, interpret
from tilewright.ir.function import Program
from tilewright.ir.storage import output_positions
from tilewright.ir.types import TensorType
from tilewright.runtime.arrays import Argument, Array, returned, walkable
from tilewright.runtime.bind import Bound, Number, Static
from tilewright.runtime.memory import fresh

Runner = Callable[[Sequence[Any]], Sequence[Any]]
"""Runs a program's entry on NumPy arrays and numbers, one for each of its parameters; writes outputs in place.
Returns what the entry returns."""


class ShortCut(Protocol):
    """Takes the arguments of a call; returns what the kernel returns, or `MISS` without having done anything."""

    function: Callable[..., Any]
    """the same with the arguments as they are, and bytes for `failure` after a check failed"""

    def __call__(self, args: tuple[Any, ...], /) -> Any: ...
    def failure(self, message: bytes, /) -> TilewrightError: ...


@dataclass(frozen=True, slots=True)
class Executable:
    """`outputs`: for each value that the entry returns, the parameter that holds it, or None. `implicit`: how many of
    them, at the end, the kernel's source does not return itself. `allocate` makes the array of a parameter that the
    caller left out."""

    run: Runner
    outputs: tuple[int | None, ...]
    implicit: int
    allocate: Callable[[int], Array]
    short_cut: Callable[[Bound], ShortCut | None] = lambda bound: None
    """a shorter way for later calls like this one, if there is one"""

    def __call__(self, bound: Bound) -> Any:
        """Run on the arguments of a call. Returns what the kernel's source returns: one value, a tuple, or None.
        Outputs come back as the objects that were passed; new arrays in the caller's kind of array."""
        bound.check_aliasing()
        given = [item for item in bound.given if not isinstance(item, Static)]
        values: list[Any] = []
        after: list[Callable[[], None]] = []
        for index, item in enumerate(given):
            if isinstance(item, Argument):
                array, copy_back = walkable(item.view)
                values.append(array)
                if copy_back is not None and item.writable and index in self.outputs:
                    after.append(copy_back)
            else:
                values.append(item.value if isinstance(item, Number) else self.allocate(index))
        results = self.run(values)
        for action in after:
            action()
        return self._returned(given, results, bound.array_kind)

    def _returned(self, given: Sequence[Any], results: Sequence[Any], kind: str) -> Any:
        shown: list[Any] = []
        last = len(results) - self.implicit
        for index, (result, position) in enumerate(zip(results, self.outputs, strict=True)):
            passed = None if position is None else given[position]
            if isinstance(passed, Argument):
                if index < last:
                    shown.append(passed.given)
            else:
                shown.append(returned(cast("Array", result), kind) if isinstance(result, np.ndarray) else result)
        if not shown:
            return None
        return shown[0] if len(shown) == 1 else tuple(shown)


def interpreted(program: Program, observe: Observer | None = None) -> Executable:
    """The program in the reference interpreter. `observe` is called with each value that it makes."""
    main = program.main
    implicit = main.attr("implicit_outputs", 0)
    assert isinstance(implicit, int)

    def allocate(index: int) -> Array:
        kind = main.params[index].value.type
        assert isinstance(kind, TensorType)
        return fresh(kind.shape, np.dtype(kind.dtype.numpy))

    def run(values: Sequence[Any]) -> Any:
        return interpret(program, values, observe=observe)

    return Executable(run, output_positions(main, program), implicit, allocate)
