"""Faults planted in the goldens: each is refused by the checker or the emulator, or shows in the bytes of a result.

A fault that changes nothing is listed in `survivors.json`, with the bytes that the text leaves with and without it, so
that a reader can judge it. `pytest --bless` writes the list anew.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pto.mutants import mutants
from pto.samples import SAMPLES
from pto.writing import MACHINES, Array, execute, findings, placed

from tilewright.codegen.pto.writer import PTOModule, emit_pto
from tilewright.errors import PTOError
from tilewright.targets import load_target

SURVIVORS = Path(__file__).parent / "survivors.json"
WAYS = [("auto", machine) for machine in MACHINES] + [("explicit", machine) for machine in MACHINES]


def digest(arrays: list[Array]) -> str:
    """The results' bytes: the first sixteen, and a hash of all."""
    data = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)
    return f"{arrays[-1].tobytes()[:16].hex()} sha256:{hashlib.sha256(data).hexdigest()[:16]}"


def outcome(module: PTOModule, args: list[Array]) -> str | None:
    """The results' bytes, or None when the text is refused."""
    if findings(module):
        return None
    try:
        return digest(execute(module, args))
    except PTOError:
        return None


def survivors(name: str, sync: str, machine: str) -> tuple[int, list[dict[str, str]]]:
    """How many faults were planted, and those that nothing noticed."""
    kernel, args = SAMPLES[name].load()
    module = emit_pto(placed(kernel, list(args), machine), load_target(machine), sync=sync)
    right = outcome(module, args)
    assert right is not None
    planted = 0
    left: list[dict[str, str]] = []
    for file, text in module.texts.items():
        for what, changed in mutants(text):
            if sync == "explicit" and not ("wait" in what or "barrier" in what):
                continue
            planted += 1
            found = outcome(PTOModule({**module.texts, file: changed}, module.manifest), args)
            if found is not None and found == right:
                left.append({"file": file, "fault": what, "with": found, "without": right})
    return planted, left


@pytest.mark.slow
@pytest.mark.parametrize(("sync", "machine"), WAYS, ids=["-".join(way) for way in WAYS])
@pytest.mark.parametrize("name", SAMPLES)
def test_faults_are_noticed(name: str, sync: str, machine: str, request: pytest.FixtureRequest) -> None:
    planted, left = survivors(name, sync, machine)
    key = f"{name} {machine} {sync}"
    known: dict[str, Any] = json.loads(SURVIVORS.read_text(encoding="utf-8")) if SURVIVORS.exists() else {}
    if request.config.getoption("--bless"):
        known[key] = left
        SURVIVORS.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf-8")
    assert planted > 5
    assert left == known.get(key, [])
    assert len(left) <= planted // 4
