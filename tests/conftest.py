"""pytest's hooks: golden files are tests, and `--bless` rewrites them (see `golden.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden import GoldenFile, is_golden


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="store what the passes make as what is expected")


HEAVY = frozenset({"properties", "run", "pto", "native", "cli", "docs", "runtime", "examples", "passes"})
"""Folders whose tests compile, emulate or start processes: the quick run takes one in eight of each."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks as slow what the quick run leaves out of the heavy folders. Golden files always stay in."""
    seen: dict[str, int] = {}
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        if folder not in HEAVY or is_golden(item.path):
            continue
        seen[folder] = seen.get(folder, 0) + 1
        if seen[folder] % 8:
            item.add_marker(pytest.mark.slow)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if not is_golden(file_path):
        return None
    return GoldenFile.from_parent(parent, path=file_path)  # pyright: ignore[reportUnknownMemberType]


@pytest.fixture(autouse=True)
def _cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """Kernels that tests compile are cached beside the tests' other files, not in the user's cache."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path_factory.getbasetemp() / "kernels"))
