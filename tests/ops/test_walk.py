"""Every operation of the interface, every element type, at both levels, on every backend, against NumPy.

What must be there comes from `table.toml`, what may be missing from `tests/unsupported.toml`: a cell with neither a
result nor an entry fails, and so does an entry for a cell that has a result. The interpreter's share is in
`test_meaning`, from the same cases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from op_cases import CASES, FULL, TAIL, Case, Sizes, base_name
from ops.coverage import MARK, Cell, cells, names, refusal, refusals, section, table
from ops.test_meaning import EPSILON, as_dtype, comparable
from ops.test_meaning import test_meaning as check_meaning
from ops.walking import Run, joined, run_of

import tilewright as tw
from tilewright.codegen.native import compile_native
from tilewright.codegen.pto.check import check
from tilewright.codegen.pto.emulate import launch
from tilewright.codegen.pto.writer import emit_pto
from tilewright.compiler import UNPLACED, lower
from tilewright.errors import LanguageError, TilewrightError
from tilewright.frontend.names import ALIASES
from tilewright.frontend.refused import REFUSED
from tilewright.ir.dtypes import DType
from tilewright.ir.op import Level, Op, registry
from tilewright.report.opsdoc import PAGE
from tilewright.targets import load_target

NAMES = list(dict.fromkeys(cell.name for cell in cells()))
TOGETHER = 24
"""Runs that native code does in one program: more of them make its compilation no cheaper."""


class RuleBrokenError(Exception):
    """A text breaks a rule of the assembler."""


def native(run: Run) -> list[Any]:
    """The arguments after native code ran."""
    target = load_target("host")
    arguments = [array.copy() for array in run.arguments]
    compile_native(lower(run.program, target, after=UNPLACED), target).run(arguments)
    return arguments


def emulated(machine: str) -> Callable[[Run], Any]:
    """The last argument after the emulator executed the text, which breaks no rule."""

    def execute(run: Run) -> Any:
        target = load_target(machine)
        module = emit_pto(lower(run.program, target), target)
        arguments = [array.copy() for array in run.arguments]
        found = [str(f) for text in module.texts.values() for f in check(text, level=3, dialect="current")]
        if found:
            raise RuleBrokenError(found[0])
        given = (argument["name"] for argument in module.manifest["arguments"])
        launch(module.manifest, module.texts, dict(zip(given, arguments, strict=False)), sync="auto")
        return arguments[-1]

    return execute


EXECUTE = {"ascend910b": emulated("ascend910b"), "ascend950": emulated("ascend950")}


def compare(case: Case, dtype: DType, run: Run, found: Any) -> None:
    kind = case.result(dtype)
    with np.errstate(all="ignore"):
        expected = comparable(as_dtype(run.expected, kind).astype(found.dtype).reshape(found.shape))
    result = comparable(found)
    if case.tolerance:
        close = case.tolerance * EPSILON[kind.name]
        np.testing.assert_allclose(result, expected, rtol=close, atol=close)
    else:
        np.testing.assert_array_equal(result, expected)


def attempt(backend: str, case: Case, level: Level, dtype: DType, sizes: Sizes) -> bool:
    """Whether the backend has the result, which is then right; False when it refuses."""
    with np.errstate(all="ignore"):
        run = run_of(case, level, dtype, sizes)
    try:
        found = EXECUTE[backend](run)
    except (TilewrightError, RuleBrokenError):
        return False
    compare(case, dtype, run, found)
    return True


def tried(cell: Cell) -> list[tuple[str, Case, Level]]:
    """What the assembler's text is made of: the tile form, where there is one, since the tensor form becomes it."""
    runs = [run for run in cell.runs if run[1].chips]
    return [run for run in runs if run[2] is Level.TILE] or runs


@pytest.mark.slow
@pytest.mark.parametrize("backend", list(EXECUTE))
@pytest.mark.parametrize("name", NAMES)
def test_cells(name: str, backend: str) -> None:
    for cell in cells():
        if cell.name != name:
            continue
        entry = refusal(name, cell.dtype, backend)
        worked = True
        for key, case, level in tried(cell):
            done = attempt(backend, case, level, cell.dtype, TAIL)
            where = f"{level.value}.{key} of {cell.dtype} on {backend}"
            if entry is None:
                assert done, f"{where} has neither a result nor an entry in tests/unsupported.toml"
            worked = worked and done
            if not worked:
                break
        assert entry is None or not worked, f"{name} of {cell.dtype} works on {backend}: take out its entry"


Labelled = tuple[str, Case, DType, Run]


def runs_of(name: str) -> list[Labelled]:
    """Every run of an operation: element type, level, whole and with a tail."""
    found: list[Labelled] = []
    for cell in cells():
        if cell.name == name:
            for key, case, level in cell.runs:
                for sizes, label in ((FULL, "whole"), (TAIL, "tail")):
                    with np.errstate(all="ignore"):
                        run = run_of(case, level, cell.dtype, sizes)
                    found.append((f"{level.value}.{key} of {cell.dtype}, {label}", case, cell.dtype, run))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_cells_natively(name: str) -> None:
    """All of them: native code may refuse none."""
    runs = runs_of(name)
    for start in range(0, len(runs), TOGETHER):
        check_natively(runs[start : start + TOGETHER])


def check_natively(runs: Sequence[Labelled]) -> None:
    arguments = iter(native(joined([run for _, _, _, run in runs])))
    for label, case, dtype, run in runs:
        own = [next(arguments) for _ in run.arguments]
        try:
            compare(case, dtype, run, own[-1])
        except AssertionError as wrong:
            raise AssertionError(f"{label} is not right natively: {wrong}") from None


def test_every_cell_has_cases_with_a_tail() -> None:
    """At least three runs with a tail, the interpreter's counted, of which some expect more than one value."""
    constant = table()["constant"]["names"]
    for cell in cells():
        runs = 2 * len(cell.runs) + len(EXECUTE) * len(tried(cell))
        assert runs >= 3, cell.name
        if cell.name in constant:
            continue
        values: list[Any] = []
        for _, case, level in cell.runs:
            with np.errstate(all="ignore"):
                values.append(np.unique(run_of(case, level, cell.dtype, TAIL).expected))
        assert any(len(found) > 1 for found in values), f"{cell.name} of {cell.dtype} expects one value throughout"


def test_the_table_names_what_the_language_has() -> None:
    """Each name of the table is an operation, another name of one, a word of the language, or refused by name."""
    known = {*registry(), *ALIASES}
    listed = {*names(Level.TENSOR), *names(Level.TILE)}
    assert sorted(listed - known) == []
    assert [name for name in table()["refused"]["names"] if name in known] == []


def test_entries_name_cells_and_clauses() -> None:
    """Every entry is about cells of the table, and cites a rule; native code refuses none of them."""
    there = {(cell.name, cell.dtype.name) for cell in cells()}
    for entry in refusals():
        assert entry["clause"].startswith("§")
        assert set(entry["backends"]) <= {"ascend910b", "ascend950"}
        listed: list[str] = entry["ops"] if entry["ops"] != ["all"] else []
        assert [pair for pair in ((n, d) for n in listed for d in entry["dtypes"]) if pair not in there] == []


def named(cls: type[Op]) -> str:
    return cls.name


def zeros(original: Callable[..., Any]) -> Callable[..., Any]:
    def nothing(*operands: Any, **given: Any) -> Any:
        return np.zeros_like(original(*operands, **given))

    return nothing


@pytest.mark.parametrize("cls", sorted(set(registry().values()), key=named), ids=named)
def test_zeros_for_a_meaning_are_noticed(cls: type[Op], monkeypatch: pytest.MonkeyPatch) -> None:
    """With every result replaced by zeros, some case of the operation fails."""
    monkeypatch.setattr(cls, "evaluate", zeros(cls.evaluate))
    for key, case in CASES.items():
        if registry()[base_name(key)] is cls:
            try:
                check_meaning(case, case.levels[-1], case.dtypes[0], TAIL)
            except (AssertionError, TilewrightError):
                return
    raise AssertionError(f"zeros would pass for {cls.name}")


def test_the_page_says_so(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text()
    before, _, _ = text.partition(MARK)
    if request.config.getoption("--bless"):
        PAGE.write_text(before.rstrip() + "\n\n" + section())
    assert PAGE.read_text() == before.rstrip() + "\n\n" + section(), "run: pytest tests/ops/test_walk.py --bless"


@pytest.mark.parametrize("name", [f"tile.{name}" for name in table()["refused"]["names"]])
def test_what_is_not_supported_says_so_by_name(name: str) -> None:
    """Not as a misspelling of something else."""
    assert len(REFUSED[name]) > 20
    text = f"""
import tilewright.language as pl

@pl.program(entry="main")
class Program:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[4, 8], pl.FP32]):
        y = pl.{name}(x)
"""
    with pytest.raises(LanguageError) as refused:
        tw.parse(text)
    assert name in refused.value.message
    assert refused.value.help == REFUSED[name]
