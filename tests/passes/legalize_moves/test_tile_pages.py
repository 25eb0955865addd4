"""The pages on these passes show what the passes do: their programs are those of the tests that they link to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = ("infer_spaces", "legalize_moves", "legalize_dtypes", "legalize_layouts", "materialize_scratch")


@pytest.mark.parametrize("name", PAGES)
def test_before_and_after_are_a_golden_test(name: str) -> None:
    page = (ROOT / "docs" / "passes" / f"{name}.md").read_text()
    linked = re.search(r"\[the whole test\]\(\.\./\.\./(\S+?)\)", page)
    assert linked is not None
    halves = (ROOT / linked[1]).read_text().split("\n# -----\n")
    shown = re.findall(r"^```python\n(.*?)^```", page, flags=re.S | re.M)[:2]
    for half, block in zip(halves, shown, strict=True):
        program = half.split("class Program:\n")[1]
        assert [line.strip() for line in block.splitlines()] == [line.strip() for line in program.strip().splitlines()]
