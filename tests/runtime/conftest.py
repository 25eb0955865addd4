"""Kernels that tests compile are cached beside the tests' other files, not in the user's cache."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path_factory.getbasetemp() / "kernels"))
