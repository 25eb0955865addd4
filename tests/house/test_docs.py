"""The documents hold together: links lead somewhere, pages are short, decisions say what rejected the alternative."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
DECISIONS = sorted((ROOT / "docs" / "adr").glob("*.md"))
SECTIONS = ("## Context", "## Decision", "## Rejected", "## Consequences")
PASS_PAGE_LINES = 80
CHECKLIST_STEPS = 5


def prose_of(text: str) -> str:
    """Markdown without its code, in which `[a](b)` is no link."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^ *```.*?^ *```", "", text, flags=re.S | re.M))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose_of(page.read_text()))
    local = [target for target in targets if not re.match(r"[a-z]+:", target)]
    assert [target for target in local if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_has_its_parts(decision: Path) -> None:
    text = decision.read_text()
    assert [section for section in SECTIONS if f"\n{section}" not in text] == []
    if not decision.stem.startswith("0000"):
        rejected = text.split("\n## Rejected")[1].split("\n## ")[0]
        assert re.search(r"\d", rejected), "an option is rejected by a number"


def test_decisions_are_numbered_without_gaps() -> None:
    assert [int(page.stem[:4]) for page in DECISIONS] == list(range(len(DECISIONS)))


def test_pages_on_passes_are_short() -> None:
    lengths = {page.stem: len(page.read_text().splitlines()) for page in (ROOT / "docs" / "passes").glob("*.md")}
    assert {name: lines for name, lines in lengths.items() if lines > PASS_PAGE_LINES} == {}


@pytest.mark.parametrize("checklist", ["Add an op", "Add a pass"])
def test_a_checklist_has_at_most_five_steps(checklist: str) -> None:
    """More steps mean that the design should change."""
    section = (ROOT / "CONTRIBUTING.md").read_text().split(f"\n## {checklist}\n")[1].split("\n## ")[0]
    steps = re.findall(r"^\d+\. ", section, flags=re.M)
    assert 1 <= len(steps) <= CHECKLIST_STEPS
