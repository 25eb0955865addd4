"""Faults of synchronisation: the list of hazards, which is all that orders engines, lacks something or says it wrong.

A fault spoils what one engine of one function waits for from one other, all of it at once: single waits imply one
another. The same fault is planted into what the machine waits for, and into the claims of the certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from mutation.programs import Base

from tilewright.analysis.hazards import Hazard, hazards
from tilewright.certify.certificate import Certificate, HazardClaim
from tilewright.ir.function import Function, FunctionKind
from tilewright.targets import Target

Wait = Hazard | HazardClaim
HazardList = Callable[[Function, Target], list[Hazard]]
"""What stands for `analysis.hazards.hazards` when the program runs."""
Spoiler = Callable[[Sequence[Wait]], list[Wait]]


def _between(waits: Sequence[Wait], kind: str) -> set[tuple[object, object]]:
    """The pairs of statements between which there is a wait of `kind`, within a trip and on chip."""
    mine = [w for w in waits if w.kind == kind and not w.distance and w.memory != "DDR"]
    return {(w.before, w.after) for w in mine}


def _writes(waits: Sequence[Wait]) -> list[Wait]:
    """An engine reads what another one has perhaps not written yet."""
    pairs = _between(waits, "read after write")
    return [w for w in waits if w.distance or (w.before, w.after) not in pairs]


def _reads(waits: Sequence[Wait]) -> list[Wait]:
    """An engine writes over what another one has perhaps still to read."""
    pairs = _between(waits, "write after read") - _between(waits, "read after write")
    return [w for w in waits if w.distance or (w.before, w.after) not in pairs]


def _carried(waits: Sequence[Wait]) -> list[Wait]:
    """An engine does not wait for what another one did in the trip before."""
    return [w for w in waits if not w.distance]


def _further(waits: Sequence[Wait]) -> list[Wait]:
    """An engine waits for the trip before the one that it should wait for."""
    return [replace(w, distance=w.distance + 1) if w.distance else w for w in waits]


def _everything(waits: Sequence[Wait]) -> list[Wait]:
    """An engine does not wait for another one at all."""
    return []


def _first(waits: Sequence[Wait]) -> list[Wait]:
    """An engine does not wait for another one the first time that it should."""
    first = min((w.after for w in waits), key=_position, default=None)
    return [w for w in waits if w.after is not first and w.after != first]


def _position(after: object) -> int:
    return after if isinstance(after, int) else getattr(after, "span").line  # noqa: B009


WAITS: dict[str, Spoiler] = {
    "wait for a write left out": _writes,
    "wait for a read left out": _reads,
    "wait for the trip before left out": _carried,
    "wait for the trip before the one before": _further,
    "wait of one engine for another left out": _everything,
    "first wait of one engine for another left out": _first,
}


def planted(base: Base, spoil: Spoiler) -> Iterator[tuple[str, tuple[str, str], str]]:
    """The functions and pairs of engines (before, after) whose waits `spoil` changes, with a name for the place."""
    for function in base.program.functions:
        if function.kind is not FunctionKind.INCORE:
            continue
        found = hazards(function, base.target)
        for pair in dict.fromkeys((h.before_engine, h.after_engine) for h in found):
            mine = [h for h in found if (h.before_engine, h.after_engine) == pair]
            if spoil(mine) != mine:
                yield function.name, pair, f"{function.name}: {pair[1]} after {pair[0]}"


def machine_waits(name: str, pair: tuple[str, str], spoil: Spoiler) -> HazardList:
    """The hazards with the fault, for the machine."""

    def found(function: Function, target: Target) -> list[Hazard]:
        right = hazards(function, target)
        return right if function.name != name else [w for w in _spoilt(right, pair, spoil) if isinstance(w, Hazard)]

    return found


def claims_without(certificate: Certificate, name: str, pair: tuple[str, str], spoil: Spoiler) -> Certificate:
    """The certificate with the fault."""
    functions = tuple(
        replace(f, hazards=tuple(w for w in _spoilt(f.hazards, pair, spoil) if isinstance(w, HazardClaim)))
        if f.name == name
        else f
        for f in certificate.functions
    )
    return replace(certificate, functions=functions)


def _spoilt(waits: Sequence[Wait], pair: tuple[str, str], spoil: Spoiler) -> list[Wait]:
    mine = [w for w in waits if (w.before_engine, w.after_engine) == pair]
    return [*(w for w in waits if (w.before_engine, w.after_engine) != pair), *spoil(mine)]
