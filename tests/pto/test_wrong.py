"""Every row and clause of the format's tables: a small text that breaks it alone is found, and its mended twin is not.

The first line of each text names the clause. `// fix: a => b` mends it; `// level: n` sets the assembler's level.
"""

import re
from pathlib import Path

import pytest

from tilewright.codegen.pto.check import assert_legal, check
from tilewright.errors import PTOError

TEXTS = sorted((Path(__file__).parent / "wrong").glob("*.pto"))


def directive(text: str, key: str) -> str | None:
    found = re.search(rf"^// {key}: (.*)$", text, re.MULTILINE)
    return found.group(1) if found else None


def mended(text: str) -> str | None:
    fix = directive(text, "fix")
    if fix is None:
        return None
    old, new = fix.split(" => ")
    # The index constants at the top stay: a fix uses another one.
    return "\n".join(
        line if line.endswith(": index") and "constant" not in old else line.replace(old, new)
        for line in text.split("\n")
        if not line.startswith("//")
    )


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_the_fault_is_found_and_its_clause_named(path: Path) -> None:
    text = path.read_text()
    level = directive(text, "level")
    clauses = {finding.clause for finding in check(text, level=int(level) if level else None)}
    assert directive(text, "expect") in clauses


@pytest.mark.parametrize(
    "path", [path for path in TEXTS if directive(path.read_text(), "fix")], ids=lambda path: path.stem
)
def test_without_the_fault_the_text_passes(path: Path) -> None:
    text = path.read_text()
    level = directive(text, "level")
    fixed = mended(text)
    assert fixed is not None
    assert check(fixed, level=int(level) if level else None) == []


def test_there_is_a_text_for_many_clauses() -> None:
    assert len({directive(path.read_text(), "expect") for path in TEXTS}) >= 100


def test_assert_legal_shows_the_line() -> None:
    text = (Path(__file__).parent / "wrong" / "row_alignment.pto").read_text()
    with pytest.raises(PTOError) as caught:
        assert_legal(text)
    assert "§6 row alignment" in str(caught.value)
    assert "16x3xf32" in str(caught.value)


def test_a_syntax_error_points_at_the_token() -> None:
    text = "module {\n  func.func @f() {\n    %x = pto.alloc_tile addr 3 : i32\n  }\n}\n"
    with pytest.raises(PTOError) as caught:
        assert_legal(text)
    assert "required:" in str(caught.value)
    assert caught.value.span is not None and caught.value.span.line == 3
