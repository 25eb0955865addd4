"""``tilewright validate``: what a program means after each pass, beside what it meant before the first.

Every stage runs in the interpreter on the same inputs; the placed program then runs at its addresses in the memory
machine, and goes before the checker of certificates. The first stage that differs is named, with the first value of
the program that is another than before, and where in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from tilewright.certify.checker import check
from tilewright.certify.writer import certify
from tilewright.cli.arguments import build_arguments, copies, poison
from tilewright.cli.kernels import Subject, open_subject
from tilewright.compiler import stages
from tilewright.errors import CommandError, TilewrightError
from tilewright.execute.interpreter import Data, interpret
from tilewright.execute.memory import run_placed
from tilewright.ir.function import Program
from tilewright.ir.scalar import Value
from tilewright.ir.types import TensorType, TileType
from tilewright.targets import Target, load_target

ROUNDINGS = 128
"""Roundings of the element type in which a result may differ, as a share of the largest value: sums that are cut are
added in another order. With integers as inputs most sums are exact, and nothing differs."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two runs differ first: the value, the index, and both elements."""

    value: str
    index: tuple[int, ...]
    wanted: str
    found: str

    def __str__(self) -> str:
        where = f"[{', '.join(map(str, self.index))}]" if self.index else ""
        return f"{self.value}{where} is {self.found}, and was {self.wanted}"


def validate_kernel(file: str, specs: Sequence[str], target: str, inputs: int, seed: int) -> None:
    """Validates, printing as it goes. Raises `CommandError` at the first difference, and what compiling raises."""
    machine = load_target(target)
    subject = open_subject(file)
    draws = [build_arguments(subject, specs, seed + number) for number in range(inputs)]
    program = subject.program(draws[0])
    given = [_for_entry(program, subject, values) for values in draws]
    wanted = [_outputs(program, interpret(program, own := copies(values)), own) for values in given]
    print(f"{subject.name} for {machine.name}, {inputs} sets of inputs")
    before, previous = program, "the source"
    started = perf_counter()
    for name, after in stages(program, machine):
        if after is not before or name == "frontend":
            _same(name, previous, before, after, given, wanted)
            before = after
        print(f"  {name:<24}equal{(perf_counter() - started) * 1e3:>10.0f} ms")
        started, previous = perf_counter(), name
    _on_the_machine(before, machine, given, wanted, seed)


def _on_the_machine(
    placed: Program, target: Target, given: list[list[Any]], wanted: list[dict[str, Any]], seed: int
) -> None:
    """The placed program at its addresses, and before the checker."""
    started = perf_counter()
    for number, (values, expected) in enumerate(zip(given, wanted, strict=True)):
        own = copies(values)
        found = _outputs(placed, run_placed(placed, target, own, seed=seed + number), own)
        _refuse_difference("the memory machine", first_difference(expected, found))
    print(f"  {'at its addresses':<24}equal{(perf_counter() - started) * 1e3:>10.0f} ms")
    started = perf_counter()
    verdict = check(placed, certify(placed, target), target)
    if not verdict.accepted:
        raise CommandError("the checker rejects the placed program", found=str(verdict.findings[0]))
    print(f"  {'certificate':<24}accepted{(perf_counter() - started) * 1e3:>7.0f} ms")
    for assumption in verdict.assumptions:
        print(f"    assumed: {assumption}")


def _same(
    name: str, previous: str, before: Program, after: Program, given: list[list[Any]], wanted: list[dict[str, Any]]
) -> None:
    """Raises unless `after` gives `wanted`; the values of the stage before tell where it went wrong."""
    for values, expected in zip(given, wanted, strict=True):
        own = copies(values)
        try:
            found = _outputs(after, interpret(after, own), own)
        except TilewrightError as error:
            raise CommandError(f"after {name} the program cannot run", span=error.span, found=str(error)) from None
        difference = first_difference(expected, found)
        if difference is not None:
            inside = _first_value(before, after, values)
            notes = () if inside is None else (f"the first value that is another than after {previous}: {inside}",)
            _refuse_difference(name, difference, notes)


def _refuse_difference(name: str, difference: Difference | None, notes: tuple[str, ...] = ()) -> None:
    if difference is not None:
        raise CommandError(
            f"after {name} the program means something else",
            required="the results of the source",
            found=str(difference),
            notes=notes,
        )


# --- values -------------------------------------------------------------------------------------------------------
def _for_entry(program: Program, subject: Subject, values: Sequence[Any]) -> list[Any]:
    """An argument for each parameter that the program has; outputs that were left out are made."""
    named = {parameter.name: value for parameter, value in zip(subject.parameters, values, strict=False)}
    found: list[Any] = []
    for param in program.main.params:
        kind = param.value.type
        if param.value.name in named:
            found.append(named[param.value.name])
        elif isinstance(kind, TensorType) and all(isinstance(extent, int) for extent in kind.shape):
            shape = tuple(extent for extent in kind.shape if isinstance(extent, int))
            found.append(poison(shape, np.dtype(kind.dtype.numpy)))
        else:
            raise CommandError(f"{subject.name} needs a value for {param.value.name!r}")
    return found


def _outputs(program: Program, results: Sequence[Any], values: Sequence[Any]) -> dict[str, Any]:
    """What a run leaves, by name: outputs, and what is returned and no output."""
    main = program.main
    implicit = main.attr("implicit_outputs", 0)
    assert isinstance(implicit, int)
    returned = {f"result {number}": item for number, item in enumerate(results[: len(results) - implicit])}
    written = {p.value.name: v for p, v in zip(main.params, values, strict=True) if p.is_output}
    return written | returned


def first_difference(wanted: dict[str, Any], found: dict[str, Any]) -> Difference | None:
    """The first output that differs by more than rounding."""
    for name, expected in wanted.items():
        if name not in found:
            return Difference(name, (), "there", "missing")
        at = _where(expected, found[name])
        if at is not None:
            return _difference(name, at, expected, found[name])
    return None


def _difference(name: str, at: tuple[int, ...], wanted: Any, found: Any) -> Difference:
    a, b = np.asarray(wanted), np.asarray(found)
    if a.shape != b.shape:
        return Difference(name, (), f"{list(a.shape)} of {a.dtype}", f"{list(b.shape)} of {b.dtype}")
    return Difference(name, at, str(a[at]), str(b[at]))


def _where(wanted: Any, found: Any) -> tuple[int, ...] | None:
    """The first index at which two arrays or numbers differ by more than rounding."""
    a, b = np.asarray(wanted), np.asarray(found)
    if a.shape != b.shape or a.dtype != b.dtype:
        return ()
    wrong = a != b
    if a.dtype.kind in "fV":
        left, right = a.astype(np.float64), b.astype(np.float64)
        wrong = wrong & ~(np.isnan(left) & np.isnan(right))
        finite = np.abs(left[np.isfinite(left)])
        with np.errstate(invalid="ignore"):
            near = np.abs(left - right) <= ROUNDINGS * _rounding(a.dtype) * (finite.max() if finite.size else 0.0)
        wrong = wrong & ~near
    if not np.any(wrong):
        return None
    return tuple(int(axis[0]) for axis in np.nonzero(wrong)) if a.ndim else ()


def _rounding(dtype: np.dtype[Any]) -> float:
    import ml_dtypes

    return float(ml_dtypes.finfo(dtype).eps) / 2  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


def _first_value(before: Program, after: Program, values: list[Any]) -> Difference | None:
    """The first value, in the order in which `after` computes, that has another meaning than its namesake before."""
    known = dict[str, list[Any]]()
    for name, item in _trace(before, values):
        known.setdefault(name, []).append(item)
    seen = dict[str, int]()
    for name, item in _trace(after, values):
        count = seen[name] = seen.get(name, -1) + 1
        if count < len(known.get(name, ())):
            expected = known[name][count]
            if np.shape(expected) == np.shape(item):
                at = _where(expected, item)
                if at is not None:
                    return _difference(name, at, expected, item)
    return None


def _trace(program: Program, values: list[Any]) -> Iterator[tuple[str, Any]]:
    """Every value that a run defines, with its name: numbers, and the part of a tile that has meaning."""
    found: list[tuple[str, Any]] = []

    def observe(value: Value, item: Any) -> None:
        if isinstance(item, Data) and isinstance(value.type, TileType):
            shape = value.type.valid
            if all(isinstance(extent, int) for extent in shape):
                found.append((value.name, item.array[tuple(slice(0, int(e)) for e in shape)].copy()))  # type: ignore[arg-type]
        elif not isinstance(item, Data):
            found.append((value.name, item))

    with suppress(TilewrightError):  # what was computed until then may still tell where it began
        interpret(program, copies(values), observe=observe)
    yield from found
