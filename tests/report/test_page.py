"""What the page is made of: data that agrees with the reports it is taken from, in one file that needs nothing else."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from execute.test_simulator import DIGITS, EXAMPLES
from execute.toy import program, tile, toy
from properties.judges import ASCEND, load_example

import tilewright.language as pl
from tilewright.compiler import lower
from tilewright.errors import UnsupportedError
from tilewright.execute import unfold
from tilewright.execute.simulator import simulate
from tilewright.ir.function import Program
from tilewright.report import explain, explain_tiles
from tilewright.report.html import Report, data, make_report, timeline
from tilewright.targets import load_target

TARGETS = (*ASCEND, "host")


def example(kernel: str) -> tuple[Program, list[Any]]:
    """An example's program for the arguments of its file, and those."""
    module = load_example(EXAMPLES[kernel])
    digits = [np.zeros(shape, np.float32) for shape in DIGITS]
    arguments: Any = digits if kernel == "classify" else module.arguments()
    return getattr(module, kernel).program(*arguments), list(arguments)


@pytest.fixture(
    scope="module", params=[(k, t) for k in ("classify", "matmul", "softmax") for t in TARGETS], ids="-".join
)
def made(request: pytest.FixtureRequest) -> tuple[str, str, Report]:
    kernel, target = request.param
    return kernel, target, make_report(example(kernel)[0], target)


class Parts(HTMLParser):
    """The elements of a page with what each refers to, and the text of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.refers: list[tuple[str, str | None]] = []
        self.scripts: list[str] = []
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag == "script"
        self.refers += [(tag, value) for name, value in attrs if name in ("src", "href", "srcset", "action", "data")]
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.scripts[-1] += data


def test_the_page_needs_nothing_else(made: tuple[str, str, Report]) -> None:
    page = made[2].html
    parts = Parts(page)
    assert {value for _, value in parts.refers} == {"#timeline", "data:,"}
    # The name of a namespace is no address; nothing else in styles and scripts names a place.
    code = parts.scripts[1].replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(|fetch\(|XMLHttpRequest|importScripts", code)
    assert not re.search(r"@import|url\(", page.partition("</style>")[0])
    assert json.loads(parts.scripts[0], parse_constant=pytest.fail) == json.loads(json.dumps(made[2].data))
    assert len(page) < 2_000_000


def test_the_timeline_is_the_simulation(made: tuple[str, str, Report]) -> None:
    kernel, target, report = made
    machine = load_target(target)
    found = simulate(lower(example(kernel)[0], machine), machine)
    drawn = report.data["timeline"]
    assert report.data["cycles"]["cycles"] == drawn["cycles"] == found.cycles
    busy: dict[str, float] = {}
    for row in drawn["rows"]:
        for number, start, end in zip(row["what"], row["start"], row["end"], strict=True):
            assert 0 <= start < end <= found.cycles + 0.01
            engine = drawn["statements"][number]["engine"]
            busy[engine] = busy.get(engine, 0.0) + (end - start) * row["cores"]
    wanted: dict[str, float] = {}
    for use in found.engines:
        wanted[use.engine] = wanted.get(use.engine, 0.0) + use.busy
    if drawn["left_out"]:
        assert sum(len(row["what"]) for row in drawn["rows"]) == timeline.MOST_SLICES
        return
    assert busy == pytest.approx(wanted, rel=1e-3)
    critical = {
        (drawn["statements"][number]["line"], drawn["statements"][number]["engine"])
        for row in drawn["rows"]
        for number, marked in zip(row["what"], row["critical"], strict=True)
        if marked
    }
    assert critical == {(step.line, step.engine) for step in found.critical_path}
    for row in drawn["rows"]:
        for entry, cause in enumerate(row["cause"]):
            assert cause < 0 or row["end"][cause] <= row["start"][entry] + 0.02, "what it waited for has ended"


def test_the_maps_are_the_explanation(made: tuple[str, str, Report]) -> None:
    kernel, target, report = made
    found = explain(example(kernel)[0], target)
    assert [f["name"] for f in report.data["functions"]] == [f.name for f in found.functions]
    for shown, function in zip(report.data["functions"], found.functions, strict=True):
        assert [(t["name"], t["address"], t["nbytes"], t["line"]) for t in shown["tiles"]] == [
            (t.name, t.address, t.nbytes, t.line) for t in function.tiles
        ]
        assert [(m["memory"], m["peak"], m["capacity"]) for m in shown["memories"]] == [
            (m.memory, m.peak, m.capacity) for m in function.memories
        ]
    assert report.data["tiles"] == list(explain_tiles(example(kernel)[0], target).to_json()["functions"])


@pl.jit
def two_sections(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        between = pl.relu(a @ b)
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.relu(between @ c)
    return out


def handing(target: str) -> Report:
    """A page about two sections, the first of which hands a tensor to the second."""
    shapes = ((16, 64), (64, 32), (32, 64), (16, 64))
    return two_sections.report(*(np.zeros(shape, np.float16) for shape in shapes), target=target)


@pytest.mark.parametrize("target", TARGETS)
def test_what_sections_hand_on_is_the_explanations(target: str) -> None:
    shown = handing(target).data["hands"]
    shapes = ((16, 64), (64, 32), (32, 64), (16, 64))
    found = two_sections.explain(*(np.zeros(shape, np.float16) for shape in shapes), target=target)
    assert shown == [asdict(row) for row in found.hands]
    assert [row["tensor"] for row in shown] == ["between"]


def test_the_stages_are_the_programs(made: tuple[str, str, Report]) -> None:
    kernel, target, report = made
    texts: dict[str, str] = {}
    lower(example(kernel)[0], load_target(target), observe=lambda n, p, _: texts.__setitem__(n, str(p)))
    shown = ""
    assert [stage["name"] for stage in report.data["stages"]] == list(texts)
    for stage in report.data["stages"]:
        assert stage["changed"] == (shown != texts[stage["name"]])
        shown = stage.get("text", shown)
        assert shown == texts[stage["name"]]


def test_points_lie_below_their_roofs_as_far_as_the_ratio_says(made: tuple[str, str, Report]) -> None:
    found, drawn = made[2].data["cycles"], made[2].data["roofline"]
    for point in drawn["points"]:
        roof = min(point["peak"], point["intensity"] * drawn["bandwidth"])
        assert point["reached"] <= roof * (1 + 1e-9)
        if found["bound_by"] in (drawn["bandwidth_name"], f"compute on {point['engine']}"):
            assert roof / point["reached"] == pytest.approx(found["ratio"])


@pytest.mark.parametrize("target", ASCEND)
def test_operations_are_counted(target: str) -> None:
    """128 x 256 @ 256 x 192: two operations for each multiply-add, and no other arithmetic."""
    drawn = make_report(example("matmul")[0], target).data["roofline"]
    assert [(p["engine"], p["operations"]) for p in drawn["points"]] == [("CUBE", 2 * 128 * 192 * 256)]


def test_operations_of_a_tail_are_those_of_its_valid_part(tmp_path: Path) -> None:
    """Three exps of 8 columns: 8 + 8 + 4 rows."""
    tail = program(f"""
for i, (o,) in pl.range(0, 20, 8, init_values=(out,)):
    rows = pl.min(8, 20 - i)
    x: {tile(0, valid="[rows, 8]")} = pl.tile.load(a, [i, 0], [8, 8], valid_shape=[rows, 8], target_memory=pl.Mem.Vec)
    y: {tile(1, valid="[rows, 8]")} = pl.tile.exp(x)
    o_1 = pl.tile.store(y, [i, 0], o)
    last = pl.yield_(o_1)
""")
    machine = toy(tmp_path)
    from tilewright.report.html.roofline import operations

    assert operations(simulate(tail, machine)) == {"ALU": 20 * 8}


def test_cores_that_do_the_same_are_one_row() -> None:
    rows = make_report(example("classify")[0], "ascend910b").data["timeline"]["rows"]
    assert [(row["core"], row["cores"]) for row in rows] == [
        ("clusters 0–3", 4), ("cluster 4", 1), ("clusters 5–23", 19),
    ]  # fmt: skip


def test_what_is_too_long_is_cut_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MOST_SLICES", 20)
    monkeypatch.setattr(data, "MOST_TEXT", 900)
    page = make_report(example("classify")[0], "ascend910b").data
    drawn = page["timeline"]
    assert sum(len(row["what"]) for row in drawn["rows"]) == 20
    assert drawn["left_out"] == 85
    last = page["stages"][-1]["text"]
    assert len(last) < 1000
    assert re.search(r"# \.\.\. \d+ more lines: `tilewright opt", last)


def test_a_program_too_long_to_simulate_still_has_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfold, "MOST_INSTRUCTIONS", 10)
    source, _ = example("classify")
    with pytest.raises(UnsupportedError):
        simulate(lower(source, load_target("ascend910b")), load_target("ascend910b"))
    page = make_report(source, "ascend910b")
    assert page.data["cycles"] is None
    assert "more than" in page.data["unknown"]
    assert page.data["functions"]
    assert "timeline" not in page.data


def test_text_that_looks_like_markup_stays_text() -> None:
    """Neither a closing tag nor a mark of the page's own in a program ends or fills anything."""
    page = Report("<b>{{data}}</b>", {"text": "</script><script>alert(1)</script>{{style}}"})
    parts = Parts(page.html)
    assert json.loads(parts.scripts[0]) == page.data
    assert len(parts.scripts) == 2
    assert "<title>&lt;b&gt;{{data}}&lt;/b&gt;</title>" in page.html


def test_it_is_saved_whole_and_shows_itself(tmp_path: Path) -> None:
    module = load_example(EXAMPLES["softmax"])
    arguments = module.arguments()
    report = module.softmax.report(*arguments, target="ascend910b")
    assert report.save(tmp_path / "new" / "out.html").read_text(encoding="utf-8") == report.html
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["out.html"]
    shown = module.softmax.compile(*arguments, target="ascend910b")._repr_html_()
    frames = re.findall(r'^<iframe title="softmax on ascend910b" srcdoc="([^"]*)"', shown)
    assert len(frames) == 1


def test_a_kernel_that_does_not_fit_says_so_in_a_notebook() -> None:
    module = load_example(EXAMPLES["softmax"])
    wide = np.zeros((16, 100_000), np.float32)
    shown = module.softmax.compile(wide, wide.copy(), target="ascend910b")._repr_html_()
    assert shown.startswith("<pre>&lt;softmax compiled for ascend910b&gt;\nTW301")
