"""Names in text: valid, unique, stable, and the table of the language's constants."""

from __future__ import annotations

from enum import Enum

import pytest

from tilewright.ir.dtypes import BF16, INDEX
from tilewright.ir.function import FunctionKind
from tilewright.ir.layout import BLayout, Compact, MemorySpace, Pad, SLayout
from tilewright.ir.scalar import Value
from tilewright.ir.types import ScalarType
from tilewright.text.names import ENUMS, TileLayout, enum_member, spell_member, spelling
from tilewright.text.printer import Namer, identifier


def names(*hints: str) -> list[str]:
    namer = Namer()
    return [namer(Value(hint, ScalarType(INDEX))) for hint in hints]


def test_a_name_that_is_free_stays() -> None:
    assert names("x", "stage_2", "x_1") == ["x", "stage_2", "x_1"]


def test_a_name_that_is_taken_is_numbered() -> None:
    assert names("x", "x", "x_1", "x") == ["x", "x_1", "x_2", "x_3"]
    assert names("x_7", "x_7") == ["x_7", "x_1"]


def test_printing_what_was_printed_changes_no_name() -> None:
    for hints in (("x", "x_1", "x", "x"), ("_1", "_1", "a_", "a_"), ("x", "x", "x_1", "x_1"), ("pl", "self", "pl")):
        once = names(*hints)
        assert names(*once) == once
        assert len(set(once)) == len(once)


@pytest.mark.parametrize(
    ("hint", "name"),
    [
        ("and", "and_"),
        ("lambda", "lambda_"),
        ("a.b", "a_b"),
        ("3x", "v3x"),
        ("", "v"),
        ("x'", "x_"),
        ("größe", "größe"),
    ],
)
def test_every_hint_becomes_an_identifier(hint: str, name: str) -> None:
    assert identifier(hint) == name
    assert name.isidentifier()


def test_names_that_the_text_uses_are_not_given() -> None:
    assert not {"pl", "self"} & set(names("pl", "self"))


def test_a_thousand_values_of_one_name_are_numbered_in_order() -> None:
    assert names(*["t"] * 1000)[-1] == "t_999"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (BF16, "pl.BF16"),
        (MemorySpace.LEFT_SCALE, "pl.Mem.LeftScale"),
        (Pad.ZERO, "pl.PadValue.zero"),
        (BLayout.COL_MAJOR, "pl.BLayout.col_major"),
        (SLayout.NONE_BOX, "pl.SLayout.none_box"),
        (Compact.ROW_PLUS_ONE, "pl.CompactMode.row_plus_one"),
        (FunctionKind.INCORE, "pl.FunctionType.InCore"),
    ],
)
def test_constants(value: Enum, text: str) -> None:
    assert spelling(value) == text


def test_every_member_reads_back_as_itself() -> None:
    for name, enum in ENUMS.items():
        for member in enum:
            assert enum_member(name, spell_member(member)) is member
            assert enum_member(name, member.name) is member
    assert enum_member("Mem", "Nowhere") is None
    assert enum_member("Nothing", "Vec") is None


def test_one_layout_serves_blocks_and_boxes() -> None:
    assert TileLayout.ROW_MAJOR.block is BLayout.ROW_MAJOR
    assert TileLayout.ROW_MAJOR.box is SLayout.ROW_MAJOR
    assert TileLayout.NONE_BOX.box is SLayout.NONE_BOX
    with pytest.raises(ValueError, match="none_box"):
        _ = TileLayout.NONE_BOX.block
