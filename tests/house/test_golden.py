"""The golden machinery: what it compares, what it shows on failure, and what `--bless` writes."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from golden import Golden, GoldenMismatchError, check_golden, find_pass, is_golden, program_goldens, read_golden

TEXT = """\
# target: ascend910b
# Why this case matters: prose is no option.
# stages: 2
x = 1

# -----

x = 2
"""


def add_one(_: Golden, source: str) -> str:
    """A pass over toy text: the number on the last line grows by one."""
    return f"x = {int(source.rsplit(maxsplit=1)[-1]) + 1}\n"


@pytest.fixture
def golden(tmp_path: Path) -> Golden:
    path = tmp_path / "grow" / "one.py"
    path.parent.mkdir()
    path.write_text(TEXT)
    return read_golden(path)


def test_header_names_target_pass_and_options(golden: Golden) -> None:
    assert (golden.pass_name, golden.target, golden.options) == ("grow", "ascend910b", {"stages": 2})
    assert golden.source.endswith("x = 1\n") and golden.expected == "x = 2\n"


def test_equal_text_passes_and_leaves_the_file_alone(golden: Golden) -> None:
    check_golden(golden, add_one, bless=True)
    assert golden.path.read_text() == TEXT


def test_a_mismatch_shows_input_expected_and_actual(golden: Golden) -> None:
    with pytest.raises(GoldenMismatchError, match=r"(?s)input-.*x = 1.*expected-.*x = 2.*actual-.*x = 7.*\+x = 7"):
        check_golden(golden, lambda golden, source: "x = 7\n", bless=False)
    assert golden.path.read_text() == TEXT


def test_bless_replaces_what_was_expected_and_nothing_else(golden: Golden) -> None:
    check_golden(golden, lambda golden, source: "x = 7\n", bless=True)
    assert golden.path.read_text() == TEXT.replace("x = 2", "x = 7")
    check_golden(read_golden(golden.path), lambda golden, source: "x = 7\n", bless=False)


def test_bless_fills_in_a_file_that_has_only_an_input(golden: Golden) -> None:
    golden.path.write_text("x = 1\n")
    check_golden(read_golden(golden.path), add_one, bless=True)
    assert golden.path.read_text() == "x = 1\n\n# -----\n\nx = 2\n"


def test_a_pass_that_should_settle_is_run_twice(golden: Golden) -> None:
    golden.path.write_text("# idempotent: True\n" + TEXT)
    with pytest.raises(GoldenMismatchError, match="a second run of grow changes"):
        check_golden(read_golden(golden.path), add_one, bless=False)


def test_only_files_one_folder_below_passes_are_golden() -> None:
    passes = Path(__file__).parents[1] / "passes"
    assert is_golden(passes / "infer_spaces" / "hop.py")
    assert not is_golden(passes / "test_infer_spaces.py")
    assert not is_golden(passes / "infer_spaces" / "test_more.py")
    assert not is_golden(Path(__file__))


def test_goldens_of_loop_passes_are_no_programs() -> None:
    folders = {golden.path.parent.name for golden in program_goldens()}
    assert "infer_spaces" in folders
    assert "lower_blocks" not in folders


def test_every_pass_of_the_pipeline_is_found_by_its_name() -> None:
    passes = importlib.import_module("tilewright.compiler").PASSES
    assert passes
    ours = [name for name in passes if not name.startswith("forward_")]  # those join sections: tilewright.sections
    assert {name: find_pass(name).__name__ for name in ours} == {name: name for name in ours}
    with pytest.raises(LookupError, match="no pass polish"):
        find_pass("polish")
