"""Native code beside NumPy, torch (eager and compiled) and jax, in one run, with one thread and with two.

    python bench/native.py [--only NAME] [--threads 1,2] [--samples 15] [--quick] [--output FILE]

For each number of threads a process of its own measures every kernel: samples alternate between the peers, each with
repeated calls where one is short. One row of JSON per kernel, peer and number of threads goes into the output file; a
table, the ratios to the best peer (above 1: Tilewright is faster) and their geometric means go to the screen. Fails
where a peer is missing, fails, does not compile, or is wrong against FP64. A ratio below what is wanted is shown and is
no failure.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

PEER_NAMES = ("tilewright", "numpy", "torch", "torch.compile", "jax")
PACKAGES = ("tilewright", "numpy", "torch", "jax", "jaxlib", "llvmlite")
OUTPUT = Path(__file__).resolve().parent / "results" / "native.jsonl"
SAMPLES, QUICK_SAMPLES = 15, 5
SAMPLE_SECONDS = 0.004
"""A sample is at least so long: shorter calls are repeated."""
AMX_TRIES = 20
"""Samples that may be thrown away because AMX changed its state."""
Row = dict[str, Any]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- the process that measures ----------------------------------------------------------------------------------------
def settings(threads: int) -> dict[str, str]:
    """The environment in which the libraries use so many threads."""
    single = " --xla_cpu_multi_thread_eigen=false" if threads == 1 else ""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TILEWRIGHT_THREADS")
    return {**dict.fromkeys(names, str(threads)), "XLA_FLAGS": (os.environ.get("XLA_FLAGS", "") + single).strip(),
            "JAX_PLATFORMS": "cpu", "TORCHINDUCTOR_COMPILE_THREADS": "1", **compiler()}  # fmt: skip


def compiler() -> dict[str, str]:
    """The C++ compiler for torch.compile, where the system has none: one that was installed beside torch."""
    installed = Path(sys.executable).parent / "zig-c++"
    missing = "CXX" not in os.environ and shutil.which("g++") is None
    return {"CXX": str(installed)} if missing and installed.exists() else {}


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "missing"
    return found


def measure(threads: int, only: str, samples: int, output: Path) -> None:
    """Measure in this process and append the rows to `output`."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    from machine import Machine
    from native_kernels import cases

    machine = Machine(threads)
    flops, copied = machine.multiply_peak(), machine.copy_peak()
    common = {"threads": threads, "versions": versions(), "processor": machine.processor.cpu,
              "peak_flops": flops, "peak_bytes": copied}  # fmt: skip
    peaks = f"{flops / 1e9:.0f} GF/s multiplied, {copied / 1e9:.1f} GB/s copied"
    say(f"{threads} thread(s) on {machine.processor.cpu}: {peaks}")
    for case in cases():
        if only in case.name:
            rows = measure_case(case, machine, samples)
            with output.open("a", encoding="utf-8") as file:
                for row in rows:
                    file.write(json.dumps({**common, **row}) + "\n")


def measure_case(case: Any, machine: Any, samples: int) -> list[Row]:
    """One row per peer."""
    from machine import same_state

    exact = case.exact(*(array.astype("float64") for array in case.make()[:-1]))
    rows, calls, repeats = {}, {}, {}
    for name in PEER_NAMES:
        call, row = prepared(case, name, exact)
        rows[name] = row
        if call is not None:
            calls[name], repeats[name] = call, repetitions(call)
    probes: list[float] = []
    names, tries = list(calls), 0
    while names and len(rows[names[0]]["samples"]) < samples:
        before = machine.amx_probe()
        taken = {name: timed(calls[name], repeats[name]) for name in names}
        after = machine.amx_probe()
        tries += 1
        if not same_state(before, after) and tries < samples + AMX_TRIES:
            continue
        probes += [probe for probe in (before, after) if probe is not None]
        for name, seconds in taken.items():
            rows[name]["samples"].append(seconds)
        names = [*names[1:], names[0]]
    state = machine.amx_state(probes)
    for row in rows.values():
        row["amx"] = state
        row["seconds"] = median(row["samples"]) if row["samples"] else None
        row["rate"] = (case.flops or case.nbytes) / row["seconds"] if row["seconds"] else None
    say(f"  {case.name}: " + ", ".join(f"{name} {shown(row)}" for name, row in rows.items()))
    return list(rows.values())


def prepared(case: Any, name: str, exact: Any) -> tuple[Any, Row]:
    """The call of a peer, run once and compared; the row so far. No call where the peer does not work."""
    from peers import PEERS

    row: Row = {"kernel": case.name, "peer": name, "samples": [], "error": None, "flops": case.flops,
                "bytes": case.nbytes, "wanted": case.wanted, "wanted_threads": case.wanted_threads}  # fmt: skip
    if name == "torch.compile":
        row["torch_compile_ran"] = False
    try:
        call, result = PEERS[name](case, case.make())
        call()
        row["error"] = case.wrong(result(), exact)
    except Exception as error:  # noqa: BLE001  whatever a peer raises is its row's error, and fails the run at the end
        row["error"] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
    if row["error"] is not None:
        return None, row
    if name == "torch.compile":
        row["torch_compile_ran"] = True
    return call, row


def repetitions(call: Any) -> int:
    return max(1, math.ceil(SAMPLE_SECONDS / max(timed(call, 1), 1e-7)))


def timed(call: Any, repeats: int) -> float:
    """Seconds a call."""
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


# --- the process that compares ----------------------------------------------------------------------------------------
def shown(row: Row) -> str:
    return row["error"] or f"{row['seconds'] * 1e3:.3f} ms"


def finish(rows: list[Row]) -> list[Row]:
    """Rates become shares of the peak; each of our rows gets its ratio to the best peer."""
    for row in rows:
        rate, peak = row["rate"], row["peak_flops"] if row["flops"] else row["peak_bytes"]
        row["share_of_peak"] = None if rate is None else rate / peak
    for row in rows:
        if row["peer"] != "tilewright":
            continue
        beside = [r for r in rows if (r["kernel"], r["threads"]) == (row["kernel"], row["threads"]) and r is not row]
        times = [r["seconds"] for r in beside if r["seconds"]]
        row["ratio"] = min(times) / row["seconds"] if times and row["seconds"] else None
        row["best_peer"] = (
            min((r for r in beside if r["seconds"]), key=lambda r: r["seconds"])["peer"] if times else None
        )
    return rows


def family(kernel: str) -> str:
    return "gemm" if kernel.startswith("gemm") else kernel if kernel in ("ffn", "attention") else "row kernels"


def table(rows: list[Row]) -> str:
    lines: list[str] = []
    for threads in sorted({row["threads"] for row in rows}):
        lines += ["", f"{threads} thread(s), ms (median)", f"{'kernel':24}" + "".join(f"{n:>14}" for n in PEER_NAMES)
                  + f"{'ratio':>8}{'wanted':>8}{'of peak':>9}"]  # fmt: skip
        ours = [row for row in rows if row["peer"] == "tilewright" and row["threads"] == threads]
        for row in ours:
            beside = {r["peer"]: r for r in rows if (r["kernel"], r["threads"]) == (row["kernel"], threads)}
            cells = [f"{r['seconds'] * 1e3:.3f}" if r["seconds"] else "FAILED" for r in (beside[n] for n in PEER_NAMES)]
            ratio, peak = row["ratio"], row["share_of_peak"]
            lines.append(f"{row['kernel']:24}" + "".join(f"{cell:>14}" for cell in cells)
                         + (f"{ratio:8.2f}" if ratio else f"{'-':>8}") + f"{row['wanted']:8.1f}"
                         + (f"{peak:9.0%}" if peak else f"{'-':>9}"))  # fmt: skip
        for name in dict.fromkeys(family(row["kernel"]) for row in ours):
            ratios = [row["ratio"] for row in ours if family(row["kernel"]) == name and row["ratio"]]
            if ratios:
                mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
                lines.append(f"  {name}: geometric mean {mean:.2f} over {len(ratios)}")
        lines.append(f"  AMX: {', '.join(sorted({row['amx'] for row in ours}))}")
    return "\n".join([*lines, *speedups(rows)])


def speedups(rows: list[Row]) -> list[str]:
    """Two threads against one, ours."""
    ours = {(r["kernel"], r["threads"]): r for r in rows if r["peer"] == "tilewright" and r["seconds"]}
    lines = [
        f"{kernel:24}{ours[kernel, 1]['seconds'] / row['seconds']:8.2f}{row['wanted_threads']:8.1f}"
        for (kernel, threads), row in ours.items()
        if threads == 2 and (kernel, 1) in ours
    ]
    return ["", f"{'two threads against one':24}{'ratio':>8}{'wanted':>8}", *lines] if lines else []


def failures(rows: list[Row], threads: list[int]) -> list[str]:
    """What makes the run fail."""
    found = [f"{r['kernel']}, {r['peer']}, {r['threads']} thread(s): {r['error']}" for r in rows if r["error"]]
    found += [f"no rows for {count} thread(s)" for count in threads if all(r["threads"] != count for r in rows)]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Native code beside NumPy, torch and jax.")
    parser.add_argument("--only", default="", help="kernels whose name has this in it")
    parser.add_argument("--threads", default="1,2", help="numbers of threads, with commas")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_SAMPLES} samples: a look, no measurement")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    samples = QUICK_SAMPLES if given.quick else given.samples
    if given.measure is not None:
        measure(given.measure, given.only, samples, given.output)
        return 0
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.unlink(missing_ok=True)
    threads = [int(count) for count in given.threads.split(",")]
    codes = [
        subprocess.run(
            [sys.executable, __file__, "--measure", str(count), "--only", given.only, "--samples", str(samples),
             "--output", str(given.output)],
            env={**os.environ, **settings(count)}, check=False,
        ).returncode
        for count in threads
    ]  # fmt: skip
    text = given.output.read_text(encoding="utf-8") if given.output.exists() else ""
    rows = finish([json.loads(line) for line in text.splitlines()])
    given.output.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(table(rows))
    wrong = failures(rows, threads) + [f"a measuring process ended with {code}" for code in codes if code]
    for line in wrong:
        say(f"FAILED  {line}")
    say(f"rows: {given.output}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
