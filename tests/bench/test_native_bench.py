"""The comparison with other libraries: what makes it fail, and what its rows and ratios say."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "native.py"


def script() -> Any:
    spec = importlib.util.spec_from_file_location("bench_native", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row(peer: str, seconds: float | None, threads: int = 1, **given: Any) -> dict[str, Any]:
    return {
        "kernel": "gemm_f32", "peer": peer, "threads": threads, "seconds": seconds, "error": None, "flops": 8,
        "bytes": 0, "rate": None if seconds is None else 8 / seconds, "peak_flops": 16.0,
        "peak_bytes": 1.0, "wanted": 0.9, "wanted_threads": 1.4, "amx": "no AMX here", **given,
    }  # fmt: skip


def rows(threads: int = 1, ours: float = 2.0) -> list[dict[str, Any]]:
    times = {"tilewright": ours, "numpy": 4.0, "torch": 1.0, "torch.compile": 3.0, "jax": 5.0}
    return [row(peer, seconds, threads) for peer, seconds in times.items()]


def test_the_ratio_is_to_the_best_peer_in_the_same_run() -> None:
    found = script().finish(rows())[0]
    assert (found["ratio"], found["best_peer"], found["share_of_peak"]) == (0.5, "torch", 0.25)


def test_a_ratio_below_what_is_wanted_is_no_failure_and_a_wrong_peer_is_one() -> None:
    native = script()
    assert native.failures(native.finish(rows()), [1]) == []
    wrong = [*rows()[:-1], row("jax", None, error="error 1e-1, at most 1e-5 is right")]
    assert native.failures(native.finish(wrong), [1]) == [
        "gemm_f32, jax, 1 thread(s): error 1e-1, at most 1e-5 is right"
    ]
    assert native.failures(rows(), [1, 2]) == ["no rows for 2 thread(s)"]


def test_the_table_shows_both_numbers_of_threads_and_their_ratio() -> None:
    native = script()
    text = native.table(native.finish([*rows(), *rows(2, 0.5)]))
    assert "gemm: geometric mean 0.50 over 1" in text and "gemm: geometric mean 2.00 over 1" in text
    assert text.splitlines()[-1].split() == ["gemm_f32", "4.00", "1.4"]


def test_a_peer_that_is_missing_fails_the_run_and_its_row_says_so(tmp_path: Path) -> None:
    """In an environment in which torch and jax cannot be imported."""
    for name in ("torch", "jax"):
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('{name} is hidden')\n", encoding="utf-8")
    output = tmp_path / "rows.jsonl"
    run = subprocess.run(
        [sys.executable, str(SCRIPT), "--quick", "--threads", "1", "--only", "rmsnorm", "--output", str(output)],
        capture_output=True, text=True, check=False, env={"PYTHONPATH": f"{tmp_path}:{':'.join(sys.path)}"},
    )  # fmt: skip
    assert run.returncode == 1, run.stderr
    assert "FAILED  rmsnorm, torch, 1 thread(s): ImportError: torch is hidden" in run.stderr
    found = {r["peer"]: r for r in map(json.loads, output.read_text(encoding="utf-8").splitlines())}
    assert found["tilewright"]["error"] is None and len(found["tilewright"]["samples"]) == 5
    assert found["torch.compile"]["torch_compile_ran"] is False
    assert found["jax"]["error"] == "ImportError: jax is hidden"
