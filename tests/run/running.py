"""Kernels written out in text, run by everyone who can run them: each stage of the pipeline on each target in the
interpreter, machine code, and the assembler's text in the emulator. All must agree, and with NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from properties.judges import ASCEND, SCRATCHPAD, TARGETS, judge_native, judge_passes, judge_pto, same

from tilewright import parse
from tilewright.execute import interpret
from tilewright.ir.function import Program
from tilewright.targets import load_target

__all__ = ["ASCEND", "SCRATCHPAD", "TARGETS", "everywhere", "incore", "read"]

HEADER = """import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, {parameters}):
"""


def incore(parameters: str, body: str) -> str:
    """A kernel with one tile function."""
    lines = body.strip("\n").splitlines()
    shift = len(lines[0]) - len(lines[0].lstrip())
    return HEADER.format(parameters=parameters) + "\n".join("        " + line[shift:] for line in lines) + "\n"


def read(text: str) -> Program:
    return parse(text)


def everywhere(
    text: str,
    arguments: Sequence[Any],
    wanted: Sequence[Any],
    targets: Sequence[str] = TARGETS,
    *,
    native: bool = True,
    emulated: bool = True,
) -> None:
    """Run the kernel on `arguments`, whose last `len(wanted)` arrays are outputs that must come out as `wanted`."""
    program = parse(text)
    own: list[Any] = deepcopy(list(arguments))
    results = interpret(program, own)
    same(wanted, own[len(own) - len(wanted) :], "the kernel as it is written")
    reference: list[Any] = [*results, *own]
    for name in targets:
        target = load_target(name)
        placed = judge_passes(program, target, list(arguments), reference)
        if emulated and target.pto_arch is not None:
            judge_pto(placed, target, list(arguments), reference)
    if native:
        judge_native(program, list(arguments), reference)
