"""Do two programs mean the same? Both run in the interpreter on equal inputs, and nothing may differ by a bit."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from itertools import chain
from typing import Any

import numpy as np
from support import Array, exact_ints, poison

from tilewright.execute import interpret
from tilewright.execute.loops import interpret_loops
from tilewright.execute.scalars import evaluate_scalar
from tilewright.ir.buffers import BufferType
from tilewright.ir.function import Direction, Program
from tilewright.ir.loop_level import LoopFunction
from tilewright.ir.scalar import values_in
from tilewright.ir.types import TensorType

DEFAULT_EXTENT = 17
"""The size of a dimension that has no number: one more than a box, so that it has a tail."""


class MeaningError(AssertionError):
    """Two programs that should mean the same differ; the message says in which output, and where first."""


def draw_arguments(program: Program, symbols: Mapping[str, int] | None = None, seed: int = 0) -> list[Any]:
    """An argument for each parameter of the entry: small integers, and poison for what is only written.

    `symbols` gives numbers to dimensions and integer scalars by name; the others are `DEFAULT_EXTENT`.
    """
    named = symbols or {}
    arguments: list[Any] = []
    for position, param in enumerate(program.main.params):
        kind = param.value.type
        if isinstance(kind, TensorType):
            symbolic = chain.from_iterable(map(values_in, kind.shape))
            numbers = {symbol: named.get(symbol.name, DEFAULT_EXTENT) for symbol in symbolic}
            shape = tuple(int(evaluate_scalar(extent, numbers)) for extent in kind.shape)
            dtype = np.dtype(kind.dtype.numpy)
            fresh = param.direction is Direction.OUT
            arguments.append(poison(shape, dtype) if fresh else exact_ints(shape, dtype, seed + position))
        elif param.value.dtype.is_float:
            arguments.append(2.0)
        else:
            arguments.append(named.get(param.value.name, DEFAULT_EXTENT))
    return arguments


def outcome(program: Program, arguments: list[Any]) -> list[Any]:
    """What the source returns, then each argument as it is afterwards. The arguments given stay as they are."""
    own = deepcopy(arguments)
    results = interpret(program, own)
    implicit = program.main.attr("implicit_outputs", 0)
    assert isinstance(implicit, int)
    return [*results[: len(results) - implicit], *own]


def first_difference(left: Any, right: Any) -> str | None:
    """Where two outputs differ first, or None. NaN equals NaN, 0 equals -0."""
    a: Array = np.asarray(left)
    b: Array = np.asarray(right)
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{list(a.shape)} of {a.dtype} against {list(b.shape)} of {b.dtype}"
    wrong = (a != b) & ~((a != a) & (b != b))
    if not wrong.any():
        return None
    at = tuple(int(axis[0]) for axis in np.nonzero(np.atleast_1d(wrong)))
    found, instead = np.atleast_1d(a)[at], np.atleast_1d(b)[at]
    return f"{int(wrong.sum())} of {wrong.size} elements, first at {list(at)}: {found} against {instead}"


def check_same_meaning(before: Program, after: Program, symbols: Mapping[str, int] | None = None) -> None:
    """Raises `MeaningError` when the entries of two programs give different results or leave different outputs."""
    arguments = draw_arguments(before, symbols)
    expected, actual = outcome(before, arguments), outcome(after, arguments)
    if len(expected) != len(actual):
        raise MeaningError(f"{len(expected)} outputs before, {len(actual)} after")
    for position, (left, right) in enumerate(zip(expected, actual, strict=True)):
        difference = first_difference(left, right)
        if difference is not None:
            raise MeaningError(f"output {position} differs: {difference}")


def check_same_loops(before: LoopFunction, after: LoopFunction, symbols: Mapping[str, int] | None = None) -> None:
    """Raises `MeaningError` unless both leave the same in every parameter, whatever it held."""
    named = symbols or {}
    given: list[Any] = []
    for position, param in enumerate(before.params):
        kind = param.type
        if isinstance(kind, BufferType):
            numbers = {symbol: named.get(symbol.name, DEFAULT_EXTENT) for symbol in kind.values()}
            shape = tuple(int(evaluate_scalar(extent, numbers)) for extent in kind.shape)
            given.append(exact_ints(shape, np.dtype(kind.dtype.numpy), position))
        else:
            given.append(2.0 if kind.dtype.is_float else named.get(param.name, DEFAULT_EXTENT))
    results = deepcopy(given), deepcopy(given)
    for function, arguments in zip((before, after), results, strict=True):
        interpret_loops(function, arguments)
    for param, left, right in zip(before.params, *results, strict=True):
        difference = first_difference(left, right)
        if difference is not None:
            raise MeaningError(f"parameter {param.name} differs: {difference}")
