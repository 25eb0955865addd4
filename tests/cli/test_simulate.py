"""``tilewright simulate`` and the page about it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from docs.test_docs_run import Page

from tilewright import cli

ROOT = Path(__file__).parents[2]
SOFTMAX = str(ROOT / "examples" / "softmax.py")
PAGE = ROOT / "docs" / "simulate.md"

KERNEL = """
import tilewright.language as pl

@pl.jit
def repeat(x: pl.Tensor, times: int, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 64])
        for _ in pl.range(0, times):
            t = pl.exp(t)
        out = pl.store(t, [0, 0], out)
    return out
"""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Runs the command in this process, in an empty folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def command(*args: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tilewright", "simulate", *args])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        code = ended.value.code
        return (code if isinstance(code, int) else 0), captured.out, captured.err

    return command


def test_the_answer_comes_first_and_says_what_bounds_it(run: Run) -> None:
    code, out, err = run(SOFTMAX)
    assert (code, err) == (0, "")
    first, second = out.splitlines()[:2]
    assert first.startswith("softmax on ascend910b: ")
    assert first.endswith(" cycles")
    assert "x the limit of" in second
    assert "bound by" in second
    for part in ("Engines", "Edges", "Critical path", "Limits", "The model", "softmax.py:16"):
        assert part in out
    assert "\x1b" not in out


@pytest.mark.parametrize("target", ["ascend910b", "ascend950", "host", str(ROOT / "examples/targets/scratchpad.toml")])
def test_json_says_what_the_tables_say(run: Run, target: str) -> None:
    code, out, err = run(SOFTMAX, "-t", target, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["cycles"] == pytest.approx(found["ratio"] * found["limit"])
    assert found["limit"] == found["limits"][0]["cycles"] > 0
    assert found["bound_by"] == found["limits"][0]["name"]
    assert sum(step["cycles"] for step in found["critical_path"]) == pytest.approx(found["cycles"])
    assert {step["line"] for step in found["critical_path"]} <= set(range(13, 20))
    assert found["assumptions"]


def test_numbers_of_the_call_are_known(run: Run, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    cycles: list[float] = []
    for times in ("1", "5", "9"):
        code, out, err = run("kernel.py", "16x64:f32", times, "16x64:f32", "--json")
        assert code == 0, err
        found = json.loads(out)
        assert not any("not known" in line for line in found["assumptions"])
        cycles.append(found["cycles"])
    assert cycles[2] - cycles[1] == pytest.approx(cycles[1] - cycles[0])
    assert cycles[1] > cycles[0]


def test_a_timeline_is_written(run: Run, tmp_path: Path) -> None:
    code, out, err = run(SOFTMAX, "--trace", "timeline.json")
    assert code == 0
    assert "wrote timeline.json" in err
    assert "wrote" not in out
    trace = json.loads((tmp_path / "timeline.json").read_text())
    names = {event["name"] for event in trace["traceEvents"] if event["ph"] == "X"}
    assert {"load softmax.py:16", "exp softmax.py:17", "store softmax.py:19"} & names
    assert sorted(os.listdir(tmp_path)) == ["timeline.json"], "nothing is left beside it"


def test_mistakes_are_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    for args, said in (
        ((SOFTMAX, "-t", "ascend911"), "there is no target 'ascend911'"),
        (("nothing.py",), "nothing.py cannot be read"),
        ((SOFTMAX, "--trace", "taken"), "cannot write to ."),
    ):
        code, _, err = run(*args)
        assert code == 1
        assert said in err
        assert "Traceback" not in err


def test_what_the_page_shows_is_what_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / ".cache"))
    page = Page(PAGE, tmp_path)
    shown = page.run()
    if request.config.getoption("--bless"):
        PAGE.write_text(shown)
        return
    assert page.text.splitlines() == shown.splitlines()
