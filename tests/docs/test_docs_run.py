"""What pages show is what happens: their Python runs, their commands run, and what they print is what is printed.

The blocks of a page run in order, in one namespace and one empty folder. A ``python`` block that begins with
``# kernel.py`` is also that file. A ``text`` block right after a ``python`` block is what it prints; in a ``console``
block, the lines after each ``$ command`` are what that prints. `pytest --bless` rewrites both.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SHOWN = ("index.md", "language.md", "loops.md", "passes/forward.md")
PAGES = [ROOT / "README.md", *(ROOT / "docs" / name for name in SHOWN)]
BLOCK = re.compile(r"^```(python|text|console)\n(.*?)^```$", re.S | re.M)
FILE = re.compile(r"# (\w+\.py)\n")
ELSEWHERE = "# elsewhere\n"
"""Begins a block that shows figures of one machine, or needs what the tests have not: it is not run."""


@dataclass
class Page:
    """A page while it is run; `text` becomes what it should say."""

    path: Path
    folder: Path
    text: str = ""

    def run(self) -> str:
        self.text = self.path.read_text()
        names: dict[str, Any] = {"__name__": "page"}
        printed = ""
        last = 0
        parts: list[str] = []
        for number, block in enumerate(BLOCK.finditer(self.text)):
            kind, code = block[1], block[2]
            between = self.text[last : block.start()]
            parts += [between, f"```{kind}\n"]
            if kind == "python":
                printed = self.python(code, number, names)
            elif kind == "console":
                code = self.console(code)
            elif not between.strip() and printed:
                code = printed
            parts += [code, "```"]
            last = block.end()
        return "".join([*parts, self.text[last:]])

    def python(self, code: str, number: int, names: dict[str, Any]) -> str:
        """Runs a block as a file, so that kernels in it have a source; returns what it prints."""
        if code.startswith(ELSEWHERE):
            return ""
        named = FILE.match(code)
        file = self.folder / (named[1] if named else f"block{number}.py")
        file.write_text(code)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, file.name, "exec"), names)
        return self.tidy(printed.getvalue())

    def console(self, code: str) -> str:
        """Runs each command and puts after it what it prints."""
        if code.startswith(ELSEWHERE):
            return code
        shown: list[str] = []
        for line in code.splitlines():
            if line.startswith("$ "):
                shown += [line, self.command(shlex.split(line[2:]))]
        return "".join(f"{line}\n" for line in shown if line)

    def command(self, words: list[str]) -> str:
        assert words[0] == "tilewright", f"pages run our own command only, not {words[0]}"
        code = "from tilewright.cli import main; main()"
        ended = subprocess.run(
            [sys.executable, "-c", code, *words[1:]], cwd=self.folder, capture_output=True, text=True, check=False
        )
        return self.tidy(ended.stdout + ended.stderr).rstrip("\n")

    def tidy(self, text: str) -> str:
        """Without what differs between two runs: the folder, and times."""
        lines = text.replace(f"{self.folder}/", "").splitlines()
        return "".join(line.rstrip() + "\n" for line in lines if not line.startswith("first run"))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_what_a_page_shows_is_what_happens(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / ".cache"))
    linecache.clearcache()  # another page may have had files of the same names
    page = Page(path, tmp_path)
    shown = page.run()
    if request.config.getoption("--bless"):
        path.write_text(shown)
        return
    assert page.text.splitlines() == shown.splitlines()
    assert os.listdir(tmp_path), "the page has no code"
