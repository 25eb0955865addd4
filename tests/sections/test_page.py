"""The page about sections: its code runs, and prints what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "sections.md"
EXAMPLE = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.S)


def test_the_example_prints_what_the_page_shows(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text()
    found = EXAMPLE.search(text)
    assert found is not None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(found[1], str(PAGE), "exec"), {})
    if request.config.getoption("--bless"):
        PAGE.write_text(text[: found.start(2)] + printed.getvalue() + text[found.end(2) :])
    else:
        assert printed.getvalue() == found[2]


def test_the_page_is_short() -> None:
    assert len(EXAMPLE.sub("", PAGE.read_text()).splitlines()) <= 80
