"""``tilewright check``, ``tilewright validate``, ``compile --certificate``, and the page about them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from docs.test_docs_run import Page

import tilewright
import tilewright.language as pl
from tilewright import cli, compiler
from tilewright.certify.checker import check
from tilewright.ir.function import Program
from tilewright.ir.nodes import Let
from tilewright.ir.rewrite import Rewriter
from tilewright.ops.elementwise import Add, Mul
from tilewright.targets import Target, load_target

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "certificates.md"

KERNEL = """
import tilewright.language as pl

@pl.jit
def rows(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for start in pl.range(0, 64, 16):
        tile = pl.load(x, [start, 0], [16, 64])
        twice = pl.mul(tile, tile)
        out = pl.store(pl.add(twice, tile), [start, 0], out)
    return out
"""
SHAPES = ("64x64:f32", "64x64:f32")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Runs a command in this process, in a folder that holds ``kernel.py``: exit code, output, error output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "kernel.py").write_text(KERNEL)

    def command(*args: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tilewright", *args])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        code = ended.value.code
        return (code if isinstance(code, int) else 0), captured.out, captured.err

    return command


@pytest.fixture
def compiled(run: Run, tmp_path: Path) -> Path:
    """The folder with the placed program and its certificate."""
    code, _, err = run("compile", "kernel.py", *SHAPES, "-t", "ascend910b", "-o", "b", "--certificate", "b/rows.json")
    assert code == 0, err
    assert "wrote b/rows.json" in err
    return tmp_path / "b"


def test_what_is_compiled_is_accepted(run: Run, compiled: Path) -> None:
    code, out, err = run("check", "b/rows.tiles.py", "b/rows.json", "-t", "ascend910b")
    assert (code, err) == (0, "")
    assert out.startswith("accepted: ")
    code, out, _ = run("check", "b/rows.tiles.py", "b/rows.json", "-t", "ascend910b", "--json")
    found = json.loads(out)
    assert code == 0 and found["accepted"] and found["facts"]["order"] > 0 and not found["findings"]


def test_an_edited_program_is_rejected_with_lines(run: Run, compiled: Path) -> None:
    text = (compiled / "rows.tiles.py").read_text()
    lines = [line for line in text.splitlines() if "addr=4096" in line]
    (compiled / "moved.py").write_text(text.replace(lines[0], lines[0].replace("addr=4096", "addr=4064")))
    code, out, _ = run("check", "b/moved.py", "b/rows.json", "-t", "ascend910b")
    assert code == 1
    assert out.startswith("rejected: ") and "is written over 'tile'" in out
    assert "both alive from statement" in out and "addr=4064" in out and "^^^" in out


def test_another_target_is_another_program(run: Run, compiled: Path) -> None:
    code, out, _ = run("check", "b/rows.tiles.py", "b/rows.json", "-t", "ascend950")
    assert code == 1
    assert "the certificate is for another target" in out


def test_without_a_certificate_the_order_is_left_open(run: Run, compiled: Path) -> None:
    code, out, err = run("check", "b/rows.tiles.py", "-t", "ascend910b")
    assert code == 0 and "order" not in out and "what engines wait for was not checked" in err


@pytest.mark.parametrize(
    ("content", "said"),
    [("{", "is not JSON"), ("[" * 100_000, "is not JSON"), ("{}", "lacks the field"), ("\xff\xfe", "is not JSON")],
)
def test_files_that_are_no_certificate(run: Run, compiled: Path, content: str, said: str) -> None:
    (compiled / "bad.json").write_bytes(content.encode("latin-1"))
    code, _, err = run("check", "b/rows.tiles.py", "b/bad.json")
    assert code == 1
    assert said in err and "Traceback" not in err


def test_a_certificate_that_is_missing(run: Run, compiled: Path) -> None:
    code, _, err = run("check", "b/rows.tiles.py", "b/none.json")
    assert code == 1 and "b/none.json cannot be read" in err


def test_the_api_gives_the_certificate() -> None:
    @pl.jit
    def double(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = x * 2.0
        return out

    x = np.ones((16, 64), np.float32)
    built = tilewright.compile(double.program(x, x.copy()), target="ascend910b")
    assert check(built.program, built.certificate, load_target("ascend910b")).accepted


# --- validate -----------------------------------------------------------------------------------------------------
def test_a_right_pipeline_is_equal_throughout(run: Run) -> None:
    code, out, err = run("validate", "kernel.py", *SHAPES, "-t", "ascend910b")
    assert code == 0, err
    assert out.count("equal") == len(compiler.PASSES) + 2
    assert "at its addresses" in out and "certificate" in out and "accepted" in out


def test_the_first_pass_that_changes_a_result_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that makes sums of products: said with the output, the index, and the value in which it began."""

    class Faulty(Rewriter):
        def visit_let(self, stmt: Let) -> None:
            op = stmt.value
            self.emit(stmt.replace(value=Add(op.lhs, op.rhs, span=op.span)) if isinstance(op, Mul) else stmt)

    def faulty(program: Program, target: Target) -> Program:
        return Faulty().program(program)

    monkeypatch.setattr(compiler, "legalize_dtypes", faulty)
    code, out, err = run("validate", "kernel.py", *SHAPES, "-t", "ascend910b")
    assert code == 1
    assert "legalize_moves" in out and "legalize_dtypes" not in out
    assert "after legalize_dtypes the program means something else" in err
    assert "found:    out[0, 0] is" in err or "found:    out[" in err
    assert "the first value that is another than after legalize_moves: twice[" in err


def test_a_program_that_stops_running_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Faulty(Rewriter):
        def visit_let(self, stmt: Let) -> None:
            op = stmt.value
            if not isinstance(op, Mul):
                super().visit_let(stmt)
                return
            from tilewright.ops.create import Create

            kind = stmt.target.type
            self.emit(stmt.replace(value=Create(kind.shape, kind.dtype, kind.space, level=op.level)))  # type: ignore[attr-defined]

    monkeypatch.setattr(compiler, "legalize_dtypes", lambda program, target: Faulty().program(program))  # pyright: ignore
    code, _, err = run("validate", "kernel.py", *SHAPES, "-t", "ascend910b")
    assert code == 1
    assert "after legalize_dtypes the program cannot run" in err and "undefined" in err


# --- the page -----------------------------------------------------------------------------------------------------
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
