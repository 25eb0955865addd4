"""``tilewright run``: a kernel on arrays, natively, in the interpreter or in the PTO emulator."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, cast

import numpy as np

from tilewright.cli.arguments import Array, build_arguments, copies, is_array
from tilewright.cli.kernels import Subject, open_subject
from tilewright.cli.output import is_terminal, say, show, show_json, write_array
from tilewright.errors import CommandError
from tilewright.ir.function import Direction
from tilewright.report.tables import Column, Table
from tilewright.targets import load_target

PLACES = ("native", "interpreter", "emulator")
ROUNDINGS = 128
"""Roundings of the element type in which a result may differ from the interpreter's, as a share of the largest value:
exponentials are approximated, and sums are added in another order."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of the command; see its help."""

    check: bool
    on: str
    target: str
    out: Path | None
    seed: int
    repeat: int
    tolerance: float | None
    as_json: bool


@dataclass(frozen=True, slots=True)
class Compared:
    """One output beside the interpreter's."""

    difference: float
    allowed: float

    @property
    def holds(self) -> bool:
        return self.difference <= self.allowed


def run_kernel(file: str, specs: Sequence[str], options: RunOptions) -> None:
    """Runs, prints and stores. Raises `CommandError` when outputs differ from the interpreter's by too much."""
    if options.on not in PLACES:
        raise CommandError(f"cannot run on {options.on!r}", required=" or ".join(PLACES))
    load_target(options.target)  # a mistake in its name is said even where the emulator is not asked
    subject = open_subject(file)
    given = build_arguments(subject, specs, options.seed)
    started = perf_counter()
    runner = _runner(subject, options, given)
    outputs = _outputs(subject, runner, given)
    seconds = {"first": perf_counter() - started}
    if options.repeat:
        seconds["median"] = _median(subject, runner, given, options.repeat)
    compared: dict[str, Compared] = {}
    if options.check:
        expected = _outputs(subject, subject.reference, given)
        compared = {name: compare(outputs[name], expected[name], options.tolerance) for name in outputs}
    if options.out is not None:
        arrays = [value for value in outputs.values() if is_array(value)]
        if not arrays:
            raise CommandError(f"{subject.name} has no array among its outputs", found=", ".join(outputs) or "none")
        write_array(options.out, arrays[0])
    _report(subject, outputs, compared, seconds, options)
    wrong = [name for name, found in compared.items() if not found.holds]
    if wrong:
        raise CommandError(
            f"{subject.name} differs from the interpreter in {', '.join(wrong)}",
            required=f"at most {compared[wrong[0]].allowed:.3g}",
            found=f"{compared[wrong[0]].difference:.3g}",
        )


# --- running ------------------------------------------------------------------------------------------------------
def _runner(subject: Subject, options: RunOptions, given: list[Any]) -> Callable[[Sequence[Any]], Any]:
    if options.on == "native":
        return subject.call
    if options.on == "interpreter":
        return subject.reference
    from tilewright.cli.emulated import emulated

    return emulated(subject.program(given), options.target, subject.forward)


def _outputs(subject: Subject, runner: Callable[[Sequence[Any]], Any], given: list[Any]) -> dict[str, Any]:
    """Runs on copies; every output by name, those that are returned and no parameter as ``result``."""
    values = copies(given)
    returned = runner(values)
    found: dict[str, Any] = {}
    for parameter, value in zip(subject.parameters, values, strict=False):
        if parameter.direction is not Direction.IN:
            found[parameter.name] = value
    results = cast("Sequence[Any]", returned) if isinstance(returned, tuple | list) else (returned,)
    fresh = [r for r in results if r is not None and not any(r is value for value in found.values())]
    for number, result in enumerate(fresh):
        found["result" if len(fresh) == 1 else f"result{number}"] = result
    return found


def _median(subject: Subject, runner: Callable[[Sequence[Any]], Any], given: list[Any], repeat: int) -> float:
    times: list[float] = []
    for _ in range(repeat):
        values = copies(given)
        started = perf_counter()
        runner(values)
        times.append(perf_counter() - started)
    return statistics.median(times)


def compare(found: Any, expected: Any, tolerance: float | None) -> Compared:
    """The largest difference of two outputs, and the one allowed. What is NaN in both is equal; infinities are equal
    to themselves."""
    a, b = np.asarray(found), np.asarray(expected)
    if a.shape != b.shape or a.dtype != b.dtype:
        return Compared(float("inf"), 0.0)
    inexact = a.dtype.kind in "fV"
    left, right = (a.astype(np.float64), b.astype(np.float64)) if inexact else (a.astype(object), b.astype(object))
    same = left == right
    if inexact:
        same |= np.isnan(left) & np.isnan(right)
    if bool(np.all(same)):
        return Compared(0.0, 0.0)
    apart = np.abs(left - right)[~same]
    difference = float("inf") if inexact and not np.all(np.isfinite(apart)) else float(np.max(apart))
    finite = right[np.isfinite(right)] if inexact else right
    largest = float(np.max(np.abs(finite))) if finite.size else 0.0
    share = tolerance if tolerance is not None else ROUNDINGS * _rounding(a.dtype) if inexact else 0.0
    return Compared(difference, share * largest)


def _rounding(dtype: np.dtype[Any]) -> float:
    """The distance from 1 to the next number, halved: the largest relative error of one rounding."""
    import ml_dtypes

    return float(ml_dtypes.finfo(dtype).eps) / 2  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


# --- reporting ----------------------------------------------------------------------------------------------------
def _report(
    subject: Subject,
    outputs: dict[str, Any],
    compared: dict[str, Compared],
    seconds: dict[str, float],
    options: RunOptions,
) -> None:
    if options.as_json:
        show_json(
            {
                "kernel": subject.name,
                "on": options.on,
                "seconds": seconds,
                "outputs": [_summary(name, value) | _verdict(compared.get(name)) for name, value in outputs.items()],
            }
        )
        return
    columns = (
        Column("output", key=True), Column("shape"), Column("dtype"), Column("smallest", right=True),
        Column("largest", right=True), Column("mean", right=True), Column("beside the interpreter"),
    )  # fmt: skip
    rows = tuple(_row(_summary(name, value), compared.get(name)) for name, value in outputs.items())
    timing = f"first run, compiling included: {_time(seconds['first'])}"
    if "median" in seconds:
        timing += f"; median of {options.repeat} more: {_time(seconds['median'])}"
    show(Table(f"{subject.name}, {options.on}", columns, rows) if rows else f"{subject.name} has no outputs")
    (print if is_terminal() else say)(timing)
    if options.out is not None:
        say(f"wrote {options.out}")


def _summary(name: str, value: Any) -> dict[str, Any]:
    array = np.asarray(value)
    numbers: Array = array.astype(np.float64)
    undefined = int(np.isnan(numbers).sum())
    finite = numbers[~np.isnan(numbers)]
    figures = (float(finite.min()), float(finite.max()), float(finite.mean())) if finite.size else (None, None, None)
    smallest, largest, mean = figures
    return {
        "name": name, "shape": list(array.shape), "dtype": str(array.dtype), "smallest": smallest, "largest": largest,
        "mean": mean, "nan": undefined,
    }  # fmt: skip


def _verdict(compared: Compared | None) -> dict[str, Any]:
    if compared is None:
        return {}
    finite = np.isfinite(compared.difference)  # JSON has no infinity
    return {
        "difference": compared.difference if finite else None,
        "allowed": compared.allowed,
        "holds": compared.holds,
    }


def _row(summary: dict[str, Any], compared: Compared | None) -> tuple[str, ...]:
    verdict = ""
    if compared is not None:
        verdict = "equal" if not compared.difference else f"differs by {compared.difference:.3g} at most"
        verdict += "" if not compared.difference else f" ({compared.allowed:.3g} allowed)"
    figures = ["" if summary[key] is None else f"{summary[key]:.6g}" for key in ("smallest", "largest", "mean")]
    if summary["nan"]:
        figures[2] += f" ({summary['nan']} NaN)"
    return summary["name"], "x".join(map(str, summary["shape"])) or "number", summary["dtype"], *figures, verdict


def _time(seconds: float) -> str:
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
