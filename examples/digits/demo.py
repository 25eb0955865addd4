"""Reads 1,797 handwritten digits with a compiled kernel, and shows everything that was made of it on the way.

    make demo                              or    python examples/digits/demo.py

Native code for this machine is compared with NumPy in accuracy, in every score and in time; then the same kernel is
placed on an Ascend 910B, written as text for its assembler, and that text is executed by an emulator and compared with
the reference interpreter. The exit code is 1 when anything differs by more than rounding can explain.
"""

# ruff: noqa: E402 - NumPy reads the number of threads when it is imported
from __future__ import annotations

import os

# One thread each: the kernel runs on one, and a BLAS with more of them is slow on a machine that does other work too.
for library in ("OPENBLAS", "MKL", "OMP", "VECLIB", "BLIS"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import numpy as np
from kernel import BLOCK, arguments, classify
from train import Floats, Weights, accuracy, load_digits, numpy_reference

from tilewright import load_target
from tilewright.cli.output import is_terminal, show, write_files
from tilewright.codegen.pto.emulate import launch
from tilewright.codegen.pto.writer import PTOModule, emit_pto
from tilewright.report import Explanation
from tilewright.report.model import FunctionReport
from tilewright.report.render import memory_map, place
from tilewright.report.tables import Column, Table, human_bytes

BUILD = Path(__file__).resolve().parent / "build"
ROUNDS = 300
TARGETS = ("ascend910b", "ascend950")

wrong: list[str] = []


def main() -> int:
    """Runs every part in order; 1 when one of them found a difference."""
    started = perf_counter()
    digits = load_digits()
    x, *rest = arguments()
    weights, scores = Weights(*rest[:4]), rest[4]
    with empty_cache():
        compile_times(x, weights, scores)
        native(x, weights, scores, digits.labels)
    heading("The same kernel on an Ascend 910B")
    placement(classify.explain(x, *weights, scores, target="ascend910b"))
    heading("Text for the Ascend assembler")
    expected = classify.reference(x, *weights, np.zeros_like(scores))
    for target in TARGETS:
        module = emit_pto(classify.lower(x, *weights, scores, target=target), load_target(target))
        emulate(target, module, (x, *weights), expected, weights)
    heading(f"{'Something is wrong' if wrong else 'Everything agrees'}, after {perf_counter() - started:.1f} s")
    for what in wrong:
        show(f"  WRONG: {what}")
    return int(bool(wrong))


@contextmanager
def empty_cache() -> Iterator[None]:
    """A cache of compiled kernels with nothing in it, so that the first compilation is a cold one."""
    before = os.environ.get("TILEWRIGHT_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TILEWRIGHT_CACHE"] = folder
        yield
    del os.environ["TILEWRIGHT_CACHE"]
    if before is not None:
        os.environ["TILEWRIGHT_CACHE"] = before


# --- native -------------------------------------------------------------------------------------------------------
def compile_times(x: Floats, weights: Weights, scores: Floats) -> None:
    """Compile once from nothing, and once more with the code on disk."""
    host = load_target("host")
    heading(f"On this machine: {host.description}, {os.cpu_count()} cores")
    cold = seconds(lambda: classify.compile(x, *weights, scores).native)
    warm = statistics.median(seconds(lambda: classify.compile(x, *weights, scores).native) for _ in range(5))
    show(f"  compiled in {cold * 1e3:.0f} ms from nothing, {warm * 1e3:.1f} ms when the code is on disk already")


def native(x: Floats, weights: Weights, scores: Floats, labels: np.ndarray) -> None:
    """Accuracy, the scores one by one, and the time, beside NumPy's."""
    reference = numpy_reference(x, weights)
    classify(x, *weights, scores)
    ours, theirs = accuracy(scores, labels), accuracy(reference, labels)
    show(f"  {len(x):,} images: {ours:.2%} right; NumPy {theirs:.2%}")
    if not np.array_equal(scores.argmax(axis=1), reference.argmax(axis=1)):
        wrong.append("digits read differently from NumPy")
    compare("scores of native code and of NumPy", scores, reference, x, weights)
    mine, numpys = alternate(lambda: classify(x, *weights, scores), lambda: numpy_reference(x, weights))
    rows = tuple(
        (name, f"{time * 1e6:,.0f} us", f"{time / len(x) * 1e9:,.0f} ns", f"{len(x) / time / 1e6:.1f} million")
        for name, time in (("Tilewright", mine), ("NumPy", numpys))
    )
    columns = (Column("", key=True), Column("per batch", right=True), Column("per image", right=True),
               Column("images per second", right=True))  # fmt: skip
    show(Table(f"  Time on one thread, median of {ROUNDS} runs of each in turn", columns, rows))


def alternate(one: Callable[[], object], other: Callable[[], object]) -> tuple[float, float]:
    """Median seconds of both, run in turn so that both meet the same machine."""
    pairs = [(seconds(one), seconds(other)) for _ in range(ROUNDS)]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def seconds(action: Callable[[], object]) -> float:
    """How long one call takes."""
    started = perf_counter()
    action()
    return perf_counter() - started


def compare(what: str, found: Floats, expected: Floats, x: Floats, weights: Weights) -> None:
    """Every score may differ by what rounding can do to it in two different orders of summation, and no more: each
    order errs by at most (number of roundings) * 2^-24 of the sum of the absolute values of all terms."""
    roundings = x.shape[1] + weights.w2.shape[0] + 4
    terms = (np.abs(x) @ np.abs(weights.w1) + np.abs(weights.b1)) @ np.abs(weights.w2) + np.abs(weights.b2)
    allowed = 2 * roundings * 2.0**-24 * terms
    difference = np.abs(found.astype(np.float64) - expected)
    if not np.all(difference <= allowed):  # also when something is NaN
        wrong.append(f"{what}: differ by {difference.max():.3g}")
    elif difference.any():
        show(f"  {what}: largest difference {difference.max():.2g}, where rounding allows {allowed.min():.2g} or more")
    else:
        show(f"  {what}: equal, every bit")


# --- the 910B -----------------------------------------------------------------------------------------------------
def placement(found: Explanation) -> None:
    """Where each tile lives and why, launch by launch, and what goes through DDR."""
    columns = (
        Column("tile", key=True), Column("core"), Column("shape"), Column("memory"), Column("bytes", right=True),
        Column("address", right=True), Column("why there"),
    )  # fmt: skip
    rows = tuple(
        (tile.name, f"{number} {function.core}", tile.shape, place(tile.space, tile.memory), f"{tile.nbytes:,}",
         f"{tile.address:#x}", tile.why)
        for number, function in enumerate(found.functions, 1)
        for tile in function.tiles
    )  # fmt: skip
    show(Table(f"  Tiles: {BLOCK} images at a time, through {len(found.launches)} launches", columns, rows))
    show("")
    columns = (Column("launch", key=True), Column("core"), Column("DDR in", right=True), Column("DDR out", right=True),
               Column("fullest memory"))  # fmt: skip
    rows = tuple(
        (f"{number} {function.name}", function.core, f"{function.ddr_in:,}", f"{function.ddr_out:,}", fullest(function))
        for number, function in enumerate(found.functions, 1)
    )
    total = ("all together", "", f"{found.ddr_in:,}", f"{found.ddr_out:,}", "")
    show(Table("  Bytes through DDR, all images", columns, (*rows, total)))
    show("")
    show(memory_map(found.functions[0]))


def fullest(function: FunctionReport) -> str:
    """The memory of which the largest share is taken."""
    use = max(function.memories, key=lambda use: use.share)
    return f"{use.memory}: {human_bytes(use.peak)} of {human_bytes(use.capacity)}"


def emulate(target: str, module: PTOModule, inputs: tuple[Floats, ...], expected: Floats, weights: Weights) -> None:
    """Writes the text, executes just that text, and compares with the interpreter."""
    files = {**module.texts, "manifest.json": json.dumps(module.manifest, indent=2) + "\n"}
    paths = write_files(BUILD / target, files)
    lines = sum(text.count("\n") for text in module.texts.values())
    kernels = f"{len(module.texts)} kernel" + "s" * (len(module.texts) != 1)
    show(f"  {target}: {kernels} and a manifest, {lines} lines, in {os.path.relpath(paths[0].parent)}/")
    texts = {path.name: path.read_text() for path in paths if path.suffix == ".pto"}
    names = ("x", "w1", "b1", "w2", "b2")
    scores = np.full_like(expected, np.nan)
    time = seconds(lambda: launch(module.manifest, texts, {**dict(zip(names, inputs, strict=True)), "scores": scores}))
    compare(f"emulator ({len(scores):,} images in {time:.1f} s) and interpreter", scores, expected, inputs[0], weights)


def heading(text: str) -> None:
    """A line that begins a part."""
    show("")
    if is_terminal():
        from rich.rule import Rule
        from rich.text import Text

        show(Rule(Text(text, style="bold"), align="left"))
    else:
        show(f"== {text}")


if __name__ == "__main__":
    sys.exit(main())
