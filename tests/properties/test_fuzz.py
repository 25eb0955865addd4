"""The log of random programs, by which a run goes on, and what is said of a seed of another level."""

from __future__ import annotations

from pathlib import Path

import pytest
from properties.fuzz_log import Found, line_of, opened, read
from properties.shrink import elsewhere

from tilewright.ir.op import Level

FOUND = [Found(7, "tile", "ascend910b", {"taken"}, {"load"}), Found(8, "tensor", "host", failure="MeaningError: é\n1")]


def written(path: Path, *, quick: bool) -> None:
    with opened(path) as log:
        log.writelines(line_of(found, quick=quick) for found in FOUND)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    written(tmp_path / "log", quick=False)
    assert read(tmp_path / "log", quick=False) == {found.seed: found for found in FOUND}


def test_a_line_cut_off_does_not_count_and_the_next_one_does(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(line_of(FOUND[0], quick=False)[:20])
    written(tmp_path / "log", quick=False)
    assert list(read(tmp_path / "log", quick=False)) == [7, 8]


def test_what_was_judged_quickly_is_judged_again(tmp_path: Path) -> None:
    written(tmp_path / "log", quick=True)
    assert read(tmp_path / "log", quick=False) == {}
    assert list(read(tmp_path / "log", quick=True)) == [7, 8]


def test_another_file_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_text('{"a": 1}\n')
    with pytest.raises(SystemExit, match="line 1: no line of a log"):
        read(tmp_path / "log", quick=False)


def test_a_seed_of_the_other_level() -> None:
    assert elsewhere(Level.TENSOR, 101, 6 + 101 % 7) == []
    assert elsewhere(Level.TILE, 101, 6 + 101 % 7) == [
        "fuzz.py draws seed 101 at the tensor level with size 9, not this program"
    ]
