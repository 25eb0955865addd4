"""Planted faults are found: every one that changes what a final program means, or breaks a rule of the machine.

By default a few places of each kind are tried; TILEWRIGHT_PROPERTIES=20 in the environment takes twenty times as many,
and `python tests/mutation/table.py` all of them.
"""

from __future__ import annotations

import os
import random

import pytest
from mutation.harmless import HARMLESS, harmless
from mutation.judge import Fault, by_checker, by_machine, certificate, faults, kinds, reread
from mutation.passes import FAULTS, ROOT, stale
from mutation.programs import Base, bases
from mutation.waits import WAITS

from tilewright.certify.checker import check
from tilewright.ir.function import Program

TIMES = int(os.environ.get("TILEWRIGHT_PROPERTIES", "1"))
PLACES = 2 * TIMES


def some(kind: str) -> list[Fault]:
    """A few faults of a kind, in programs that are drawn anew for each kind."""
    rng = random.Random(kind)
    order = list(bases())
    rng.shuffle(order)
    found: list[Fault] = []
    for base in order:
        here = faults(kind, base)
        found += rng.sample(here, min(TIMES, len(here)))
        if len(found) >= PLACES:
            break
    return found


def found_by(fault: Fault) -> str | None:
    """Who finds it. Nobody is to find what is the same program."""
    program = reread(fault)
    if not isinstance(program, Program):
        return program
    if fault.text is not None and program == fault.base.program:
        return "the same program"
    return by_machine(fault, program) or by_checker(fault, program)


@pytest.mark.parametrize("kind", kinds())
def test_every_fault_is_found(kind: str) -> None:
    planted = some(kind)
    assert planted, f"{kind}: there is no place for it in any program"
    for fault in planted:
        entry = harmless(fault.kind, fault.base.name, fault.base.target.name, fault.site)
        assert found_by(fault) or entry is not None, f"nobody finds {fault}"


@pytest.mark.parametrize("entry", HARMLESS, ids=lambda entry: " ".join(entry[:3]))
def test_what_is_called_harmless_is(entry: tuple[str, str, str, str]) -> None:
    kind, program, target, where = entry
    places = [base for base in bases() if base.name == program and target in ("", base.target.name)]
    mine = [fault for base in places for fault in faults(kind, base) if where in fault.site]
    assert mine, "no such fault any more"
    assert any(found_by(fault) is None for fault in mine), "all of them are found: the entry may go"


@pytest.mark.parametrize("base", bases(), ids=lambda base: base.where)
def test_right_programs_are_accepted(base: Base) -> None:
    right = Fault("none", base, "", str(base.program))
    assert by_machine(right, base.program) is None
    verdict = check(base.program, certificate(base), base.target)
    assert verdict.accepted, str(verdict)


def test_there_are_kinds_enough() -> None:
    assert len(kinds()) >= 60 and set(WAITS) < set(kinds())


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[0])
def test_faults_of_passes_can_be_planted(fault: tuple[str, str, str, str]) -> None:
    """`passes.py` changes one line of each file, which is still there."""
    _, file, old, new = fault
    source = (ROOT / "src/tilewright" / file).read_text()
    assert source.count(old) == 1
    compile(source.replace(old, new), file, "exec")


def test_a_fault_that_cannot_be_planted_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert stale() == []
    gone = ("a", "compiler.py", "no such line", ""), ("b", "no_file.py", "x", "")
    monkeypatch.setattr("mutation.passes.FAULTS", gone)
    assert stale() == ["a: compiler.py has 0 times, not once: 'no such line'", "b: there is no no_file.py"]
