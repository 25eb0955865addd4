"""docs/errors.md lists every error that there is, under its code."""

from __future__ import annotations

import re
from pathlib import Path

from tilewright import errors

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"


def test_every_error_stands_on_the_page_under_its_code() -> None:
    classes = [item for item in vars(errors).values() if isinstance(item, type)]
    found = {c.code: c.__name__ for c in classes if issubclass(c, errors.TilewrightError)}
    del found[errors.TilewrightError.code]
    rows = re.findall(r"^\| (TW\d+) \| `(\w+)` \| [^|]+ \| [^|]+ \|$", PAGE.read_text(), flags=re.M)
    assert dict(rows) == found and len(rows) == len(found)
    assert [code for code, _ in rows] == sorted(found)
