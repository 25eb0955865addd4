"""Every golden program that a machine takes can be explained on it: no kind of statement is forgotten."""

from __future__ import annotations

import json

import pytest
from golden import Golden, program_goldens

import tilewright as tw
from tilewright.compiler import lower
from tilewright.errors import TilewrightError
from tilewright.report import explain
from tilewright.targets import load_target


@pytest.mark.parametrize("golden", program_goldens(), ids=lambda g: f"{g.path.parent.name}-{g.path.stem}")
def test_a_program_that_can_be_placed_can_be_explained(golden: Golden) -> None:
    program = tw.parse(golden.source, golden.path.name)
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
