"""Every golden program that a machine takes can be explained on it: no kind of statement is forgotten."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden import is_golden

import tilewright as tw
from tilewright.compiler import lower
from tilewright.errors import TilewrightError
from tilewright.report import explain
from tilewright.targets import load_target

GOLDENS = [path for path in sorted((Path(__file__).parents[1] / "passes").glob("*/*.py")) if is_golden(path)]


@pytest.mark.parametrize("path", GOLDENS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_program_that_can_be_placed_can_be_explained(path: Path) -> None:
    program = tw.parse(path.read_text().split("# -----")[0], path.name)
    for target in ("ascend910b", "ascend950"):
        try:
            lower(program, load_target(target))
        except TilewrightError:
            with pytest.raises(TilewrightError):
                explain(program, target)
            continue
        found = explain(program, target)
        assert json.dumps(found.to_json()) and str(found).startswith(f"{program.entry} on {target}")
        assert all(tile.why for function in found.functions for tile in function.tiles)
