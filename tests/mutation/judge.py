"""Who finds a planted fault: the reader, the memory machine, or the checker of certificates."""

from __future__ import annotations

from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
from meaning import MeaningError, outcome
from mutation import control, operations  # noqa: F401  # pyright: ignore[reportUnusedImport]
from mutation.catalogue import KINDS
from mutation.editing import Lines
from mutation.programs import Base
from mutation.waits import WAITS, HazardList, claims_without, machine_waits, planted
from properties.judges import same
from support import embed, surroundings_intact

from tilewright import parse
from tilewright.certify.certificate import Certificate
from tilewright.certify.checker import check
from tilewright.certify.writer import certify
from tilewright.errors import TilewrightError
from tilewright.execute import instructions
from tilewright.execute.memory import run_placed
from tilewright.ir.function import Program


@dataclass(frozen=True)
class Fault:
    """One kind of fault in one place of one program."""

    kind: str
    base: Base
    site: str
    """the name that the changed statement defines, and the line as it is now"""
    text: str | None = None
    waits: HazardList | None = None
    claims: Certificate | None = None

    def __str__(self) -> str:
        return f"{self.kind}, in {self.base.where}: {self.site}"


def kinds() -> list[str]:
    return [*KINDS, *WAITS]


def faults(kind: str, base: Base) -> list[Fault]:
    """Every fault of `kind` in `base` that changes the program; each once."""
    if kind in WAITS:
        spoil = WAITS[kind]
        return [
            Fault(
                kind, base, place, None, machine_waits(name, pair, spoil),
                claims_without(certificate(base), name, pair, spoil),
            )
            for name, pair, place in planted(base, spoil)
        ]  # fmt: skip
    text = str(base.program)
    lines = Lines(text)
    texts = dict.fromkeys(new for new in KINDS[kind].planter(base, lines) if new != text)
    return [Fault(kind, base, _site(lines, new), new) for new in texts]


def _site(lines: Lines, new: str) -> str:
    """The first line that differs."""
    for old, changed in zip(lines.lines, [*new.splitlines(), ""], strict=False):
        if old != changed:
            return old.strip().partition(":")[0].partition(" =")[0] + " | " + changed.strip()
    return "the end"


@cache
def wanted(base: Base) -> tuple[list[Any], ...]:
    """What the right program gives for each set of arguments."""
    return tuple(outcome(base.program, list(arguments)) for arguments in base.arguments)


@cache
def certificate(base: Base) -> Certificate:
    """What the compiler certifies of the right program."""
    return certify(base.program, base.target)


def reread(fault: Fault) -> Program | str:
    """The program with the fault, or what the reader says."""
    if fault.text is None:
        return fault.base.program
    try:
        return parse(fault.text)
    except TilewrightError as error:
        return f"reader {error.code}"


def by_machine(fault: Fault, program: Program) -> str | None:
    """What the memory machine finds, on three sets of poisoned inputs; None when it finds nothing."""
    waits = patch.object(instructions, "hazards", fault.waits) if fault.waits is not None else nullcontext()
    try:
        with waits:
            for seed, (arguments, right) in enumerate(zip(fault.base.arguments, wanted(fault.base), strict=True)):
                own = [embed(a) if is_matrix(a) else a for a in deepcopy(list(arguments))]
                results = run_placed(program, fault.base.target, own, seed=seed)
                implicit = program.main.attr("implicit_outputs", 0)
                assert isinstance(implicit, int)
                same(right, [*results[: len(results) - implicit], *own], "numbers")
                if not all(surroundings_intact(view) for view in own if is_matrix(view)):
                    return "numbers"
    except TilewrightError as error:
        return error.code
    except MeaningError:
        return "numbers"
    return None


def is_matrix(argument: Any) -> bool:
    return isinstance(argument, np.ndarray)


def by_checker(fault: Fault, program: Program) -> str | None:
    """The first fact by which the checker rejects the program with the certificate of the right one, which need not
    be of this very text; None when it accepts."""
    claims = fault.claims or certificate(fault.base)
    verdict = check(program, claims, fault.base.target, bind=False)
    return None if verdict.accepted else verdict.findings[0].fact
