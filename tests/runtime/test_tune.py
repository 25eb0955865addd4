"""Decisions reach the passes and change nothing but speed; the search finds better ones, keeps them, never loses."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from docs.test_docs_run import Page
from properties.judges import ASCEND, same
from support import exact_ints

import tilewright.language as pl
from tilewright.analysis.tile_chooser import Problem, choose_l0_tile
from tilewright.compiler import lower
from tilewright.errors import ArgumentError, CommandError, TilewrightError, UnsupportedError
from tilewright.execute import interpret
from tilewright.execute.simulator import simulate
from tilewright.ir.dtypes import BF16, FP32
from tilewright.ir.function import Program
from tilewright.runtime import trial
from tilewright.runtime.build import compile_for
from tilewright.runtime.options import Options
from tilewright.runtime.trial import Outcome, Trial, run_trial
from tilewright.runtime.tune import MEASURED, SIMULATED, Progress, Tuned, tune
from tilewright.runtime.tuned import program_key, read_entries, sidecar, tuned_target
from tilewright.targets import load_target
from tilewright.targets.decisions import Decisions, Value

BF = np.dtype(ml_dtypes.bfloat16)


@pl.jit
def product(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.matmul(a, b, out_dtype=pl.FP32)
    return out


@pl.jit
def rows(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.maximum(x * 2.0, x)
    return out


@pl.jit
def piped(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.pipeline(0, x.shape[0], 16, stage=1):
        tile = pl.load(x, [i, 0], [16, 128])
        out = pl.store(tile + tile, [i, 0], out)
    return out


@pl.jit
def whole(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    tile = pl.load(x, [0, 0], [16, x.shape[1]])
    return pl.store(tile + tile, [0, 0], out)


def too_large() -> Program:
    """One that fits no memory."""
    wide = np.zeros((16, 100_000), np.float32)
    return whole.program(wide, wide.copy())


def arguments(kernel: Any, m: int = 384, n: int = 320, k: int = 512) -> dict[str, Any]:
    """Arrays by name, on which every order of summation is exact."""
    if kernel is product:
        a, b = exact_ints((m, k), np.float32).astype(BF), exact_ints((k, n), np.float32).astype(BF)
        return {"a": a, "b": b, "out": np.zeros((m, n), np.float32)}
    columns = 128 if kernel is piped else 4096
    x = exact_ints((192, columns), np.float32)
    return {"x": x, "out": np.zeros_like(x)}


def program_of(kernel: Any, **sizes: int) -> Program:
    return kernel.program(*arguments(kernel, **sizes).values())


# --- decisions ----------------------------------------------------------------------------------------------------
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
KERNEL = """
import numpy as np
import ml_dtypes

import tilewright.language as pl


@pl.jit
def product(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.matmul(a, b, out_dtype=pl.FP32)
    return out


@pl.jit
def piped(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.pipeline(0, x.shape[0], 16, stage=1):
        tile = pl.load(x, [i, 0], [16, 128])
        out = pl.store(tile + tile, [i, 0], out)
    return out
"""


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


# --- as a whole ---------------------------------------------------------------------------------------------------
def command(folder: Path, *args: str, kernel: str = "product") -> list[str]:
    return [
        sys.executable,
        "-c",
        "from tilewright.cli import main; main()",
        "tune",
        f"{folder / 'kernel.py'}:{kernel}",
        *args,
    ]


SQUARE = ("1024x1024:bf16", "1024x1024:bf16", "1024x1024:f32", "-t", "ascend910b")


@pytest.mark.slow
def test_a_large_product_in_half_a_minute(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    started = time.monotonic()
    ended = subprocess.run(
        [*command(tmp_path, *SQUARE), "--budget", "12", "--json"], capture_output=True, text=True, check=True
    )
    assert time.monotonic() - started < 30
    found = json.loads(ended.stdout)
    assert found["tuned"] <= found["default"]
    assert "tried" in ended.stderr, "it shows what it is doing"


@pytest.mark.slow
def test_killed_halfway_it_leaves_a_file_that_works(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    path = tmp_path / "kernel.tune.json"
    with subprocess.Popen(
        [*command(tmp_path, *SQUARE), "--budget", "60"], stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        assert running.stderr is not None
        deadline = time.monotonic() + 60
        while not path.exists() and time.monotonic() < deadline and running.poll() is None:
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGKILL)
        running.stderr.read()
    (entry,) = read_entries(path)
    assert entry.tuned < entry.default
    assert sorted(p.name for p in tmp_path.glob("*.json")) == ["kernel.tune.json"]
    ended = subprocess.run(
        [*command(tmp_path, *SQUARE[:3])[:3], "simulate", str(tmp_path / "kernel.py") + ":product", *SQUARE, "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(ended.stdout)["cycles"] == entry.tuned


CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    options = dict(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1")
    with LocalCluster(**options) as cluster:
        print(cluster.scheduler_address.removeprefix("tcp://"), flush=True)
        sys.stdin.read()
"""


@pytest.mark.slow
def test_on_a_dask_cluster_of_two(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "cluster.py").write_text(CLUSTER)
    small = ("192x128:f32", "192x128:f32", "-t", "ascend910b", "--json")
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "cluster.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as cluster:
        assert cluster.stdout is not None and cluster.stdin is not None
        address = cluster.stdout.readline().strip()
        ended = subprocess.run(
            [*command(tmp_path, *small, kernel="piped"), "--executor", f"dask://{address}"],
            capture_output=True,
            text=True,
            check=False,
        )
        cluster.stdin.close()
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["tuned"] < found["default"]
    assert found["complete"]
    nobody = subprocess.run(
        [*command(tmp_path, *small, kernel="piped"), "--executor", "dask://127.0.0.1:1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert nobody.returncode == 1
    assert "no Dask scheduler at 127.0.0.1:1" in nobody.stderr
    unknown = subprocess.run(
        [*command(tmp_path, *small, kernel="piped"), "--executor", "ray"], capture_output=True, text=True, check=False
    )
    assert "there is no executor 'ray'" in unknown.stderr


def test_what_the_guide_shows_is_what_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path(__file__).parents[2] / "docs" / "tune.md"
    page = Page(path, tmp_path)
    shown = page.run()
    if request.config.getoption("--bless"):
        path.write_text(shown)
        return
    assert page.text.splitlines() == shown.splitlines()
