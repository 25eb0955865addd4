"""The code on the page about PTO text runs."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "pto.md"


def test_the_code_on_the_page_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.S | re.M)
    assert blocks
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), {})
