"""The checker: reads a placed program, believes nothing that is said of it, and says whether it is right.

It knows the program, the target, and the rules that operations state in their classes; it uses no pass and no
analysis of the compiler. What it asks, in this order (`verdict.FACTS`):
  - structure: SSA, types, valid shapes, linear tensors; that functions and calls agree
  - spaces, layouts, edges, dtypes, footprints, capacity, buffers: the machine's rules, statement by statement
  - overlap: no tile is written over while it is needed, through loops, branches, views and updates
  - bounds, valid shapes: per dimension proved, guarded by the program, or assumed of the call, and then listed
  - parallel: work items are independent
  - coverage: buffers that start with nothing are written wherever they are read
  - order: what one engine does is waited for by whatever conflicts with it on another
  - certificate, program: what the certificate claims is what was found, and it belongs to this text
"""

from __future__ import annotations

from tilewright.certify.bounds import Bounds, check_bounds
from tilewright.certify.certificate import Certificate
from tilewright.certify.claims import check_claims
from tilewright.certify.coverage import check_coverage
from tilewright.certify.lifetimes import Places, check_overlap, check_places, lifetimes, pieces_of
from tilewright.certify.machine import check_machine
from tilewright.certify.order import check_order
from tilewright.certify.parallel import check_parallel_loops
from tilewright.certify.render import Names
from tilewright.certify.sequence import callees_first
from tilewright.certify.verdict import Finding, Notes, Verdict
from tilewright.errors import UNKNOWN, TilewrightError
from tilewright.ir.function import Function, FunctionKind, Program
from tilewright.ir.verify import verify
from tilewright.targets import Target


def check(program: Program, certificate: Certificate | None, target: Target, *, bind: bool = True) -> Verdict:
    """Whether `program`, placed for `target`, is right, and `certificate` true of it. Linear in the program.

    `certificate` None: what the program says of itself only; what is waited for is then not known, and not asked.
    `bind=False`: the certificate may have been written for another text, as long as what it claims holds of this one.
    Never raises for what is wrong with the program or the certificate."""
    verdict = Verdict()
    fault = _structure(program)
    if fault is not None:
        verdict.add("structure", [fault], 1)
        return verdict
    verdict.add("structure", [], sum(1 for function in program.functions for _ in function.walk()))
    if certificate is not None:
        verdict.add("certificate", _heading(program, certificate, target), 1)
    done: dict[str, tuple[Function, Bounds]] = {}
    for function in callees_first(program):
        _check_function(function, certificate, target, done, verdict, bind=bind)
    if program.entry in done:
        verdict.assumptions = done[program.entry][1].assumptions
    return verdict


def _structure(program: Program) -> Finding | None:
    try:
        verify(program)
    except TilewrightError as error:
        return Finding(
            "structure", error.message, error.span or UNKNOWN, None, "", error.required, error.found
        )  # fmt: skip
    return None


def _heading(program: Program, certificate: Certificate, target: Target) -> list[Finding]:
    """The certificate speaks of this target, this entry, these functions."""
    told = {
        "target": (certificate.target, target.name),
        "machine description": (certificate.fingerprint, target.fingerprint),
        "entry": (certificate.entry, program.entry),
        "functions": (
            sorted(claim.name for claim in certificate.functions),
            sorted(function.name for function in program.functions),
        ),
    }
    return [
        Finding("certificate", f"the certificate is for another {what}", required=str(actual), found=str(claimed))
        for what, (claimed, actual) in told.items()
        if claimed != actual
    ]


def _check_function(
    function: Function,
    certificate: Certificate | None,
    target: Target,
    done: dict[str, tuple[Function, Bounds]],
    verdict: Verdict,
    *,
    bind: bool,
) -> None:
    live = lifetimes(function)
    names = Names(function, live.begins)
    placed = function.kind is FunctionKind.INCORE
    machine = check_machine(function, target) if placed else Notes(function.name)
    _note(verdict, "placement", machine)
    pieces = {}
    if placed and not machine.findings:
        places = Places(function)
        pieces = pieces_of(live, places, target)
        _note(verdict, "buffers", check_places(function, live, places))
        _note(verdict, "overlap", check_overlap(live, pieces))
    bounds = check_bounds(function, names, done)
    done[function.name] = (function, bounds)
    _note(verdict, "bounds", bounds.notes)
    _note(verdict, "parallel", check_parallel_loops(function, target))
    if placed:
        _note(verdict, "coverage", check_coverage(function))
    claim = None if certificate is None else certificate.function(function.name)
    if claim is None or (placed and machine.findings):
        return
    if placed:
        _note(verdict, "order", check_order(function, target, claim.hazards, live.begins))
    found = check_claims(function, target, claim, live, names, bounds, pieces, bind=bind)
    _note(verdict, "certificate", found)


def _note(verdict: Verdict, fact: str, notes: Notes) -> None:
    verdict.add(fact, notes.findings, notes.count)
