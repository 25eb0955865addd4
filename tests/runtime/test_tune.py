"""The search finds better decisions than the model's, keeps them beside the kernel, and never loses."""

from __future__ import annotations

import importlib.util
import json
import os
import time
from collections.abc import Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runtime.tuning import KERNEL, arguments, piped, product, program_of, rows, too_large
from support import exact_ints

from tilewright.compiler import lower
from tilewright.errors import ArgumentError, CommandError, UnsupportedError
from tilewright.execute.simulator import simulate
from tilewright.ir.function import Program
from tilewright.runtime import trial
from tilewright.runtime.trial import Outcome, Trial, run_trial
from tilewright.runtime.tune import MEASURED, SIMULATED, Progress, Tuned, tune
from tilewright.runtime.tuned import program_key, read_entries, sidecar, tuned_target
from tilewright.targets import load_target
from tilewright.targets.decisions import Value


# --- one trial ----------------------------------------------------------------------------------------------------
def trial_of(kernel: Any, target: str, made: Mapping[str, Value], measured: bool = False) -> Trial:
    return Trial(str(program_of(kernel)), target, arguments(kernel), tuple(made.items()), measured)


def test_a_trial_costs_what_the_simulator_says() -> None:
    machine = load_target("ascend910b")
    for depth in (1, 2, 3):
        made: dict[str, Value] = {"depth of loops over i instead of 1": depth}
        found = run_trial(trial_of(piped, "ascend910b", made))
        placed = lower(program_of(piped), machine.with_decisions(made))
        assert found.cost == simulate(placed, machine).cycles
        assert "depth of loops over i instead of 1" in found.asked


def test_a_trial_that_does_not_work_says_why() -> None:
    found = run_trial(Trial(str(too_large()), "ascend910b", {}, (), False))
    assert found.cost == float("inf")
    assert found.reason.startswith("TW301")


def test_a_measured_trial_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "LEAST", 0.001)
    name = load_target("host").name
    found = run_trial(trial_of(rows, name, {}, measured=True))
    assert 0 < found.cost < 1


# --- the file -----------------------------------------------------------------------------------------------------
@pytest.fixture
def module(tmp_path: Path) -> Any:
    """A file of kernels of its own, imported."""
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    spec = importlib.util.spec_from_file_location(f"kernel_{tmp_path.name}", path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def search(program: Program, given: Mapping[str, Any], **options: Any) -> Tuned:
    with ThreadPoolExecutor(2) as threads:
        return tune(program, "ascend910b", given, executor=threads, **options)


def test_the_result_is_kept_beside_the_kernel_and_changes_the_next_compile(module: Any, tmp_path: Path) -> None:
    given = arguments(piped)
    program = module.piped.program(*given.values())
    before = module.piped.simulate(*given.values(), target="ascend910b").cycles
    text = str(module.piped.lower(*given.values(), target="ascend910b"))
    heard: list[Progress] = []
    found = search(program, given, progress=heard.append)
    path = tmp_path / "kernel.tune.json"
    assert found.path == path == sidecar(program)
    assert [name for name in os.listdir(tmp_path) if name.endswith(("tmp", "json"))] == ["kernel.tune.json"]
    assert found.by == SIMULATED
    assert found.complete
    assert found.default == before == heard[0].best
    assert found.tuned == min(now.best for now in heard) < 0.7 * before, (
        "loads, work and stores overlap once the loop is deeper"
    )
    (entry,) = read_entries(path)
    assert (entry.kernel, entry.target, entry.arguments) == (
        "piped",
        "ascend910b",
        "x: f32[192,128], out: f32[192,128]",
    )
    assert (entry.default, entry.tuned, entry.decisions) == (found.default, found.tuned, found.decisions)
    # The next compile, everywhere.
    assert module.piped.simulate(*given.values(), target="ascend910b").cycles == found.tuned
    assert str(module.piped.lower(*given.values(), target="ascend910b")) != text
    assert str(module.piped.compile(*given.values(), target="ascend910b").program) != text
    assert module.piped.report(*given.values(), target="ascend910b").data["cycles"]["cycles"] == found.tuned
    # Not another machine, another shape, or a kernel that says something else.
    machine = load_target("ascend950")
    assert tuned_target(program, machine) is machine
    other = np.zeros((64, 128), np.float32)
    machine = load_target("ascend910b")
    assert tuned_target(module.piped.program(other, other.copy()), machine) is machine
    path.unlink()
    assert str(module.piped.lower(*given.values(), target="ascend910b")) == text


def test_an_earlier_result_is_where_the_next_search_begins(module: Any) -> None:
    given = arguments(piped)
    program = module.piped.program(*given.values())
    first = search(program, given)
    heard: list[Progress] = []
    second = search(program, given, progress=heard.append, budget=1e-9)
    assert [now.changed for now in heard] == ["", "the earlier result"]
    assert second.tuned == first.tuned
    assert second.default == first.default
    assert not second.complete


def test_a_result_that_is_no_better_any_more_goes(module: Any, tmp_path: Path) -> None:
    """The file says something that brings nothing: after a search that finds nothing better it is gone."""
    given = {"x": np.zeros((16, 128), np.float32), "out": np.zeros((16, 128), np.float32)}
    program = module.piped.program(*given.values())
    entry = {
        "kernel": "piped", "target": "ascend910b", "arguments": "", "program": program_key(program), "by": SIMULATED,
        "default": 9.0, "tuned": 1.0, "decisions": {"depth of loops over i instead of 1": 9},
    }  # fmt: skip
    kept = entry | {"program": "another"}
    path = tmp_path / "kernel.tune.json"
    path.write_text(json.dumps({"format": 1, "entries": [entry, kept]}))
    found = search(program, given)
    assert found.tuned == found.default
    assert found.path is None
    assert "the model's choice stands" in str(found)
    assert [each.program for each in read_entries(path)] == ["another"]
    path.write_text(json.dumps({"format": 1, "entries": [entry]}))
    search(program, given)
    assert not path.exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[]", "no results of this version"),
        ('{"format": 2, "entries": []}', "no results of this version"),
        ('{"format": 1}', "no list of entries"),
        ('{"format": 1, "entries": [3]}', "an entry that is none"),
        ('{"format": 1, "entries": [{"kernel": "piped"}]}', "an entry that is none"),
        (
            '{"format": 1, "entries": [{"kernel": "a", "target": "b", "arguments": "", "program": "", "by": "",'
            '"default": 1, "tuned": 1, "decisions": {"q": {"x": 1}}}]}',
            "an entry that is none",
        ),
        ("\udcff", "cannot be read"),
    ],
)
def test_a_file_that_is_none_is_said(module: Any, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "kernel.tune.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    given = arguments(piped).values()
    with pytest.raises(CommandError, match=said) as raised:
        module.piped.lower(*given, target="ascend910b")
    assert "tilewright tune" in str(raised.value)


def test_a_decision_that_means_nothing_any_more_is_passed_over(module: Any, tmp_path: Path) -> None:
    given = arguments(piped)
    program = module.piped.program(*given.values())
    text = str(lower(program, load_target("ascend910b")))
    made: dict[str, Any] = {
        "depth of loops over i instead of 1": 99,
        "tile of nothing": [1, 2],
        "share of a memory": "all",
    }
    entry = {
        "kernel": "piped", "target": "ascend910b", "arguments": "", "program": program_key(program), "by": SIMULATED,
        "default": 9.0, "tuned": 1.0, "decisions": made,
    }  # fmt: skip
    (tmp_path / "kernel.tune.json").write_text(json.dumps({"format": 1, "entries": [entry]}))
    assert tuned_target(program, load_target("ascend910b")).decisions.matter
    assert str(module.piped.lower(*given.values(), target="ascend910b")) == text


# --- the search ---------------------------------------------------------------------------------------------------
class Scripted(Executor):
    """Answers without compiling: a cost for each set of decisions, out of a table."""

    _max_workers = 1

    def __init__(self, costs: Mapping[tuple[int, int], float | BaseException]) -> None:
        self.costs = costs
        self.asked: list[tuple[int, int]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        made = dict(args[0].decisions)
        at = (made.get("a", 0), made.get("b", 0))
        self.asked.append(at)
        future: Future[Any] = Future()
        cost = self.costs.get(at, 100.0)
        if isinstance(cost, BaseException):
            future.set_exception(cost)
        else:
            future.set_result(Outcome(cost, {"a": (0, 1, 2), "b": (0, 1, 2)}))
        return future


def test_it_walks_downhill_and_tries_nothing_twice(tmp_path: Path) -> None:
    """The model's next best of each question first; from (0, 1), which is better, on to (2, 1) and (2, 2)."""
    executor = Scripted(
        {(0, 0): 50, (1, 0): 60, (0, 1): 40, (1, 1): 41, (2, 1): 30, (2, 2): 20, (2, 0): 70, (0, 2): 45}
    )
    found = tune(program_of(piped), "ascend910b", {}, executor=executor, path=tmp_path / "kept.json")
    assert (found.default, found.tuned, found.decisions) == (50, 20, {"a": 2, "b": 2})
    assert found.complete
    assert executor.asked[:3] == [(0, 0), (1, 0), (0, 1)]
    assert len(executor.asked) == len(set(executor.asked)) == found.tried


def test_processes_that_die_end_the_search_and_lose_nothing(tmp_path: Path) -> None:
    executor = Scripted({(0, 0): 50, (1, 0): 40, (0, 1): 45, (2, 0): BrokenProcessPool("killed")})
    found = tune(program_of(piped), "ascend910b", {}, executor=executor, path=tmp_path / "kept.json")
    assert (found.tuned, found.decisions, found.complete) == (40, {"a": 1}, False)
    assert [entry.tuned for entry in read_entries(tmp_path / "kept.json")] == [40]


def test_what_was_fast_by_luck_does_not_stay(tmp_path: Path) -> None:
    """A way that was measured as twice as fast once, and as slower from then on."""
    given = arguments(rows)
    path = tmp_path / "kept.json"

    class Lucky(Scripted):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future = super().submit(fn, *args, **kwargs)
            self.costs = {**self.costs, self.asked[-1]: {(0, 0): 50.0, (1, 0): self.later}.get(self.asked[-1], 90.0)}
            return future

        later = 60.0

    lucky = Lucky({(0, 0): 51.0, (1, 0): 25.0})
    found = tune(program_of(rows), "host", given, executor=lucky, path=path)
    assert (found.default, found.tuned, found.decisions, found.path) == (50, 50, {}, None)
    assert not path.exists()
    right = Lucky({(0, 0): 51.0, (1, 0): 25.0})
    right.later = 30.0
    found = tune(program_of(rows), "host", given, executor=right, path=path)
    assert (found.default, found.tuned, found.decisions) == (50, 30, {"a": 1})
    assert [(entry.default, entry.tuned) for entry in read_entries(path)] == [(50, 30)]


def test_the_time_is_kept(tmp_path: Path) -> None:
    started = time.monotonic()
    found = search(program_of(product), arguments(product), budget=1.0, path=tmp_path / "kept.json")
    assert time.monotonic() - started < 15
    assert not found.complete or found.seconds < 1.0


def test_mistakes_are_said() -> None:
    given = arguments(piped)
    with pytest.raises(ArgumentError, match="needs time"):
        tune(program_of(piped), "ascend910b", given, budget=0)
    with pytest.raises(ArgumentError, match="needs a value for x, out"):
        tune(program_of(piped), "host", {})
    with pytest.raises(UnsupportedError, match="is not this machine"):
        tune(program_of(piped), "generic", given)
    with pytest.raises(UnsupportedError, match=r"cannot be tuned: .*fit"):
        search(too_large(), {})


def test_what_is_measured_stays_right(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """On this machine: a search in this process, and the kernel afterwards."""
    monkeypatch.setattr(trial, "LEAST", 0.001)
    a, b = exact_ints((300, 200), np.float32), exact_ints((200, 260), np.float32)
    out = np.zeros((300, 260), np.float32)
    with ThreadPoolExecutor(1) as thread:
        found = module.product.tune(a, b, out, target="host", budget=2.0, executor=thread)
    assert found.by == MEASURED
    assert 0 < found.tuned <= found.default
    module.product(a, b, out)
    assert np.array_equal(out, a @ b)
