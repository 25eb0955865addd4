"""`tilewright tune` as a whole: in time, killed halfway, on a Dask cluster, and the page about it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from docs.test_docs_run import Page
from runtime.tuning import KERNEL

from tilewright.runtime.tuned import read_entries


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
