"""The text of the examples, kept: it is legal, means what the program means, and does not change unseen.

`pytest --bless` writes the texts and manifests anew: read the difference before committing it.
"""

from __future__ import annotations

import difflib
import json
from pathlib import Path

import pytest
from pto.samples import SAMPLES
from pto.writing import MACHINES, agree, placed

GOLDENS = Path(__file__).parent / "goldens"


def kept(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*"))}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", SAMPLES)
def test_golden(name: str, machine: str, request: pytest.FixtureRequest) -> None:
    sample = SAMPLES[name]
    kernel, args = sample.load()
    module = agree(placed(kernel, list(args), machine), args, machine, tolerance=sample.tolerance)
    made = {**module.texts, "manifest.json": json.dumps(module.manifest, indent=2) + "\n"}
    folder = GOLDENS / f"{name}_{machine}"
    if request.config.getoption("--bless"):
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob("*"):
            path.unlink()
        for file, text in made.items():
            (folder / file).write_text(text, encoding="utf-8")
    wanted = kept(folder)
    for file in sorted({*made, *wanted}):
        old, new = wanted.get(file, "").splitlines(), made.get(file, "").splitlines()
        difference = "\n".join(difflib.unified_diff(old, new, f"kept {file}", "made", lineterm="", n=1))
        assert not difference, f"{difference}\nIf the new text is right: pytest --bless"


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("options", [{"sync": "explicit"}, {"level": 2}, {"dialect": "newer"}], ids=str)
def test_other_ways_to_write_it_mean_the_same(name: str, machine: str, options: dict[str, object]) -> None:
    sample = SAMPLES[name]
    kernel, args = sample.load()
    agree(placed(kernel, list(args), machine), args, machine, tolerance=sample.tolerance, **options)


@pytest.mark.parametrize("machine", MACHINES)
def test_text_does_not_depend_on_the_run(machine: str) -> None:
    kernel, args = SAMPLES["digits"].load()
    texts = [agree(placed(kernel, list(args), machine), args, machine).texts for _ in range(2)]
    assert texts[0] == texts[1]
