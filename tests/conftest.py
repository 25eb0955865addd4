"""pytest's hooks: golden files are tests, and `--bless` rewrites them (see `golden.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden import GoldenFile, is_golden


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="store what the passes make as what is expected")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if not is_golden(file_path):
        return None
    return GoldenFile.from_parent(parent, path=file_path)  # pyright: ignore[reportUnknownMemberType]


@pytest.fixture(autouse=True)
def _cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """Kernels that tests compile are cached beside the tests' other files, not in the user's cache."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path_factory.getbasetemp() / "kernels"))
