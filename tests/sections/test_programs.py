"""Sections of real programs: what is lifted from the golden programs is well formed, and comes back from JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.frontend.reader import parse
from tilewright.ir.function import Function
from tilewright.sections.interchange import from_json, to_json
from tilewright.sections.lift import lift
from tilewright.sections.printer import print_section
from tilewright.sections.section import Phase, Section
from tilewright.sections.verify import faults

PASSES = Path(__file__).parents[1] / "passes"
FOLDERS = (
    "convert_tensor_to_tile",
    "expand",
    "flatten_tiles",
    "infer_spaces",
    "legalize_moves",
    "partition",
    "tile_matmul",
)
SEPARATOR = "# -----\n"


def sections(folder: str) -> list[Section]:
    """Every section that can be lifted from the programs of a folder, before and after its pass."""
    texts = [path.read_text() for path in sorted((PASSES / folder).glob("*.py"))]
    programs = [parse(part) for text in texts if SEPARATOR in text for part in text.split(SEPARATOR)]
    lifted = [lift(f, phase) for p in programs for f in p.functions for phase in (Phase.TEMPLATE, Phase.TILED)]
    return [section for section in lifted if isinstance(section, Section)]


def read(text: str) -> Function:
    return parse(text).main


@pytest.mark.parametrize("folder", FOLDERS)
def test_sections_of_golden_programs(folder: str) -> None:
    found = sections(folder)
    assert len(found) >= 3
    for section in found:
        assert faults(section) == (), print_section(section)
        assert from_json(to_json(section), read) == section
        assert print_section(section).count("\n  edge ") == len(section.edges)
