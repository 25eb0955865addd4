"""What is said of a kernel is said of the program that runs: with `forward=False`, of sections apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

import tilewright.language as pl
from tilewright.cli.app import app

TEXT = """
import tilewright.language as pl


@pl.jit(forward={forward})
def twice(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    y = a + a
    out[:] = y * 3.0
    return out


def example_arguments():
    import numpy as np

    return np.ones((64, 64), np.float32), np.zeros((64, 64), np.float32)
"""


def kernels() -> tuple[Any, Any]:
    def twice(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        y = a + a
        out[:] = y * 3.0
        return out

    return pl.jit(twice), pl.jit(forward=False)(twice)


def test_explain_and_report_know_that_sections_stay_apart() -> None:
    a = np.ones((64, 64), np.float32)
    together, apart = kernels()
    launches = [len(kernel.explain(a, a.copy(), target="ascend910b").launches) for kernel in (together, apart)]
    assert launches == [1, 3]  # the slice that is written is one of its own
    rows = [kernel.report(a, a.copy(), target="ascend910b").data["hands"] for kernel in (together, apart)]
    assert [row["tensor"] for row in rows[0]] == ["y", "mul"] and rows[1] == []


def test_so_do_the_commands(tmp_path: Path) -> None:
    found: list[int] = []
    for forward in (True, False):
        file = tmp_path / f"kernel{forward}.py"
        file.write_text(TEXT.format(forward=forward))
        arguments = ["compile", str(file), "64x64:f32", "64x64:f32", "-t", "ascend910b", "--emit", "tiles"]
        found.append(CliRunner().invoke(app, arguments).output.count("FunctionType.InCore"))
    assert found == [1, 3]
