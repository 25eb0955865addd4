"""The page as somebody sees it: drawn in a browser without a window, pointed at, tapped, walked through with keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report.browser import Browser, Page, find_browser
from report.test_page import example, handing

from tilewright.report.html import make_report

BROWSER = find_browser()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium: `.ci/browser` installs it where it can"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert BROWSER is not None
    with Browser(BROWSER) as running:
        yield running


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages on a disk: the digits on both machines, and softmax on this one."""
    folder = tmp_path_factory.mktemp("pages")
    wanted = (("classify", "ascend910b"), ("classify", "ascend950"), ("softmax", "host"))
    return {
        f"{kernel} {target}": make_report(example(kernel)[0], target).save(folder / f"{kernel}-{target}.html")
        for kernel, target in wanted
    }


@pytest.fixture
def page(browser: Browser, files: dict[str, Path]) -> Page:
    return browser.open(files["classify ascend910b"].as_uri())


def tip(page: Page) -> str:
    return page.run("tw.tip.node.hidden ? '' : tw.tip.node.innerText")


def detail(page: Page) -> str:
    return page.run("document.querySelector('.detail').innerText")


def place(page: Page, script: str) -> tuple[float, float]:
    """The middle of an element in the window, after it has been scrolled there."""
    box = page.run(
        f"(() => {{ const node = {script}; node.scrollIntoView({{block: 'center'}});"
        "const box = node.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    page.settle()
    return box[0], box[1]


def statement_at(page: Page, operation: str) -> tuple[float, float, dict[str, Any]]:
    """Where the first statement of that operation is drawn, and what it is."""
    page.run("document.querySelector('canvas').scrollIntoView({block: 'center'})")
    page.settle()
    found = page.run(f"""(() => {{
      const line = document.querySelector("canvas").timeline;
      for (let row = 0; row < line.rows.length; row++)
        for (let entry = 0; entry < line.rows[row].what.length; entry++)
          if (line.statement({{ row, entry }}).op === "{operation}")
            return [line.locate({{ row, entry }}), line.statement({{ row, entry }})];
    }})()""")
    return found[0]["x"], found[0]["y"], found[1]


# --- it is drawn --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["classify ascend910b", "classify ascend950", "softmax host"])
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False), (390, True)])
def test_it_draws_without_complaint(
    browser: Browser, files: dict[str, Path], name: str, width: int, dark: bool
) -> None:
    page = browser.open(files[name].as_uri(), width, 844, dark, touch=width < 600)
    page.settle()
    assert page.complaints == []
    assert page.requests == [files[name].as_uri()], "the page asks for nothing else"
    assert page.run("document.documentElement.scrollWidth") <= width, "nothing sticks out to the right"
    assert page.run("[...document.querySelectorAll('main .body')].every((body) => body.children.length > 0)")
    assert page.run("document.querySelectorAll('#memory svg rect.tile').length") == page.run(
        "tw.data.functions.flatMap((f) => f.tiles).filter((t) => t.address !== null).length"
    )
    assert page.run("document.querySelectorAll('#time circle.point').length") == page.run(
        "tw.data.roofline.points.length"
    )
    small = page.run(
        "[...document.querySelectorAll('button, select')].filter((b) => b.offsetParent !== null)"
        ".filter((b) => b.getBoundingClientRect().height < 24).length"
    )
    assert small == 0, "a finger can hit every control"


def test_statements_are_drawn_where_they_run(page: Page) -> None:
    """The colour of each engine is on the canvas where its statements are, and not beside them."""
    seen = page.run("""(() => {
      const line = document.querySelector("canvas").timeline, pen = line.canvas.getContext("2d");
      const colour = (name) => {
        const [r, g, b] = name.match(/\\w\\w/g).map((part) => parseInt(part, 16));
        return `${r},${g},${b}`;
      };
      const box = line.canvas.getBoundingClientRect(), found = { right: 0, wrong: 0, small: 0 };
      line.rows.forEach((row, index) => row.what.forEach((_, entry) => {
        const item = { row: index, entry }, engine = line.statement(item).engine, at = line.locate(item);
        if (line.x(row.end[entry]) - line.x(row.start[entry]) < 4) return found.small++;
        const pixel = pen.getImageData(at.x - box.left, at.y - box.top - 9, 1, 1).data.slice(0, 3).join(",");
        const wanted = colour(line.engineColours.get(engine));
        pixel === wanted ? found.right++ : found.wrong++;
      }));
      return found;
    })()""")
    assert seen["wrong"] == 0
    assert seen["right"] > 30


def test_light_and_dark_are_readable(browser: Browser, files: dict[str, Path]) -> None:
    """Text against its background: a contrast of 4.5 at least, by the formula of WCAG 2."""
    contrast = """(() => {
      const light = (name) => {
        const parts = tw.style(name).match(/\\w\\w/g).map((part) => parseInt(part, 16) / 255);
        const [r, g, b] = parts.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const pairs = [["--ink", "--page"], ["--ink", "--card"], ["--soft", "--page"], ["--soft", "--card"],
        ["--accent", "--card"], ["--mark", "--card"], ["--good", "--card"], ["--soft", "--idle"],
        ["--ink", "--added"], ["--ink", "--removed"], ["--ink", "--added-word"], ["--ink", "--removed-word"],
        ...[0, 1, 2, 3, 4, 5, 6, 7].map((i) => ["--on-engine", `--e${i}`])];
      return Object.fromEntries(pairs.map(([a, b]) => {
        const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
        return [`${a} on ${b}`, (x + 0.05) / (y + 0.05)];
      }));
    })()"""
    pages = [browser.open(files["softmax host"].as_uri(), dark=dark) for dark in (False, True)]
    for page in pages:
        assert {pair: round(value, 2) for pair, value in page.run(contrast).items() if value < 4.5} == {}
    backgrounds = [page.run("getComputedStyle(document.body).backgroundColor") for page in pages]
    assert backgrounds == ["rgb(246, 247, 249)", "rgb(15, 19, 24)"]


# --- pointing -----------------------------------------------------------------------------------------------------
def test_pointing_at_a_statement_says_what_it_is(page: Page) -> None:
    x, y, what = statement_at(page, "matmul")
    page.point(x, y)
    assert f"matmul → {what['makes']}" in tip(page)
    assert f"kernel.py:{what['line']}" in tip(page)
    assert "CUBE" in tip(page)
    assert "cycles" in tip(page)
    assert "hidden = pl.relu(block @ w1 + b1)" in tip(page), "the line itself"
    page.click(x, y)
    assert f"matmul → {what['makes']}" in detail(page)
    lit = page.run("[...document.querySelectorAll('#source .lit')].map((node) => node.innerText.trim())")
    assert lit == ["hidden = pl.relu(block @ w1 + b1)"]
    assert page.run("[...document.querySelectorAll('#memory .lit')].map((node) => node.dataset.tile)")[0] == "matmul"
    page.point(x, 2)
    assert tip(page) == ""
    assert page.complaints == []


def test_pointing_at_a_tile_says_its_place(page: Page) -> None:
    names = page.run("[...document.querySelectorAll('#memory rect.tile')].map((node) => node.dataset.tile)")
    once = [name for name in names if names.count(name) == 1]
    assert len(once) > 3
    for name in once:
        x, y = place(page, f"document.querySelector('#memory rect.tile[data-tile=\"{name}\"]')")
        page.point(x, y)
        tile = page.run(f"tw.data.functions.flatMap((f) => f.tiles).find((t) => t.name === '{name}')")
        shown = tip(page)
        assert shown.startswith(f"{name}: {tile['shape']} {tile['dtype']}")
        assert f"{tile['nbytes']:,} bytes" in shown
        assert f"at 0x{tile['address']:x} of {tile['memory']}" in shown
        assert f"kernel.py:{tile['line']}" in shown


def test_tiles_that_share_bytes_do_not_overlap_in_time(page: Page) -> None:
    """What takes the place of another begins where that ends; so do their boxes, which are 3 pixels high at least."""
    overlapping = page.run("""[...document.querySelectorAll("#memory svg")].flatMap((drawing) => {
      const boxes = [...drawing.querySelectorAll("rect.tile")].map((node) => {
        const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => Number(node.getAttribute(name)));
        return { name: node.dataset.tile, left: x, right: x + width, top: y, bottom: y + height };
      });
      const before = (a, b) => a.right <= b.left + 0.1, above = (a, b) => a.bottom <= b.top + 3;
      const apart = (a, b) => before(a, b) || before(b, a) || above(a, b) || above(b, a);
      return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => !apart(a, b)).map((b) => [a.name, b.name]));
    })""")
    assert overlapping == []
    assert page.run("document.querySelectorAll('#memory rect.tile').length") > 10


def test_a_finger_does_what_a_mouse_does(browser: Browser, files: dict[str, Path]) -> None:
    page = browser.open(files["classify ascend910b"].as_uri(), 390, 844, touch=True)
    x, y, what = statement_at(page, "store")
    page.tap(x, y)
    assert f"store → {what['makes']}" in detail(page)
    assert page.complaints == []


def test_zooming_and_dragging(page: Page) -> None:
    whole = page.run("tw.data.timeline.cycles")
    view = "(() => { const line = document.querySelector('canvas').timeline; return [line.from, line.to]; })()"
    assert page.run(view) == [0, whole]
    for _ in range(2):
        page.click(*place(page, "document.querySelector('[aria-label=\"Zoom in\"]')"))
    start, end = page.run(view)
    assert end - start == pytest.approx(whole / 4)
    x, y = place(page, "document.querySelector('canvas')")
    page.send("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", clickCount=1)
    page.send("Input.dispatchMouseEvent", type="mouseMoved", x=x + 100, y=y, button="left", buttons=1)
    page.send("Input.dispatchMouseEvent", type="mouseReleased", x=x + 100, y=y, button="left", clickCount=1)
    moved = page.run(view)
    assert moved[0] < start
    assert moved[1] - moved[0] == pytest.approx(end - start)
    page.click(*place(page, "[...document.querySelectorAll('button')].find((node) => node.textContent === 'Fit')"))
    assert page.run(view) == [0, whole]


# --- keys ---------------------------------------------------------------------------------------------------------
def test_everything_is_reached_with_keys(page: Page) -> None:
    """Tab goes through all there is to press, in the order of the page; arrows go on inside timeline and maps."""
    reached: list[str] = []
    for _ in range(80):
        page.press("Tab", 9)
        here = page.run(
            "(() => { const node = document.activeElement, section = node.closest('section');"
            "return section ? `${section.id} ${node.tagName}` : node.tagName; })()"
        )
        reached.append(here)
        if here == "BODY":
            break
    assert reached[0] == "A", "first of all, a way past the navigation"
    for wanted in ("timeline CANVAS", "memory rect", "program SELECT", "program BUTTON", "time circle"):
        assert wanted in reached
    order = [name.split()[0] for name in reached if " " in name]
    assert list(dict.fromkeys(order)) == [
        name for name in ("timeline", "time", "memory", "program", "choices") if name in order
    ]


def test_arrows_go_from_statement_to_statement(page: Page) -> None:
    page.run("document.querySelector('canvas').focus()")
    chosen = "document.querySelector('canvas').timeline.chosen"
    page.press("ArrowRight")
    assert detail(page).startswith("load → block")
    page.press("ArrowRight")
    assert detail(page).startswith("load → w1")
    for engine in page.run("tw.engines.slice(1, tw.engines.indexOf('CUBE') + 1)"):
        page.press("ArrowDown")
        assert f"· {engine}, " in detail(page)
    assert "waited for move on MTE1" in detail(page)
    page.press("w", 87, "w")
    assert "MTE1" in detail(page), "to what it waited for"
    at = page.run(chosen)
    page.press("+", 187, "+")
    page.press("0", 48, "0")
    assert page.run(chosen) == at
    assert page.run("document.querySelector('.detail').getAttribute('aria-live')") == "polite"


def test_arrows_go_from_tile_to_tile(page: Page) -> None:
    page.run("document.querySelector('#memory rect.tile').focus()")
    names = [page.run("document.activeElement.dataset.tile")]
    while len(names) < 2 or names[-1] != names[0]:
        page.press("ArrowRight", 39)
        names.append(page.run("document.activeElement.dataset.tile"))
        assert tip(page).startswith(names[-1]), "what has the focus is told"
        assert len(names) < 30, "past the last comes the first"
    assert len(names) > 2
    page.press("Escape", 27)
    assert tip(page) == ""


# --- programs -----------------------------------------------------------------------------------------------------
def test_any_two_programs_stand_beside_each_other(page: Page) -> None:
    """Left and right are the two programs, line by line and complete; equal lines are equal."""
    found = page.run("""(() => {
      const compare = new tw.Compare(document.createElement("div"), tw.data.stages);
      const texts = compare.stages.map((stage) => stage.text.replace(/\\n$/, ""));
      let wrong = 0, pairs = 0;
      for (const a of new Set(texts)) for (const b of new Set(texts)) {
        const rows = tw.Compare.rows(a.split("\\n"), b.split("\\n"));
        const side = (name) => rows.map((row) => row[name]).filter((line) => line !== null).join("\\n");
        pairs++;
        const told = rows.every((row) => (row.kind === "equal") === (row.left === row.right));
        if (side("left") !== a || side("right") !== b || !told) wrong++;
      }
      return [pairs, wrong];
    })()""")
    assert found[0] > 36
    assert found[1] == 0


def test_the_shortest_list_of_edits(page: Page) -> None:
    """As many lines as Python's longest common subsequence leaves; past its bound, all of both."""
    cases = [("abcabba", "cbabac", 5), ("", "xy", 2), ("abc", "abc", 0), ("xaxbxc", "abc", 3), ("ab", "ba", 2)]
    for before, after, edits in cases:
        script = f"tw.Compare.edits({json.dumps(list(before))}, {json.dumps(list(after))})"
        found = page.run(script)
        assert sum(kind != " " for kind, _ in found) == edits
        assert "".join(line for kind, line in found if kind != "+") == before
        assert "".join(line for kind, line in found if kind != "-") == after
        assert page.run(f"(tw.Compare.MOST_EDITS = 1, {script}).filter(([kind]) => kind !== ' ').length") >= edits
        page.run("tw.Compare.MOST_EDITS = 3000")


def test_choosing_passes(page: Page) -> None:
    """A pass shows what it changed; the lists take any two; long equal parts open when asked for."""
    chip = "[...document.querySelectorAll('.passes button')].find((node) => node.textContent === 'split_engines')"
    page.click(*place(page, chip))
    titles = "document.querySelector('.diff .titles').innerText.split(/\\s+/)"
    assert page.run(titles) == ["pipeline", "split_engines"]
    page.run(
        "(() => { const [a, b] = document.querySelectorAll('#program select');"
        "a.value = 0; b.value = tw.data.stages.length - 1; b.dispatchEvent(new Event('change')); })()"
    )
    assert page.run(titles) == ["frontend", "place_buffers"]
    assert "pl.MemRef(" in page.run("document.querySelector('.diff').innerText")
    chip = chip.replace("split_engines", "assign_buffers")
    page.click(*place(page, chip))
    before = page.run("document.querySelectorAll('.diff .row').length")
    page.click(*place(page, "document.querySelector('.diff .fold')"))
    assert page.run("document.querySelectorAll('.diff .row').length") > before
    assert page.complaints == []


@pytest.mark.parametrize("target", ["ascend910b", "host"])
def test_what_stays_on_chip_and_what_does_not(browser: Browser, tmp_path: Path, target: str) -> None:
    report = handing(target)
    page = browser.open(report.save(tmp_path / "two.html").as_uri())
    shown = page.run("document.querySelector('#choices').innerText")
    for row in report.data["hands"]:
        assert ("stays on chip" if row["function"] else "through DDR") in shown
        assert f"{row['producer']} → {row['consumer']}" in shown
        assert row["why"] in shown
    assert page.complaints == []


def test_a_notebook_shows_it_in_a_frame(browser: Browser, tmp_path: Path) -> None:
    report = make_report(example("softmax")[0], "ascend910b")
    (tmp_path / "notebook.html").write_text(f"<!doctype html><title>notebook</title>{report.frame}", encoding="utf-8")
    page = browser.open((tmp_path / "notebook.html").as_uri())
    page.settle()
    inside = "document.querySelector('iframe').contentDocument"
    page.until(f"{inside} && {inside}.querySelector('canvas') && {inside}.querySelector('canvas').height > 0")
    assert page.run(f"{inside}.querySelector('h1').innerText").startswith("softmax on ascend910b")
    assert page.complaints == []
