"""``tilewright report``, ``simulate --html``, and the page of the guide about them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from cli.test_simulate import KERNEL, SOFTMAX
from docs.test_docs_run import Page

from tilewright import cli

PAGE = Path(__file__).parents[2] / "docs" / "report.md"


def command(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    """The exit code of a command that is run in this process."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", ["tilewright", *args])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code if isinstance(ended.value.code, int) else 0


def data(path: Path) -> dict[str, Any]:
    """What a page shows."""
    return json.loads(path.read_text(encoding="utf-8").partition('id="data">')[2].partition("</script>")[0])


def test_both_commands_write_the_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(monkeypatch, "report", SOFTMAX) == 0
    assert capsys.readouterr() == ("", "wrote softmax.html; open it in a browser\n")
    assert command(monkeypatch, "simulate", SOFTMAX, "--html", "pages/same.html", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (tmp_path / "pages/same.html").read_bytes() == (tmp_path / "softmax.html").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["pages", "softmax.html"], "nothing is left beside it"
    assert data(tmp_path / "softmax.html")["cycles"]["cycles"] == told["cycles"]


def test_numbers_of_the_call_are_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.py").write_text(KERNEL)
    assert command(monkeypatch, "report", "kernel.py:repeat", "16x64:f32", "9", "16x64:f32", "-o", "nine.html") == 0
    found = data(tmp_path / "nine.html")
    assert sum(found["timeline"]["statements"][n]["op"] == "exp" for n in found["timeline"]["rows"][0]["what"]) == 9


def test_mistakes_are_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    for args, said in (
        (("nothing.py",), "nothing.py cannot be read"),
        ((SOFTMAX, "-t", "ascend911"), "there is no target 'ascend911'"),
        ((SOFTMAX, "-o", "taken"), "cannot write to ."),
        ((SOFTMAX, "16x100000:f32", "16x100000:f32"), "do not fit Vec"),
    ):
        assert command(monkeypatch, "report", *args) == 1
        assert said in capsys.readouterr().err


def test_what_the_guide_shows_is_what_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    page = Page(PAGE, tmp_path)
    shown = page.run()
    if request.config.getoption("--bless"):
        PAGE.write_text(shown)
        return
    assert page.text.splitlines() == shown.splitlines()
    assert (tmp_path / "layer.html").stat().st_size > 50_000
