"""Looking at a kernel while it is interpreted: printed values, checks, breakpoints, and every value by its name."""

from __future__ import annotations

import bdb
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.errors import CheckFailed


@pl.jit
def watched(a: pl.Tensor, out: pl.Out[pl.Tensor], n: pl.Scalar[pl.INDEX], limit: float = 100.0):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(n):
            x = pl.load(a, [i, 0], [1, 4])
            pl.print("row", i, x)
            y = x + 1.0
            pl.assert_(pl.read(y, [0, 0]) < limit, "row", i, "is too large")
            out = pl.store(y, [i, 0], out)
    return out


def arguments() -> tuple[Any, Any]:
    return np.arange(8, dtype=np.float32).reshape(2, 4), np.zeros((2, 4), np.float32)


def line_of(text: str) -> int:
    """The first line of this file that holds `text`."""
    lines = Path(__file__).read_text().splitlines()
    return 1 + next(index for index, line in enumerate(lines) if text in line)


def test_print_and_check_in_the_interpreter_alone(capsys: pytest.CaptureFixture[str]) -> None:
    a, out = arguments()
    watched.reference(a, out, 2)
    assert capsys.readouterr().out == "row 0 [[0. 1. 2. 3.]]\nrow 1 [[4. 5. 6. 7.]]\n"
    with pytest.raises(CheckFailed, match="row 1 is too large") as caught:
        watched.reference(a, out, 2, 5.0)
    assert caught.value.span is not None and caught.value.span.line == line_of("pl.assert_")
    capsys.readouterr()
    watched(a, out, 2, 5.0)
    assert capsys.readouterr().out == "" and np.array_equal(out, a + 1)


def test_what_is_compiled_has_no_probes() -> None:
    a, out = arguments()
    assert "pl.print" not in str(watched.program(a, out, 2))
    watched.lower(a, out, 2, target="ascend910b")


class Debugger(bdb.Bdb):
    """Stops at one line, and keeps what it sees there."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[dict[str, Any]] = []

    def user_line(self, frame: FrameType) -> None:
        if frame.f_code.co_filename == __file__ and self.get_breaks(__file__, frame.f_lineno):
            self.seen.append({"line": frame.f_lineno, **frame.f_locals})
        self.set_continue()


def test_a_debugger_stops_at_the_line_of_the_kernel() -> None:
    a, out = arguments()
    debugger, line = Debugger(), line_of("out = pl.store")
    assert debugger.set_break(__file__, line) is None
    before = sys.gettrace()
    try:
        debugger.runcall(watched.reference, a, out, 2)
    finally:
        sys.settrace(before)
    assert [each["line"] for each in debugger.seen] == [line, line]
    assert [each["i"] for each in debugger.seen] == [0, 1]
    assert np.array_equal(debugger.seen[1]["y"], a[1:2] + 1)


@pl.jit
def halted(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    x = a * 2.0
    breakpoint()  # noqa: T100
    out[:] = x
    return out


def test_breakpoint_starts_the_debugger_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    stops: list[tuple[str, int, Any]] = []

    def hook() -> None:
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        stops.append((frame.f_code.co_filename, frame.f_lineno, frame.f_locals["x"]))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    a, out = arguments()
    halted.reference(a, out)
    ((file, line, x),) = stops
    assert file == __file__ and line == line_of("breakpoint()  # noqa")
    assert np.array_equal(x, a * 2)
    halted(a, out)
    assert len(stops) == 1 and np.array_equal(out, a * 2)


def test_every_value_by_its_name() -> None:
    a, out = arguments()
    found = watched.dump(a, out, 2)
    assert [each.tolist() for each in found["y"]] == [[[1, 2, 3, 4]], [[5, 6, 7, 8]]]
