"""Decisions reach the passes and change nothing but speed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from properties.judges import ASCEND, same
from runtime.tuning import BF, arguments, piped, product, program_of, rows
from support import exact_ints

from tilewright.analysis.tile_chooser import Problem, choose_l0_tile
from tilewright.compiler import lower
from tilewright.errors import TilewrightError
from tilewright.execute import interpret
from tilewright.ir.dtypes import BF16, FP32
from tilewright.runtime.build import compile_for
from tilewright.runtime.options import Options
from tilewright.targets import load_target
from tilewright.targets.decisions import Decisions, Value


def test_what_is_decided_comes_first_and_what_is_unknown_changes_nothing() -> None:
    asked: dict[str, tuple[Value, ...]] = {}
    made = Decisions({"size": (2, 3), "gone": 1}, asked)
    assert made.first("size", [(1, 1), (2, 3), (4, 4)]) == [(2, 3), (1, 1), (4, 4)]
    assert made.first("depth", [2, 1]) == [2, 1]
    assert Decisions({"size": (9, 9)}).first("size", [(1, 1), (2, 3)]) == [(1, 1), (2, 3)]
    assert asked == {"size": ((1, 1), (2, 3), (4, 4)), "depth": (2, 1)}, "the model's order"
    assert not Decisions().matter


def test_decisions_have_a_text_of_their_own_and_leave_the_machine_what_it_is() -> None:
    target = load_target("ascend910b")
    several: list[dict[str, Value]] = [{}, {"a": 1}, {"a": 2}, {"b": 1, "a": 1}, {"a": 1, "b": 1}]
    texts = [str(target.with_decisions(made).decisions) for made in several]
    assert len(set(texts)) == 4
    assert texts[3] == texts[4]
    assert {target.with_decisions(made).fingerprint for made in several} == {target.fingerprint}


def test_the_chooser_takes_a_tile_that_was_decided_on() -> None:
    problem, target = Problem(320, 320, 64, BF16, FP32), load_target("ascend910b")
    default = choose_l0_tile(problem, target)
    asked: dict[str, tuple[Value, ...]] = {}
    assert choose_l0_tile(problem, target.with_decisions({}, asked)) == default
    ((question, options),) = asked.items()
    assert len(options) > 5
    for option in options:
        assert isinstance(option, tuple)
        tile = choose_l0_tile(problem, target.with_decisions({question: option}))
        assert (tile.m, tile.n, tile.k, tile.stationary.value, tile.accumulators) == option
        assert tile.cycles.wall >= default.cycles.wall
    impossible = target.with_decisions({question: (320, 320, 64, "A", 2)})
    assert choose_l0_tile(problem, impossible) == default


@pytest.mark.parametrize("target", ASCEND)
@pytest.mark.parametrize("kernel", [product, rows, piped], ids=lambda kernel: kernel.source.name)
def test_every_way_means_the_same(kernel: Any, target: str) -> None:
    """Each option of each question, one at a time: the placed program computes the very same numbers."""
    given = arguments(kernel)
    program, machine = program_of(kernel), load_target(target)
    wanted = interpret(program, [np.array(value) for value in given.values()])
    asked: dict[str, tuple[Value, ...]] = {}
    lower(program, machine.with_decisions({}, asked))
    tried = 0
    for question, options in asked.items():
        for option in options[1 : 60 : max(1, len(options) // 6)]:
            try:
                placed = lower(program, machine.with_decisions({question: option}))
            except TilewrightError:
                continue
            tried += 1
            same(wanted, interpret(placed, [np.array(value) for value in given.values()]), f"{question}: {option}")
    assert tried > (5 if kernel is product else 2)


def test_each_kind_of_decision_is_asked_for() -> None:
    machine = load_target("ascend910b")
    asked: dict[str, tuple[Value, ...]] = {}
    for kernel in (product, rows, piped):
        lower(program_of(kernel), machine.with_decisions({}, asked))
    kinds = {" ".join(question.split()[:2]) for question in asked}
    assert kinds == {"blocks of", "tile of", "depth of", "share of"}
    assert asked["depth of loops over i instead of 1"] == (1, 2, 3, 4)


@pytest.mark.parametrize("dtype", [np.dtype(np.float32), BF], ids=str)
def test_every_way_of_native_code_means_the_same(dtype: np.dtype[Any]) -> None:
    """Sizes beyond every block, with tails, on this machine."""
    a, b = exact_ints((205, 801), np.float32), exact_ints((801, 530), np.float32)
    wanted = a @ b
    program = product.program(a.astype(dtype), b.astype(dtype), np.zeros_like(wanted))
    asked: dict[str, tuple[Value, ...]] = {}
    compile_for(program, load_target("host").with_decisions({}, asked), Options(cache=False)).native
    ((question, options),) = ((q, found) for q, found in asked.items() if q.startswith("cache blocks"))
    assert len(options) > 8
    for option in options:
        out = np.full_like(wanted, np.nan)
        kernel = compile_for(program, load_target("host").with_decisions({question: option}), Options(cache=False))
        kernel(a.astype(dtype), b.astype(dtype), out)
        assert np.array_equal(out, wanted), option


def test_what_was_decided_is_another_entry_of_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    given = [exact_ints((40, 50), np.float32), exact_ints((50, 60), np.float32), np.zeros((40, 60), np.float32)]
    program, host = product.program(*given), load_target("host")
    question = "cache blocks of FP32 products (k, columns, rows, rows from which to pack)"
    for target in (host, host.with_decisions({question: (256, 256, 96, 32)}), host):
        compile_for(program, target, Options())(*given)
        assert np.array_equal(given[2], given[0] @ given[1])
    assert len(list((tmp_path / "cache").glob("*.twc"))) == 4, "text and code, twice"
